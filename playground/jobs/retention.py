"""What need not be kept: old jobs, old idempotency keys, files and streams that no row knows.

`find` only looks; `remove` removes what it found. A job that has not ended is never touched, nor
one that a job that stays names as its input.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.db.models import Model
from django.utils import timezone

from compute.core import kinds
from playground import redis
from playground.jobs import artifacts, idempotency, service, spool, states, stream, upload_files
from playground.jobs.ids import is_job_id
from playground.jobs.models import Job, Upload

log = logging.getLogger(__name__)
# A folder is made before its row commits, or goes after its row: a young one is left alone.
SETTLED_S = 3600.0
EVERY_S = 3600.0
BATCH = 100  # jobs that the dispatcher removes between two looks at the queue
KEYS_AT_ONCE = 500


@dataclass(frozen=True)
class Leftover:
    """A folder (`path`) or a stream that no row knows; `name` is the id it was made for."""

    what: str  # artifacts, spool, uploads, stream
    name: str
    bytes: int
    path: Path | None = None


@dataclass
class Found:
    """What may go, with sizes in bytes."""

    jobs: list[tuple[Job, int]] = field(default_factory=list)
    keys: int = 0
    leftovers: list[Leftover] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.jobs) + sum(left.bytes for left in self.leftovers)


def find() -> Found:
    """Everything that may go. Removes nothing."""
    now = timezone.now()
    jobs = [(job, sum(_size(folder) for folder in _folders(job.pk))) for job in old_jobs(now)]
    return Found(jobs, idempotency.old_keys().count(), [*_orphans(), *_streams()])


def remove(found: Found) -> None:
    """Removes what `find` found, as far as it is still there."""
    _delete(job for job, _ in found.jobs)
    idempotency.old_keys().delete()
    for left in found.leftovers:
        if left.path is not None:
            shutil.rmtree(left.path, ignore_errors=True)
        else:
            stream.delete(left.name)


class Hourly:
    """The dispatcher's own pruning: old jobs and keys, a few at a time so that nobody waits."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    def tick(self) -> int:
        """How many jobs it has removed now."""
        if time.monotonic() < self._next:
            return 0
        now = timezone.now()
        old = old_jobs(now)[:BATCH]
        _delete(old)
        if len(old) < BATCH:
            self._next = time.monotonic() + EVERY_S
            upload_files.sweep()
            keys = idempotency.old_keys()
            if keys.exists():
                keys.delete()
        return len(old)


def old_jobs(now: datetime) -> list[Job]:
    """Jobs past their time that nothing which stays depends on, the oldest first."""
    before = {"interactive": now - timedelta(hours=settings.KEEP_INTERACTIVE_H)}
    if settings.KEEP_TRAINING_DAYS:
        before["training"] = now - timedelta(days=settings.KEEP_TRAINING_DAYS)
    ended = Job.objects.filter(state__in=states.TERMINAL, log_closed=True).order_by("ended_at")
    old = {
        job.pk: job
        for queue, moment in before.items()
        for job in ended.filter(queue=queue, ended_at__lt=moment)
    }
    if old:
        for stays in _named_by_those_that_stay(old):
            del old[stays]
    return list(old.values())


def _named_by_those_that_stay(old: dict[str, Job]) -> set[str]:
    """Those of `old` that a job which stays names, be it through others of `old`."""
    refs = {kind.name: tuple(kind.refs) for kind in kinds.all_kinds() if kind.refs}
    rows = Job.objects.filter(kind__in=refs).values_list("pk", "kind", "params")
    names = {job_id: {params.get(name) for name in refs[kind]} for job_id, kind, params in rows}
    stay: set[str] = set()
    look = [job_id for job_id in names if job_id not in old]
    while look:
        for named in names.get(look.pop(), ()):
            if named in old and named not in stay:
                stay.add(named)
                look.append(named)
    return stay


def _delete(jobs: Iterable[Job]) -> None:
    for job in jobs:
        try:
            service.delete(job=job)
        except service.NotEnded:  # it is gone, by its owner's hand
            continue


def _folders(job_id: str) -> Iterator[Path]:
    yield artifacts.job_folder(job_id)
    yield spool.folder(job_id)


def _orphans() -> Iterator[Leftover]:
    """Folders named by an id that no row has."""
    rooms: tuple[tuple[str, Path, type[Model]], ...] = (
        ("artifacts", artifacts.room(), Job),
        ("spool", Path(settings.SPOOL_DIR), Job),
        ("uploads", Path(settings.UPLOADS_DIR), Upload),
    )
    for what, room, model in rooms:
        settled = time.time() - SETTLED_S
        paths = {
            path.name: path
            for path in (room.iterdir() if room.is_dir() else ())
            if is_job_id(path.name) and path.is_dir() and path.stat().st_mtime < settled
        }
        for name in _without_row(model, list(paths)):
            yield Leftover(what, name, _size(paths[name]), paths[name])


def _streams() -> Iterator[Leftover]:
    """Streams of jobs that no row knows. With Redis away there is nothing to say about them."""
    client = redis.shared()
    try:
        found = [
            key.partition(":")[2] for key in client.scan_iter(match=stream.key("*"), count=1000)
        ]
        for name in _without_row(Job, [name for name in found if is_job_id(name)]):
            used = cast("int | None", client.memory_usage(stream.key(name)))
            yield Leftover("stream", name, used or 0)
    except redis.RedisError as error:
        log.warning("streams are not looked at: %s", error)


def _without_row(model: type[Model], names: list[str]) -> Iterator[str]:
    rows: Any = model._default_manager
    for first in range(0, len(names), KEYS_AT_ONCE):
        some = names[first : first + KEYS_AT_ONCE]
        known = set(rows.filter(pk__in=some).values_list("pk", flat=True))
        yield from (name for name in some if name not in known)


def _size(folder: Path) -> int:
    """Bytes of the files in a folder; links are not followed."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
