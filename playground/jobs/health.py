"""Signs of life in Redis, and what `/healthz` says about each part."""

from __future__ import annotations

import time
from typing import Any

from django.db import connection

from playground import redis

ALIVE_S = 10  # a part that hasn't beaten for so long is down
PARTS = ("dispatcher", "worker.interactive", "worker.training")


def beat(part: str) -> None:
    """Says that `part` is alive now. Without Redis the silence speaks for itself."""
    try:
        redis.shared().set(f"beat:{part}", f"{time.time():.3f}", ex=ALIVE_S)
    except redis.RedisError:
        return


def forget(part: str) -> None:
    """A part that starts takes back the last word of the one before it."""
    try:
        redis.shared().delete(f"beat:{part}")
    except redis.RedisError:
        return


def report() -> dict[str, dict[str, Any]]:
    """Each part with `ok`, and `detail` in words where it isn't."""
    found: dict[str, dict[str, Any]] = {"web": {"ok": True}, "database": _database()}
    try:
        # A connection of its own: one that is open already outlives the socket it came through,
        # which a part that starts now wouldn't find.
        with redis.client() as client:
            beats = client.mget([f"beat:{part}" for part in PARTS])
        found["redis"] = {"ok": True}
    except redis.RedisError as error:
        found["redis"] = {"ok": False, "detail": str(error)}
        beats = [None] * len(PARTS)
    for part, value in zip(PARTS, beats, strict=True):
        if value is None:
            found[part] = {"ok": False, "detail": f"no sign of life for {ALIVE_S} s"}
        else:
            found[part] = {"ok": True, "age_s": round(max(0.0, time.time() - float(value)), 1)}
    return found


def _database() -> dict[str, Any]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM jobs_job LIMIT 1")
            cursor.fetchall()
    except Exception as error:  # each back end raises its own
        return {"ok": False, "detail": str(error)}
    return {"ok": True}
