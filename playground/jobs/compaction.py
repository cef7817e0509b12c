"""Compaction: some time after a job's end its log becomes one compressed, indexed file.

The file is complete under its own name before the attempts' files go, and reading prefers it
(`spool.read_all`), so a crash at any point leaves a whole log and work that can be done again.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from playground import redis
from playground.jobs import logfile, service, spool, states, stream
from playground.jobs.models import Job

log = logging.getLogger(__name__)
PORTION_S = 0.05  # of the dispatcher's time, each second
IDLE_S = 10.0  # at most, until the next look at the rows
BATCH = 100


class Compactor:
    """Works on in portions; a long log takes many."""

    def __init__(self) -> None:
        self._work: Generator[None] | None = None
        self._next = 0.0

    def tick(self, portion_s: float = PORTION_S) -> None:
        """One portion, or a block if that is longer."""
        until = time.monotonic() + portion_s
        if self._work is None:
            if time.monotonic() < self._next:
                return
            self._work = compact_due()
        for _ in self._work:
            if time.monotonic() >= until:
                return
        self._work = None
        self._next = time.monotonic() + min(IDLE_S, settings.COMPACT_AFTER_S)


def compact_due() -> Generator[None]:
    """Compacts all logs whose time has come, pausing after each block and each job."""
    before = timezone.now() - timedelta(seconds=settings.COMPACT_AFTER_S)
    due = Job.objects.filter(state__in=states.TERMINAL, log_closed=True, compacted=False)
    for job in due.filter(ended_at__lte=before).order_by("ended_at")[:BATCH]:
        try:
            yield from compact(job)
        except OSError as error:  # a full disk, most likely; the log stays as it is
            log.warning("job %s: its log is compacted later: %s", job.pk, error)
        yield


def compact(job: Job) -> Generator[None]:
    """Makes the one file, marks the row, removes the attempts' files. Safe to repeat."""
    target = spool.compacted(job.pk)
    if not target.exists() and spool.attempts(job.pk):
        if (last := spool.last(job.pk)) is None or last.type != "end":
            service.close_log(job)
        draft = target.with_suffix(f".{os.getpid()}.draft")
        lines = ((e.id, f"{e.line}\n".encode()) for e in spool.read_all(job.pk))
        yield from logfile.write(draft, lines)
        draft.replace(target)
        _sync(target.parent)
    _close_stream(job.pk)
    if target.exists():
        for path in target.parent.iterdir():
            if path != target:
                path.unlink(missing_ok=True)
    if not Job.objects.filter(pk=job.pk).update(compacted=True):
        spool.delete(job.pk)  # deleted meanwhile


def _close_stream(job_id: str) -> None:
    """A Redis that was killed may have forgotten the end, or that the stream is to expire."""
    client = redis.shared()
    try:
        if client.ttl(stream.key(job_id)) == -1:
            stream.resend(client, job_id, stream.last_id(client, job_id))
            stream.expire(client, job_id)
    except redis.RedisError as error:
        log.warning("job %s: its stream is left as it is: %s", job_id, error)


def _sync(folder: Path) -> None:
    """The new name is on the disk before the old files go."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
