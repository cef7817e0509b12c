"""Who waits, and whose turn it is, as rows: `playground.jobs.fairness` on the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, Min, Q, QuerySet

from playground.classroom.models import Class
from playground.jobs import states
from playground.jobs.fairness import Ring, Seat, Turns
from playground.jobs.models import Job, Turn

ALONE = 0  # the class of those without one
ALONE_WEIGHT = 1
QUEUE_ITSELF = -1  # a row that a hand-out locks, so that two never count the same free slot


@dataclass
class Line:
    """What waits in one queue, and the turns."""

    queue: str
    waiting: dict[int, dict[int, int]]  # class → owner → jobs
    weights: dict[int, int]
    turns: Turns
    kept: list[Turn]  # the rows as they were


def waiting(queue: str, now: datetime) -> QuerySet[Job]:
    """Jobs of the queue that could start now."""
    due = Q(start_at=None) | Q(start_at__lte=now)
    return Job.objects.filter(due, queue=queue, state=states.QUEUED, dispatched_at=None)


def read(queue: str, now: datetime) -> Line:
    """The line as it stands; who came since the last start stands behind those who were there."""
    rows = waiting(queue, now).order_by().values_list("group", "owner_id")
    found: dict[int, dict[int, int]] = {}
    counted = rows.annotate(Count("pk"), oldest=Min("created_at"))
    for group, owner, count, _ in sorted(counted, key=lambda row: row[3]):
        found.setdefault(group or ALONE, {})[owner] = count
    weights = {ALONE: ALONE_WEIGHT, **_weights(found)}
    turns = Turns()
    seats: dict[int, dict[int, Seat]] = {}
    kept = list(Turn.objects.filter(queue=queue, group__gte=0))
    for row in kept:
        # The ring of classes is kept beside the rings of owners, under an id that no class has.
        ring, member = (row.group, row.owner) if row.owner else (QUEUE_ITSELF, row.group)
        seats.setdefault(ring, {})[member] = Seat(row.position, row.deficit)
    turns.classes = Ring(seats.pop(QUEUE_ITSELF, None))
    turns.owners = {group: Ring(found) for group, found in seats.items()}
    turns.admit(found)
    return Line(queue, found, weights, turns, kept)


def write(line: Line) -> None:
    """Keeps the turns, so that a restart goes on with them. Writes what has changed."""
    wanted = {(group, 0): seat for group, seat in line.turns.classes.seats.items()}
    for group, ring in line.turns.owners.items():
        wanted |= {(group, owner): seat for owner, seat in ring.seats.items()}
    stale = []
    for row in line.kept:
        seat = wanted.get((row.group, row.owner))
        if seat == (row.position, row.deficit):
            del wanted[row.group, row.owner]
        else:
            stale.append(row.pk)
    if stale:
        Turn.objects.filter(pk__in=stale).delete()
    if wanted:
        Turn.objects.bulk_create(
            Turn(queue=line.queue, group=g, owner=o, position=seat.position, deficit=seat.deficit)
            for (g, o), seat in wanted.items()
        )


def clear(queue: str) -> None:
    """Nobody waits, so nobody keeps a seat."""
    seats = Turn.objects.filter(queue=queue, group__gte=0)
    if seats.exists():  # without taking the write lock
        seats.delete()


def lock(queue: str) -> None:
    """Within a transaction: waits until no other dispatcher hands out this queue. SQLite's own
    write lock does that already."""
    if connection.features.has_select_for_update:
        row = {"queue": queue, "group": QUEUE_ITSELF, "owner": 0}
        Turn.objects.select_for_update().get_or_create(**row, defaults={"position": 0})


def pick(queue: str, now: datetime, starts: list[tuple[int, int]]) -> list[tuple[str, int]]:
    """(job, attempt) of each start: the owner's oldest first. What has been cancelled in this very
    moment is left out."""
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for (group, owner), count in Counter(starts).items():
        rows = waiting(queue, now).filter(group=group or None, owner_id=owner)
        columns = rows.order_by("created_at", "pk").values_list("pk", "attempt")
        found[group, owner] = list(columns[:count])
    return [found[start].pop(0) for start in starts if found[start]]


def _weights(groups: dict[int, dict[int, int]]) -> dict[int, int]:
    classes = [group for group in groups if group != ALONE]
    if not classes:
        return {}
    found = Class.objects.filter(pk__in=classes).values_list("pk", "weight")
    return {group: max(1, weight) for group, weight in found}
