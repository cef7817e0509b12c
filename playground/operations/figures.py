"""What is going on: queues, latencies, streams, runners, stores. Each figure is counted when it is
asked for, out of rows, Redis and this process, and kept five seconds; nothing runs meanwhile."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psutil
from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from compute.core import kinds
from playground import redis
from playground.jobs import figures, health, places, states
from playground.jobs.figures import RunnerMemory
from playground.jobs.models import Job

KEPT_S = 5.0
WINDOW = timedelta(hours=1)  # of latencies and failures
ROWS = 50_000  # of one kind in the window; beyond that the newest count
QUANTILES = (0.5, 0.95, 0.99)
SETTLED = timedelta(seconds=5)  # a row's `ended_at` is a moment older than its commit

Ended = dict[tuple[str, str, str], int]  # by kind, state, reason


@dataclass(frozen=True)
class Queue:
    name: str
    waiting: int
    oldest_s: float | None  # age of the job that has waited longest; None: none waits
    running: int  # jobs that hold a slot
    slots: int
    no_op_age_s: float | None  # since a job that does nothing was done; None: not in a day
    busy: bool  # no runner is free for one, and that is proof enough
    ok: bool
    detail: str


@dataclass(frozen=True)
class Latency:
    """Seconds, by quantile, of a kind's jobs that ended in the last hour; empty: none did."""

    kind: str
    count: int
    first_event: dict[float, float]
    end: dict[float, float]


@dataclass(frozen=True)
class RedisState:
    ok: bool
    used_bytes: int = 0
    limit_bytes: int = 0  # 0: none is set
    keys: int = 0
    clients: int = 0


@dataclass(frozen=True)
class Figures:
    at: datetime
    parts: dict[str, dict[str, Any]]
    queues: list[Queue] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    runners: list[RunnerMemory] = field(default_factory=list)
    redis: RedisState = RedisState(False)
    cpu_s: float = 0.0  # of this web process
    resident_bytes: int = 0
    ended: Ended = field(default_factory=dict)  # since this process started


class _Kept:
    """The last figures, and the counter of ended jobs, which must never count one twice."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.figures: Figures | None = None
        self.counted = 0.0
        self.ended: Ended = {}
        self.counted_to: datetime = timezone.now()


_kept = _Kept()


def current(*, max_age_s: float = KEPT_S) -> Figures:
    """Not older than that. Without a store its figures are missing, and the parts say so."""
    with _kept.lock:
        if _kept.figures is None or time.monotonic() - _kept.counted > max_age_s:
            _kept.figures = _count()
            _kept.counted = time.monotonic()
        return _kept.figures


def _count() -> Figures:
    now = timezone.now()
    parts = health.report()
    there = parts["database"]["ok"]
    process = psutil.Process()
    times = process.cpu_times()
    return Figures(
        at=now,
        parts=parts,
        queues=[_queue(name, parts, now) for name in settings.SLOTS] if there else [],
        latencies=_latencies(now) if there else [],
        runners=_runners(),
        redis=_redis(),
        cpu_s=times.user + times.system,
        resident_bytes=process.memory_info().rss,
        ended=_count_ended(now) if there else dict(_kept.ended),
    )


def _queue(name: str, parts: dict[str, dict[str, Any]], now: datetime) -> Queue:
    due = Q(start_at=None) | Q(start_at__lte=now)
    waiting = Job.objects.filter(due, queue=name, state=states.QUEUED, dispatched_at=None)
    found = waiting.aggregate(number=Count("pk"), oldest=Min("created_at"))
    oldest = found["oldest"]
    worker = parts[f"worker.{name}"]
    return Queue(
        name=name,
        waiting=found["number"],
        oldest_s=max(0.0, (now - oldest).total_seconds()) if oldest else None,
        running=Job.objects.filter(places.holding_slot(), queue=name).count(),
        slots=settings.SLOTS[name],
        no_op_age_s=worker.get("no_op_age_s"),
        busy=worker.get("runners") == "busy",
        ok=worker["ok"],
        detail=worker.get("detail", ""),
    )


def _latencies(now: datetime) -> list[Latency]:
    return [
        _latency(kind.name, now) for kind in sorted(kinds.all_kinds(), key=lambda kind: kind.name)
    ]


def _latency(kind: str, now: datetime) -> Latency:
    rows = Job.objects.filter(kind=kind, ended_at__gt=now - WINDOW).order_by("-ended_at")
    names = ("created_at", "start_at", "first_event_at", "ended_at")
    first, end, number = [], [], 0
    for created, start_at, first_event, ended in rows.values_list(*names)[:ROWS]:
        since = max(created, start_at) if start_at else created  # nobody waits before that
        number += 1
        if ended is not None and ended >= since:
            end.append((ended - since).total_seconds())
        if first_event is not None and first_event >= since:
            first.append((first_event - since).total_seconds())
    return Latency(kind, number, quantiles(first), quantiles(end))


def quantiles(values: Iterable[float]) -> dict[float, float]:
    """The exact ones by nearest rank: the least value that the share q is not above."""
    found = sorted(values)
    return {q: found[max(0, math.ceil(q * len(found)) - 1)] for q in QUANTILES} if found else {}


def _count_ended(now: datetime) -> Ended:
    """Adds what has ended since the last look. Rows that are pruned later stay counted."""
    to = now - SETTLED
    if to > _kept.counted_to:
        names = [kind.name for kind in kinds.all_kinds()]
        rows = Job.objects.filter(
            kind__in=names, ended_at__gt=_kept.counted_to, ended_at__lte=to
        ).values_list("kind", "state", "reason")
        for kind, state, reason, number in rows.annotate(number=Count("pk")).order_by():
            key = (kind, state, reason)
            _kept.ended[key] = _kept.ended.get(key, 0) + number
        _kept.counted_to = to
    return dict(_kept.ended)


def _runners() -> list[RunnerMemory]:
    try:
        return figures.runners()
    except redis.RedisError:
        return []


def _redis() -> RedisState:
    try:
        client = redis.shared()
        info: Any = client.info()
        return RedisState(
            ok=True,
            used_bytes=info["used_memory"],
            limit_bytes=info["maxmemory"],
            keys=sum(room["keys"] for name, room in info.items() if name.startswith("db")),
            clients=info["connected_clients"],
        )
    except redis.RedisError:
        return RedisState(False)


def failures(limit: int = 12) -> Sequence[dict[str, Any]]:
    """The newest failed jobs of the last hour: what failed and why. Nobody's params, no results."""
    since = timezone.now() - WINDOW
    names = [kind.name for kind in kinds.all_kinds()]
    rows = Job.objects.filter(kind__in=names, state=states.FAILED, ended_at__gt=since)
    fields = ("id", "kind", "reason", "message", "message_zh", "ended_at", "owner_id", "request_id")
    return list(rows.order_by("-ended_at").values(*fields)[:limit])
