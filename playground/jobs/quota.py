"""What one owner may take up: bytes of files, and jobs that wait. 0 in the settings: no limit."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Sum

from playground.jobs import limits, states
from playground.jobs.models import Artifact, Job, Upload
from playground.problems import ApiProblem

MB = 2**20


def used_bytes(owner_id: int) -> int:
    """Bytes of the owner's artifacts and uploads."""
    made = Artifact.objects.filter(job__owner_id=owner_id).aggregate(n=Sum("size"))["n"] or 0
    brought = Upload.objects.filter(owner_id=owner_id).aggregate(n=Sum("bytes"))["n"] or 0
    return int(made) + int(brought)


def remaining_bytes(owner_id: int) -> int | None:
    """How many more the owner's files may take; None without a limit."""
    if not settings.QUOTA_MB:
        return None
    return max(0, settings.QUOTA_MB * MB - used_bytes(owner_id))


def waiting(owner_id: int) -> int:
    return Job.objects.filter(owner_id=owner_id, state=states.QUEUED).count()


def check(*, owner_id: int) -> None:
    """Whether the owner may submit one more job. Raises `quota_exceeded` or `too_many_waiting`."""
    if remaining_bytes(owner_id) == 0:
        used = round(used_bytes(owner_id) / MB)
        raise ApiProblem("quota_exceeded", used_mb=used, limit_mb=settings.QUOTA_MB)
    if settings.QUEUED_MAX and (count := waiting(owner_id)) >= settings.QUEUED_MAX:
        raise ApiProblem("too_many_waiting", waiting=count, limit=settings.QUEUED_MAX)


def report(owner_id: int) -> list[dict[str, Any]]:
    """What `GET quota` shows. `limit` is null where there is none, `reset` the seconds until all of
    it is free again, null where only deleting or a start frees some."""
    counted = [
        ("bytes", used_bytes(owner_id), settings.QUOTA_MB * MB, None),
        ("waiting_jobs", waiting(owner_id), settings.QUEUED_MAX, None),
        *limits.report(owner_id),
    ]
    return [
        {"resource": name, "used": used, "limit": limit or None, "reset": reset}
        for name, used, limit, reset in counted
    ]
