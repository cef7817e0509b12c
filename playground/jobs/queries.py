"""Reads. Every one takes the owner's id: what someone else owns does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q

from compute.core.texts import Text
from playground.jobs import states
from playground.jobs.ids import is_job_id
from playground.jobs.models import Artifact, Job


class NoSuchJob(Exception):
    """No job of that id, or not this owner's."""


class Page(NamedTuple):
    items: list[Job]
    next: str | None
    prev: str | None


def job(*, owner_id: int, job_id: str) -> Job:
    """Raises `NoSuchJob`."""
    found = Job.objects.filter(pk=job_id, owner_id=owner_id).first() if is_job_id(job_id) else None
    if found is None:
        raise NoSuchJob(job_id)
    return found


def jobs(
    *, owner_id: int, kind: str = "", state: str = "", cursor: str = "", limit: int = 50
) -> Page:
    """The owner's jobs, newest first. `cursor` is `<id` for older ones, `>id` for newer ones:
    what an earlier page gave as `next` or `prev`. Raises ValueError for any other cursor."""
    rows = Job.objects.filter(owner_id=owner_id)
    if kind:
        rows = rows.filter(kind=kind)
    if state:
        rows = rows.filter(state=state)
    if cursor and not (cursor[0] in "<>" and is_job_id(cursor[1:])):
        raise ValueError("not a cursor of this list")
    newer = cursor[:1] == ">"
    if newer:
        found = list(rows.filter(pk__gt=cursor[1:]).order_by("pk")[: limit + 1])
    elif cursor:
        found = list(rows.filter(pk__lt=cursor[1:]).order_by("-pk")[: limit + 1])
    else:
        found = list(rows.order_by("-pk")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    if newer:
        found.reverse()
    if not found:
        return Page([], None, None)
    has_older, has_newer = (True, more) if newer else (more, bool(cursor))
    return Page(
        found,
        f"<{found[-1].pk}" if has_older else None,
        f">{found[0].pk}" if has_newer else None,
    )


def place(job: Job) -> int | None:
    """How many jobs stand before this one in its queue, plus one; None once it has a slot.

    Counted by age. Owners take turns, so the true place can only be better for a small owner.
    """
    if job.state != states.QUEUED or job.dispatched_at is not None:
        return None
    ahead = Q(created_at__lt=job.created_at) | Q(created_at=job.created_at, pk__lt=job.pk)
    waiting = Job.objects.filter(ahead, queue=job.queue, state=states.QUEUED, dispatched_at=None)
    return waiting.count() + 1


def holding_slot() -> Q:
    """Jobs that take up a slot: handed out and unclaimed, or held by a worker."""
    return Q(state=states.QUEUED, dispatched_at__isnull=False) | (
        Q(state__in=states.HELD) & ~Q(lease_worker="")
    )


def queues(*, owner_id: int) -> list[dict[str, Any]]:
    """Each queue: its slots, how many are taken, who waits, and the owner's own jobs in it."""
    found = []
    for name, slots in settings.SLOTS.items():
        rows = Job.objects.filter(queue=name)
        waiting = rows.filter(state=states.QUEUED, dispatched_at=None)
        mine = list(waiting.filter(owner_id=owner_id).order_by("created_at", "pk")[:50])
        found.append(
            {
                "name": name,
                "slots": slots,
                "busy": rows.filter(holding_slot()).count(),
                "waiting": waiting.count(),
                "mine": [{"id": row.pk, "place": place(row)} for row in mine],
            }
        )
    return found


def artifacts(job_id: str) -> list[Artifact]:
    """The files that the job has made, by name; of several attempts the latest counts."""
    latest = {row.name: row for row in Artifact.objects.filter(job_id=job_id).order_by("attempt")}
    return [latest[name] for name in sorted(latest)]


def artifact(*, owner_id: int, job_id: str, name: str) -> Artifact | None:
    """One file; None when the job hasn't made it. Raises `NoSuchJob`."""
    job(owner_id=owner_id, job_id=job_id)
    rows = Artifact.objects.filter(job_id=job_id, name=name)
    return rows.order_by("-attempt").first()


def newest_checkpoint(job_id: str) -> Artifact | None:
    rows = Artifact.objects.filter(job_id=job_id, name__startswith="checkpoints/")
    return rows.order_by("-attempt", "-pk").first()


def as_json(job: Job, *, lang: str, place: int | None = None) -> dict[str, Any]:
    """A job as clients see it, everywhere: REST, socket, pages."""
    base = f"/api/v1/jobs/{job.pk}"
    lab, _, verb = job.kind.partition(".")
    role = "trace" if verb == "trace" else "run"
    return {
        "id": job.pk,
        "kind": job.kind,
        "params": job.params,
        "state": job.state,
        "attempt": job.attempt,
        "queue": job.queue,
        "place": place,
        "progress": job.progress,
        "result": job.result,
        "reason": job.reason or None,
        "message": Text(job.message, job.message_zh).get(lang) or None,
        "cancel_requested": job.cancel_requested_at is not None,
        "owner": job.owner_id,
        "created_at": _rfc3339(job.created_at),
        "started_at": _rfc3339(job.started_at),
        "ended_at": _rfc3339(job.ended_at),
        "urls": {
            "self": base,
            "events": f"{base}/events",
            "control": f"{base}/control",
            "artifacts": f"{base}/artifacts",
            "page": f"/labs/{lab}?{role}={job.pk}",
        },
    }


def with_places(found: Iterable[Job], *, lang: str) -> list[dict[str, Any]]:
    return [as_json(row, lang=lang, place=place(row)) for row in found]


def _rfc3339(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None
