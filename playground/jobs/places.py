"""The place of a job that waits, and when its turn may come.

The place follows from the very turns by which the dispatcher starts jobs. The estimate follows
from how long jobs of the same kinds took lately; where nobody can know, there is none.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Q
from django.utils import timezone

from playground.jobs import lines, states
from playground.jobs.lines import Line
from playground.jobs.models import Job

RECENT = 20  # ended jobs of a kind whose median stands for the next one
SHOWN = 50  # of one's own waiting jobs

Ahead = tuple[dict[int, int], dict[int, int]]  # as `Turns.ahead` gives it


def holding_slot() -> Q:
    """Jobs that take up a slot: handed out and unclaimed, or held by a worker."""
    return Q(state=states.QUEUED, dispatched_at__isnull=False) | (
        Q(state__in=states.HELD) & ~Q(lease_worker="")
    )


def of(jobs: Iterable[Job]) -> dict[str, int]:
    """The place of each of the jobs that waits: how many start before it, plus one. A job with a
    slot, or whose time to start has not come, has none."""
    now = timezone.now()
    queues: dict[str, list[Job]] = {}
    for job in jobs:
        if job.state == states.QUEUED and job.dispatched_at is None:
            queues.setdefault(job.queue, []).append(job)
    found = {}
    for queue, mine in queues.items():
        line = lines.read(queue, now)
        for job_id, ahead in _ahead(line, mine, now).items():
            found[job_id] = _place(ahead)
    return found


def place(job: Job) -> int | None:
    return of([job]).get(job.pk)


def queues(*, owner_id: int) -> list[dict[str, Any]]:
    """Each queue: its slots, how many are taken, who waits, and the owner's own jobs in it, each
    with its place and the seconds until it may start."""
    now = timezone.now()
    found = []
    for name, slots in settings.SLOTS.items():
        rows = Job.objects.filter(queue=name, state=states.QUEUED, dispatched_at=None)
        mine = list(rows.filter(owner_id=owner_id).order_by("created_at", "pk")[:SHOWN])
        line = lines.read(name, now)
        ahead = _ahead(line, mine, now)
        forecast = _Forecast(line, now) if ahead else None
        found.append(
            {
                "name": name,
                "slots": slots,
                "busy": Job.objects.filter(holding_slot(), queue=name).count(),
                "waiting": sum(sum(owners.values()) for owners in line.waiting.values()),
                "mine": [
                    {
                        "id": row.pk,
                        "place": _place(ahead[row.pk]) if row.pk in ahead else None,
                        "estimate_s": forecast.until(row, ahead[row.pk])
                        if forecast and row.pk in ahead
                        else None,
                    }
                    for row in mine
                ],
            }
        )
    return found


def _ahead(line: Line, jobs: Iterable[Job], now: datetime) -> dict[str, Ahead]:
    """What starts before each of the jobs; those that are not in the line are left out."""
    wanted: dict[tuple[int, int], set[str]] = {}
    for job in jobs:
        wanted.setdefault((job.group_id or lines.ALONE, job.owner_id), set()).add(job.pk)
    found = {}
    for (group, owner), ids in wanted.items():
        own = lines.waiting(line.queue, now).filter(group=group or None, owner_id=owner)
        order = own.order_by("created_at", "pk").values_list("pk", flat=True)
        there = line.waiting.get(group, {}).get(owner, 0)  # more may have come since
        for nth, job_id in enumerate(order[:there], 1):
            if job_id in ids:
                turns = line.turns
                found[job_id] = turns.ahead(line.waiting, line.weights, group, owner, nth)
    return found


def _place(ahead: Ahead) -> int:
    return sum(ahead[1].values()) + 1


class _Forecast:
    """How long what runs and what waits in one queue may still take."""

    def __init__(self, line: Line, now: datetime) -> None:
        self._usual: dict[str, float | None] = {}
        self._mean: dict[tuple[int, int], float | None] = {}  # seconds a job, by class and owner
        self._classes: dict[int, float | None] = {}
        self._weigh(line, now)
        self._free_in = self._slots(line.queue, now)

    def until(self, job: Job, ahead: Ahead) -> float | None:
        """Seconds until the job may start: until the slots have done what comes before it."""
        group = job.group_id or lines.ALONE
        owners, classes = ahead
        parts = [(count, self._mean.get((group, owner))) for owner, count in owners.items()]
        parts += [(n, self._classes.get(other)) for other, n in classes.items() if other != group]
        work = 0.0
        for count, each in parts:
            if count and each is None:
                return None
            work += count * (each or 0.0)
        return None if self._free_in is None else round(poured(self._free_in, work), 1)

    def _weigh(self, line: Line, now: datetime) -> None:
        rows = lines.waiting(line.queue, now).order_by().values_list("group", "owner_id", "kind")
        times: dict[tuple[int, int], list[tuple[int, float | None]]] = {}
        for group, owner, kind, count in rows.annotate(Count("pk")):
            key = (group or lines.ALONE, owner)
            times.setdefault(key, []).append((count, self._usually(kind)))
        whole: dict[int, list[tuple[int, float | None]]] = {}
        for key, parts in times.items():
            self._mean[key] = _mean(parts)
            whole.setdefault(key[0], []).extend(parts)
        self._classes = {group: _mean(parts) for group, parts in whole.items()}

    def _slots(self, queue: str, now: datetime) -> list[float] | None:
        """Seconds until each slot is free; None when one of them can't be told."""
        rows = Job.objects.filter(holding_slot(), queue=queue)
        left = [self._left(job, now) for job in rows]
        free = [0.0] * max(0, settings.SLOTS[queue] - len(left))
        known = [seconds for seconds in left if seconds is not None]
        return free + known if len(known) == len(left) else None

    def _left(self, job: Job, now: datetime) -> float | None:
        """Seconds that a job with a slot still takes. Nobody knows when a pause ends."""
        if job.state == states.PAUSED:
            return None
        progress: dict[str, Any] = job.progress or {}
        eta, done, total = progress.get("eta_s"), progress.get("done"), progress.get("total")
        if isinstance(eta, int | float):
            return max(0.0, float(eta))
        spent = (now - job.started_at).total_seconds() if job.started_at else 0.0
        told = isinstance(done, int | float) and isinstance(total, int | float)
        if told and done and job.attempt == 1:  # a resumed job did some of it before its pause
            return max(0.0, float(spent * (total - done) / done))
        usual = self._usually(job.kind)
        return None if usual is None else max(0.0, usual - spent)

    def _usually(self, kind: str) -> float | None:
        if kind not in self._usual:
            ended = Job.objects.filter(kind=kind, ended_at__isnull=False, started_at__isnull=False)
            times = ended.order_by("-ended_at").values_list("started_at", "ended_at")
            seconds = [(e - s).total_seconds() for s, e in times[:RECENT] if s and e]
            self._usual[kind] = statistics.median(seconds) if seconds else None
        return self._usual[kind]


def poured(free_in: list[float], work: float) -> float:
    """When a slot is free after `work` seconds have been spread over slots that are free in
    `free_in` seconds, as water spreads over steps."""
    steps = sorted(free_in)
    for count, level in enumerate(steps, 1):
        reached = level + work / count
        if count == len(steps) or reached <= steps[count]:
            return reached
        work -= (steps[count] - level) * count
    return 0.0


def _mean(parts: list[tuple[int, float | None]]) -> float | None:
    total, number = 0.0, 0
    for count, each in parts:
        if each is None:
            return None
        total, number = total + count * each, number + count
    return total / number if number else None
