"""Waiting for the database, and trying again. (Redis: `playground.redis.wait_for_redis`.)"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import Error as DatabaseError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)
PATIENCE_S = 60.0
# Errors of MySQL and MariaDB after which nothing has been written: the lock was not to be had in
# time, the transaction was chosen to end a deadlock, the connection had been dead before.
NOTHING_WRITTEN = frozenset({1205, 1213, 2006})
TRIES = 5


def wait_for_database(
    *, timeout_s: float = PATIENCE_S, stopping: Callable[[], bool] = lambda: False
) -> bool:
    """Waits until the database answers and every migration has run. False when `stopping()` came
    first; raises RuntimeError after `timeout_s`."""
    until = time.monotonic() + timeout_s
    told = False
    while not stopping():
        try:
            executor = MigrationExecutor(connection)
            if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return True
            why: object = "its migrations have not run"
        except DatabaseError as error:
            connection.close()
            why = error
        if time.monotonic() > until:
            raise RuntimeError(f"the database is not ready: {why}")
        if not told:
            log.info("waiting for the database and its migrations")
            told = True
        time.sleep(0.1)
    return False


def repeated(write: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a function that is one transaction: done again when the database says that it
    has written nothing. Inside an outer transaction, which is gone then, the error passes."""

    @wraps(write)
    def insisting(*args: P.args, **kwargs: P.kwargs) -> R:
        for left in reversed(range(TRIES)):
            try:
                return write(*args, **kwargs)
            except OperationalError as error:
                if error.args[0] not in NOTHING_WRITTEN or connection.in_atomic_block or not left:
                    raise
                log.info("%s again, after: %s", write.__name__, error)
                if error.args[0] == 2006:
                    connection.close()
                time.sleep(0.02 * (TRIES - left))
        raise AssertionError("not reached")

    return insisting
