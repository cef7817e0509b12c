"""Database calls of the web process's event loop: a few threads that keep their connections.

Django gives every request a thread of its own and closes its connection afterwards. That is right
for pages; a socket's snapshot and a submission would spend more on connecting than on the query.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import Error as DatabaseError
from django.db import connection

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4  # so the web process holds at most four such connections
RESTED_S = 1.0  # then a connection is asked whether the server is still at its other end

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="database")
_last = threading.local()


async def call(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Runs a blocking function, with the caller's language, in one of the threads."""
    inside = contextvars.copy_context()
    work = partial(inside.run, partial(_run, function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_pool, work)


def _run(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    if (
        time.monotonic() - getattr(_last, "used", 0.0) > RESTED_S
        and connection.connection is not None
        and not connection.is_usable()
    ):
        connection.close()
    try:
        return function(*args, **kwargs)
    except DatabaseError:
        connection.close()
        raise
    finally:
        _last.used = time.monotonic()
