"""Guessing passwords: only so many failures a name and an address, counted in Redis."""

from __future__ import annotations

import hashlib
from typing import cast

from playground import redis

WINDOW_S = 15 * 60
BY_NAME, BY_ADDRESS = 10, 100  # a classroom shares one address


def _keys(name: str, address: str) -> tuple[str, str]:
    digest = hashlib.sha256(name.strip().lower().encode()).hexdigest()[:32]
    return f"guess:name:{digest}", f"guess:from:{address}"


def too_many(name: str, address: str) -> bool:
    """Whether this name or this address must wait. Without Redis: no."""
    try:
        found = cast("list[str | None]", redis.shared().mget(_keys(name, address)))
    except redis.RedisError:
        return False
    return any(
        int(count or 0) >= most for count, most in zip(found, (BY_NAME, BY_ADDRESS), strict=True)
    )


def failed(name: str, address: str) -> None:
    try:
        pipe = redis.shared().pipeline(transaction=False)
        for key in _keys(name, address):
            pipe.incr(key)
            pipe.expire(key, WINDOW_S, nx=True)
        pipe.execute()
    except redis.RedisError:
        return


def succeeded(name: str, address: str) -> None:
    """The name's count is over; the address keeps its own."""
    try:
        redis.shared().delete(_keys(name, address)[0])
    except redis.RedisError:
        return
