"""How often: requests a minute, of one token and of all of its user's together.

A bucket of tokens in Redis for each (van Jacobson's and others' token bucket): it holds a minute's
worth, and fills evenly. Whoever runs dry gets 429 and the time until the next one. The headers are
those of draft-ietf-httpapi-ratelimit-headers. Without Redis everybody passes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from playground import problems, redis
from playground.accounts.owner import NotSignedIn, current_actor

log = logging.getLogger(__name__)
WINDOW_S = 60
READS = frozenset({"GET", "HEAD", "OPTIONS"})

# KEYS: buckets, the token's and the user's. ARGV: what a bucket holds, how many to take.
# Answers what is left of the emptier one, in thousandths; negative: nothing was taken.
_TAKE = """
local now = redis.call('TIME')
local at = now[1] + now[2] / 1e6
local size, cost = tonumber(ARGV[1]), tonumber(ARGV[2])
local least, found = size, {}
for i, key in ipairs(KEYS) do
  local kept = redis.call('HMGET', key, 'left', 'at')
  local left = size
  if kept[1] then
    left = math.min(size, tonumber(kept[1]) + (at - tonumber(kept[2])) * size / 60)
  end
  found[i] = left
  least = math.min(least, left)
end
if least < cost then return math.floor((least - cost) * 1000) end
if cost > 0 then
  for i, key in ipairs(KEYS) do
    redis.call('HSET', key, 'left', found[i] - cost, 'at', string.format('%.6f', at))
    redis.call('EXPIRE', key, 120)
  end
end
return math.floor((least - cost) * 1000)
"""
_told_at = 0.0


@dataclass(frozen=True)
class Standing:
    """Where somebody stands with one of the limits. `left` below 0: refused."""

    name: str
    limit: int
    left: float

    @property
    def wait_s(self) -> float:
        """Until the next request would pass."""
        return max(0.0, -self.left) * WINDOW_S / self.limit

    @property
    def reset_s(self) -> int:
        """Until the bucket is full again."""
        missing = self.limit - max(0.0, self.left)
        return math.ceil(missing * WINDOW_S / self.limit)

    def headers(self) -> dict[str, str]:
        left = max(0, math.floor(self.left))
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.limit};w={WINDOW_S}',
            "RateLimit": f'"{self.name}";r={left};t={self.reset_s}',
        }


def standing(name: str, *, user_id: int, token_id: int | None, cost: int = 1) -> Standing | None:
    """Takes `cost` from the buckets; None where there is no limit, or no Redis to count in."""
    global _told_at
    limit = {"submit": settings.RATE_SUBMIT, "read": settings.RATE_READ}[name]
    if not limit:
        return None
    keys = [f"rate:{name}:user:{user_id}"]
    if token_id is not None:
        keys.append(f"rate:{name}:token:{token_id}")
    try:
        left = redis.shared().eval(_TAKE, len(keys), *keys, str(limit), str(cost))
    except redis.RedisError as error:
        if time.monotonic() - _told_at > 60:
            _told_at = time.monotonic()
            log.warning("nobody is counted while Redis is away: %s", error)
        return None
    return Standing(name, limit, cast("int", left) / 1000)


def report(user_id: int) -> list[tuple[str, int, int, int | None]]:
    """(resource, used, limit, reset) of both limits, without counting this look."""
    found: list[tuple[str, int, int, int | None]] = []
    for name, limit in (("submit", settings.RATE_SUBMIT), ("read", settings.RATE_READ)):
        now = standing(name, user_id=user_id, token_id=None, cost=0)
        used = limit - math.floor(now.left) if now else 0
        found.append((f"{name}_per_minute", used, limit, now.reset_s if now else None))
    return found


def middleware(get_response: Callable[[HttpRequest], HttpResponseBase]) -> object:
    """Counts requests under /api/v1/ by who makes them. Innermost, so it runs in the request's
    thread and knows the user."""

    def counted(request: HttpRequest) -> HttpResponseBase:
        try:
            now = _counted(request)
        except DatabaseError as error:
            log.warning("the database does not answer: %s", error)
            return problems.response(request, "store_unavailable")
        if now is not None and now.left < 0:
            wait_s = math.ceil(now.wait_s)
            headers = {**now.headers(), "Retry-After": str(problems.jittered(wait_s))}
            return problems.response(
                request, "too_many_requests", headers=headers, limit=now.limit, wait_s=wait_s
            )
        answer = get_response(request)
        for name, value in now.headers().items() if now else ():
            answer.headers.setdefault(name, value)
        return answer

    return counted


def _counted(request: HttpRequest) -> Standing | None:
    if not problems.is_api(request.path) or not (settings.RATE_SUBMIT or settings.RATE_READ):
        return None
    try:
        actor = current_actor(request)
    except NotSignedIn:
        return None  # the view says so
    name = "read" if request.method in READS else "submit"
    return standing(name, user_id=actor.user_id, token_id=actor.token_id)
