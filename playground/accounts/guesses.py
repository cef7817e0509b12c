"""Guessing passwords: only so many attempts a name and an address, counted in Redis.

An attempt is counted before the password is looked at, so that many at once can't slip through
together; one that was right gives its count back.
"""

from __future__ import annotations

import hashlib

from playground import redis

WINDOW_S = 15 * 60
BY_NAME, BY_ADDRESS = 10, 100  # a classroom shares one address


def _keys(name: str, address: str) -> tuple[str, str]:
    digest = hashlib.sha256(name.strip().lower().encode()).hexdigest()[:32]
    return f"guess:name:{digest}", f"guess:from:{address}"


def allowed(name: str, address: str) -> bool:
    """Counts this attempt; False when this name or this address must wait. Without Redis: True."""
    try:
        pipe = redis.shared().pipeline()
        for key in _keys(name, address):
            pipe.incr(key)
            pipe.expire(key, WINDOW_S, nx=True)
        by_name, _, by_address, _ = pipe.execute()
        if by_name > BY_NAME:  # nothing is looked at, so it is no guess of this address
            redis.shared().decr(_keys(name, address)[1])
    except redis.RedisError:
        return True
    return bool(by_name <= BY_NAME and by_address <= BY_ADDRESS)


def succeeded(name: str, address: str) -> None:
    """The name's count is over; the address gets back the one that this attempt took."""
    by_name, by_address = _keys(name, address)
    try:
        pipe = redis.shared().pipeline()
        pipe.delete(by_name)
        pipe.decr(by_address)
        pipe.expire(by_address, WINDOW_S, nx=True)
        pipe.execute()
    except redis.RedisError:
        return
