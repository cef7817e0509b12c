"""The one module that builds Redis clients. Time-outs are always explicit: a client library's
defaults have killed idle reads before (redis-py 8: five seconds), and an endless one hangs a page.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from functools import cache

import redis
import redis.asyncio
from django.conf import settings
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

__all__ = [
    "UNAVAILABLE",
    "RedisError",
    "ResponseError",
    "async_client",
    "broker_options",
    "broker_url",
    "check_room",
    "client",
    "wait_for_redis",
]

log = logging.getLogger(__name__)
UNAVAILABLE = (RedisConnectionError, RedisTimeoutError)
CONNECT_S = 2.0
COMMAND_S = 5.0


def client(*, block_s: float = 0.0) -> redis.Redis:
    """A synchronous client; `block_s` is the longest blocking read it will be asked for.

    No retries inside: each caller knows what losing the connection means for it.
    """
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=COMMAND_S + block_s,
        health_check_interval=0,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
    )


@cache
def shared() -> redis.Redis:
    """This process's common client for short commands (its pool is thread-safe)."""
    return client()


def check_room() -> None:
    """Raises RedisError when Redis has no memory left: a job taken now could not tell its story.

    A Redis that is away raises nothing. Rows wait for it, and its own restart empties nothing.
    """
    with contextlib.suppress(*UNAVAILABLE):
        shared().set("room", "1", ex=60)


def async_client(*, block_s: float = 0.0) -> redis.asyncio.Redis:
    """The asyncio twin of `client`; bound to the running loop on first use."""
    return redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=COMMAND_S + block_s,
        health_check_interval=0,
        retry=redis.asyncio.retry.Retry(NoBackoff(), 0),
        decode_responses=True,
    )


def broker_url() -> str:
    """Celery's spelling of `settings.REDIS_URL`."""
    url: str = settings.REDIS_URL
    return "redis+socket://" + url.removeprefix("unix://") if url.startswith("unix://") else url


def broker_options() -> dict[str, float]:
    """Celery's transport time-outs. Its blocking read asks for at most one second."""
    return {"socket_connect_timeout": CONNECT_S, "socket_timeout": 30.0}


def wait_for_redis(
    *, timeout_s: float = 30.0, stopping: Callable[[], bool] = lambda: False
) -> bool:
    """Waits until Redis answers. False when `stopping()` came first; raises after `timeout_s`."""
    until = time.monotonic() + timeout_s
    told = False
    while not stopping():
        try:
            with client() as probe:
                probe.ping()
            return True
        except RedisError as error:
            if time.monotonic() > until:
                raise RuntimeError(
                    f"Redis at {settings.REDIS_URL} does not answer: {error}"
                ) from error
            if not told:
                log.info("waiting for Redis at %s", settings.REDIS_URL)
                told = True
        time.sleep(0.05)
    return False
