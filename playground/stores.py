"""Waiting for the database. (Redis: `playground.redis.wait_for_redis`.)"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import connection

log = logging.getLogger(__name__)
PATIENCE_S = 60.0


def wait_for_database(
    *, timeout_s: float = PATIENCE_S, stopping: Callable[[], bool] = lambda: False
) -> bool:
    """Waits until the jobs' table answers, so until the migrations have run too. False when
    `stopping()` came first; raises RuntimeError after `timeout_s`."""
    until = time.monotonic() + timeout_s
    told = False
    while not stopping():
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM jobs_job LIMIT 1")
                cursor.fetchall()
            return True
        except DatabaseError as error:
            connection.close()
            if time.monotonic() > until:
                raise RuntimeError(f"the database is not ready: {error}") from error
            if not told:
                log.info("waiting for the database and its migrations")
                told = True
        time.sleep(0.1)
    return False
