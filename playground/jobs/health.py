"""Signs of life in Redis, and what `/healthz` says about each part.

A worker is well when a job that does nothing has just run: a probe comes through its queue, and an
idle runner answers it. When all runners are busy, what counts is that their supervisors look.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from playground import redis
from playground.jobs import places, states
from playground.jobs.models import Attempt, Job

ALIVE_S = 10  # a part that hasn't beaten for so long is down
STUCK_S = 60  # a job waits beside a free slot, and nothing starts
PARTS = ("dispatcher", "worker.interactive", "worker.training")
NO_OP_KEPT_S = 86_400
SILENT = f"no sign of life for {ALIVE_S} s"
WEDGED = "a runner does not answer"
STUCK = f"jobs wait beside free slots, and none has started for {STUCK_S} s"

_waiting: dict[str, tuple[tuple[str, int], float]] = {}  # by queue: the oldest, first seen when


def beat(part: str, *, trouble: str = "", how: str = "") -> None:
    """Says that `part` is alive now; `trouble` says what is wrong with it all the same, `how` what
    became of a worker's no-op job. Without Redis the silence speaks for itself."""
    now = time.time()
    said = json.dumps({"t": round(now, 3), "trouble": trouble, "how": how})
    try:
        pipe = redis.shared().pipeline(transaction=False)
        pipe.set(f"beat:{part}", said, ex=ALIVE_S)
        if how == "done":
            pipe.set(f"noop:{part}", f"{now:.3f}", ex=NO_OP_KEPT_S)
        pipe.execute()
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
    keys = [f"beat:{part}" for part in PARTS] + [f"noop:{part}" for part in PARTS]
    try:
        # A connection of its own: one that is open already outlives the socket it came through,
        # which a part that starts now wouldn't find.
        with redis.client() as client:
            said = client.mget(keys)
        found["redis"] = {"ok": True}
    except redis.RedisError as error:
        found["redis"] = {"ok": False, "detail": str(error)}
        said = [None] * len(keys)
    for part, beaten, no_op in zip(PARTS, said, said[len(PARTS) :], strict=False):
        found[part] = _part(beaten, no_op)
        queue = part.removeprefix("worker.")
        if queue != part and found[part]["ok"] and found["database"]["ok"] and stuck(queue):
            found[part] |= {"ok": False, "detail": STUCK}
    return found


def _part(beaten: str | None, no_op: str | None) -> dict[str, Any]:
    if beaten is None:
        return {"ok": False, "detail": SILENT}
    said = json.loads(beaten)
    found: dict[str, Any] = {"ok": not said["trouble"], "age_s": _age(said["t"])}
    if said["trouble"]:
        found["detail"] = said["trouble"]
    if said["how"]:
        found["runners"] = said["how"]
        found["no_op_age_s"] = _age(float(no_op)) if no_op else None
    return found


def _age(moment: float) -> float:
    return round(max(0.0, time.time() - moment), 1)


def stuck(queue: str) -> bool:
    """Whether the queue doesn't move although it could: the same job has been its oldest for a
    minute's reports, a slot is free, and no attempt has started in that time."""
    now = timezone.now()
    due = Q(start_at=None) | Q(start_at__lte=now)
    oldest = Job.objects.filter(due, queue=queue, state=states.QUEUED).order_by("created_at", "pk")
    first = oldest.values_list("pk", "attempt").first()
    if first is None:
        _waiting.pop(queue, None)
        return False
    known, since = _waiting.get(queue, (None, 0.0))
    if known != first:
        _waiting[queue] = (first, time.monotonic())
        return False
    if time.monotonic() - since < STUCK_S:
        return False
    late = now - timedelta(seconds=STUCK_S)
    if Attempt.objects.filter(started_at__gt=late, job__queue=queue).exists():
        return False
    held = Job.objects.filter(places.holding_slot(), ~Q(state=states.QUEUED), queue=queue).count()
    return bool(held < settings.SLOTS[queue])


def _database() -> dict[str, Any]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM jobs_job LIMIT 1")
            cursor.fetchall()
    except Exception as error:  # each back end raises its own
        connection.close()
        return {"ok": False, "detail": str(error)}
    return {"ok": True}
