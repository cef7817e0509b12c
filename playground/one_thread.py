"""A middleware that does nothing, and by that saves time.

Most of Django's middleware is written for threads. In an asynchronous chain each of its hooks
hops to a thread and back. This one, innermost and synchronous, makes the whole chain run in the
request's one thread; an asynchronous view goes back to the event loop from there, once.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase


def one_thread(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    return get_response
