"""The innermost middleware: one thread a request, and a bound on database connections.

Most of Django's middleware is written for threads. In an asynchronous chain each of its hooks
hops to a thread and back. This one, synchronous, makes the whole chain run in the request's one
thread; an asynchronous view goes back to the event loop from there, once.

A thread's connection lasts as long as its request. Without a bound, a hundred page requests at
once would be a hundred connections; here the rest wait for their turn. Asynchronous views don't
count: they last as long as a stream, and reach the database through `playground.jobs.database`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.db import connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase

AT_ONCE = 16  # synchronous views of this process that may hold a connection

_turns = threading.BoundedSemaphore(AT_ONCE)


class OneThread:
    sync_capable, async_capable = True, False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            answer = self.get_response(request)
        finally:
            # Here, not when the last byte is out: that may take hours.
            _close()
            if getattr(request, "_has_turn", False):
                _turns.release()
        return answer

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        if iscoroutinefunction(view):
            return
        if not _turns.acquire(blocking=False):
            _close()  # what a middleware may have opened is not held while waiting
            _turns.acquire()
        request._has_turn = True  # type: ignore[attr-defined]


def _close() -> None:
    """This thread's connections, but for one in a transaction, which a test may have around us."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
