"""Rows of uploads: reads and writes. Their files: `upload_files`."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Sum

from compute.core import kinds
from playground.jobs import queries, states, upload_files
from playground.jobs.ids import is_job_id
from playground.jobs.models import Job, Upload

FORMS = kinds.UPLOAD_FORMS


class NoSuchUpload(Exception):
    """No upload of that id, or not this owner's."""


class InUse(Exception):
    """Jobs that have not ended need it; a resumed one reads it again."""

    def __init__(self, job_ids: list[str]) -> None:
        self.job_ids = job_ids
        super().__init__(", ".join(job_ids))


def upload(*, owner_id: int, upload_id: str) -> Upload:
    """Raises `NoSuchUpload`."""
    rows = Upload.objects.filter(pk=upload_id, owner_id=owner_id)
    found = rows.first() if is_job_id(upload_id) else None
    if found is None:
        raise NoSuchUpload(upload_id)
    return found


def page(
    *, owner_id: int, form: str = "", cursor: str = "", limit: int = 50
) -> queries.Page[Upload]:
    """The owner's uploads, newest first. Raises ValueError for a cursor of another list."""
    rows = Upload.objects.filter(owner_id=owner_id)
    return queries.page_of(rows.filter(form=form) if form else rows, cursor=cursor, limit=limit)


def total_bytes(owner_id: int) -> int:
    """What the owner's uploads came to, for the quota."""
    return Upload.objects.filter(owner_id=owner_id).aggregate(n=Sum("bytes"))["n"] or 0


def create(*, owner_id: int, coming: upload_files.Incoming, name: str, found: Any) -> Upload:
    """Keeps a file that has passed its check: first in its place, then as a row."""
    row = Upload(
        id=coming.id,
        owner_id=owner_id,
        name=name,
        form=found["form"],
        encoding=found["encoding"],
        bytes=coming.size,
        sha256=coming.sha256,
        about=found["about"],
    )
    coming.keep()
    try:
        row.save(force_insert=True)
    except BaseException:
        upload_files.delete(row.pk)
        raise
    return row


def delete(*, upload: Upload) -> None:
    """Row, then file. Raises `InUse`."""
    with transaction.atomic():
        needed = users(upload)
        if needed:
            raise InUse(needed)
        Upload.objects.filter(pk=upload.pk).delete()
    upload_files.delete(upload.pk)


def users(upload: Upload) -> list[str]:
    """Ids of the owner's jobs that have not ended and name it in one of their params."""
    wanted = f"{kinds.UPLOAD}{upload.form}"
    names = {
        kind.name: [name for name, allowed in kind.refs.items() if wanted in allowed]
        for kind in kinds.all_kinds()
    }
    rows = Job.objects.filter(owner_id=upload.owner_id, kind__in=[k for k, n in names.items() if n])
    waiting = rows.exclude(state__in=states.TERMINAL).order_by("pk")
    return [
        job.pk for job in waiting if upload.pk in [job.params.get(name) for name in names[job.kind]]
    ]


def as_json(upload: Upload) -> dict[str, Any]:
    """An upload as clients see it."""
    return {
        "id": upload.pk,
        "name": upload.name,
        "bytes": upload.bytes,
        "sha256": upload.sha256,
        "form": upload.form,
        "encoding": upload.encoding or None,
        "about": upload.about,
        "created_at": upload.created_at.isoformat().replace("+00:00", "Z"),
        "urls": {"self": f"/api/v1/uploads/{upload.pk}"},
    }
