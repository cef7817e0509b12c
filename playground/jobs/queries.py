"""Reads. Every one takes the owner's id: what someone else owns does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import Model, QuerySet

from compute.core.texts import Text
from playground.jobs import places
from playground.jobs.ids import is_job_id
from playground.jobs.models import Artifact, Job


class NoSuchJob(Exception):
    """No job of that id, or not this owner's."""


Row = TypeVar("Row", bound=Model)


class Page(NamedTuple, Generic[Row]):
    items: list[Row]
    next: str | None
    prev: str | None


def job(*, owner_id: int, job_id: str) -> Job:
    """Raises `NoSuchJob`."""
    found = Job.objects.filter(pk=job_id, owner_id=owner_id).first() if is_job_id(job_id) else None
    if found is None:
        raise NoSuchJob(job_id)
    return found


def jobs(
    *,
    owner_id: int,
    kind: str = "",
    state: str = "",
    group: int | None = None,
    cursor: str = "",
    limit: int = 50,
) -> Page[Job]:
    """The owner's jobs, newest first. Raises ValueError for a cursor of another list."""
    rows = Job.objects.filter(owner_id=owner_id)
    if kind:
        rows = rows.filter(kind=kind)
    if state:
        rows = rows.filter(state=state)
    if group is not None:
        rows = rows.filter(group_id=group)
    return page_of(rows, cursor=cursor, limit=limit)


def page_of(rows: QuerySet[Row], *, cursor: str, limit: int) -> Page[Row]:
    """Rows whose ids sort by time, newest first. `cursor` is `<id` for older ones, `>id` for newer
    ones: what an earlier page gave as `next` or `prev`. Raises ValueError for any other cursor."""
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
        "class": job.group_id,
        "device": job.device or None,
        "created_at": _rfc3339(job.created_at),
        "start_at": _rfc3339(job.start_at),
        "cancel_at": _rfc3339(job.cancel_at),
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
    found = list(found)
    known = places.of(found)
    return [as_json(row, lang=lang, place=known.get(row.pk)) for row in found]


def _rfc3339(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None
