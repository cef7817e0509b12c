"""A supervisor's writes. Each is one UPDATE under the condition that this attempt still holds the
lease; zero rows mean that it doesn't, and the supervisor kills its runner and leaves.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import psutil
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from playground import stores
from playground.jobs import queries, states
from playground.jobs.models import Artifact, Attempt, Job
from playground.jobs.outcomes import Outcome
from playground.jobs.runners import kill_group

log = logging.getLogger(__name__)
HOST = socket.gethostname()


class LeaseLost(Exception):
    """The row belongs to another attempt now, or to none."""


@dataclass(frozen=True)
class Made:
    """A file that the runner says it has written."""

    name: str
    type: str
    size: int
    sha256: str


class Lease:
    """One worker's hold on one attempt of one job."""

    def __init__(self, job: Job, worker: str, resume_from: int | None) -> None:
        self.job, self.worker, self.resume_from = job, worker, resume_from
        self.state = states.STARTING
        self._rows = Q(pk=job.pk, attempt=job.attempt, lease_worker=worker, state__in=states.HELD)

    def _write(self, **values: Any) -> None:
        if not Job.objects.filter(self._rows).update(**values):
            raise LeaseLost(f"job {self.job.pk} attempt {self.job.attempt}")

    @stores.repeated
    def renew(self, progress: Any = None) -> bool:
        """Prolongs the lease. True when somebody has asked to cancel."""
        values: dict[str, Any] = {"lease_expires_at": _expiry()}
        if progress is not None:
            values["progress"] = progress
        self._write(**values)
        return Job.objects.filter(pk=self.job.pk, cancel_requested_at__isnull=False).exists()

    @stores.repeated
    def move(self, to: str) -> None:
        """`running` or `paused`, as the runner reports it. A repetition is no move."""
        if to == self.state:
            return
        states.check(self.state, to)
        first = self.job.first_event_at
        if to == states.RUNNING and first is None:
            first = timezone.now()
        self._write(state=to, lease_expires_at=_expiry(), first_event_at=first)
        self.job.first_event_at, self.state = first, to

    @stores.repeated
    def record_runner(self, pid: int) -> None:
        """Remembers the runner's process group, for a later attempt to end if this one can't."""
        Attempt.objects.filter(job_id=self.job.pk, number=self.job.attempt).update(
            pid=pid, pid_started=_started(pid)
        )

    @stores.repeated
    def register(self, made: Sequence[Made]) -> None:
        """Adds files to the job, all or none."""
        with transaction.atomic():
            self._write(lease_expires_at=_expiry())
            Artifact.objects.bulk_create(
                [
                    Artifact(
                        job_id=self.job.pk,
                        attempt=self.job.attempt,
                        name=item.name,
                        type=item.type,
                        size=item.size,
                        sha256=item.sha256,
                    )
                    for item in made
                ],
                update_conflicts=True,
                update_fields=["type", "size", "sha256"],
                **_conflict_target(),
            )

    @stores.repeated
    def finish(self, outcome: Outcome, progress: Any = None) -> None:
        """The terminal row. It commits before anyone hears of the end."""
        route = _route(self.state, outcome.state)
        for before, after in pairwise(route):
            states.check(before, after)
        values: dict[str, Any] = {"progress": progress} if progress is not None else {}
        now = timezone.now()
        with transaction.atomic():
            self._write(
                **outcome.row(),
                ended_at=now,
                lease_worker="",
                lease_expires_at=None,
                **values,
            )
            self._close_attempt(outcome.state)
        self.state = outcome.state

    def log_closed(self) -> None:
        Job.objects.filter(pk=self.job.pk, attempt=self.job.attempt).update(log_closed=True)

    @stores.repeated
    def park(self) -> None:
        """Paused without a slot: the checkpoint is on disk, `resume` queues the next attempt."""
        with transaction.atomic():
            self._write(lease_worker="", lease_expires_at=None)
            self._close_attempt("parked")

    @stores.repeated
    def requeue(self, *, retried: bool | None = None) -> None:
        """Back to the queue for the next attempt; `retried` says that this spends the one retry,
        which a worker that goes away on purpose doesn't."""
        after = self.job.attempt + 1
        states.check(self.state, states.QUEUED, attempt_before=self.job.attempt, attempt_to=after)
        with transaction.atomic():
            self._write(
                state=states.QUEUED,
                attempt=after,
                dispatched_at=None,
                lease_worker="",
                lease_expires_at=None,
                retried=self.job.retried if retried is None else retried,
            )
            self._close_attempt("stopped")
        self.state = states.QUEUED

    def _close_attempt(self, outcome: str) -> None:
        Attempt.objects.filter(job_id=self.job.pk, number=self.job.attempt).update(
            ended_at=timezone.now(), outcome=outcome
        )


@stores.repeated
def claim(*, job_id: str, attempt: int, worker: str) -> Lease | None:
    """Takes the job if it still waits with this attempt; None for a message that came twice or
    too late. What an earlier attempt may have left running on this machine is ended first."""
    now = timezone.now()
    with transaction.atomic():
        taken = Job.objects.filter(pk=job_id, state=states.QUEUED, attempt=attempt).update(
            state=states.STARTING,
            lease_worker=worker,
            lease_expires_at=_expiry(),
            started_at=Coalesce("started_at", now),
        )
        if not taken:
            return None
        checkpoint = queries.newest_checkpoint(job_id) if attempt > 1 else None
        resume_from = checkpoint.attempt if checkpoint else None
        Attempt.objects.create(
            job_id=job_id, number=attempt, worker=worker, host=HOST, resume_from=resume_from
        )
        job = Job.objects.get(pk=job_id)
    states.check(states.QUEUED, states.STARTING)
    if attempt > 1:
        _end_leftovers(job_id, attempt)
    return Lease(job, worker, resume_from)


def _end_leftovers(job_id: str, attempt: int) -> None:
    earlier = Attempt.objects.filter(
        job_id=job_id, number__lt=attempt, host=HOST, ended_at=None, pid__isnull=False
    )
    for row in earlier:
        if row.pid is not None and _started(row.pid) == row.pid_started:
            log.warning("job %s: ending what attempt %s left running", job_id, row.number)
            kill_group(row.pid)
    Attempt.objects.filter(job_id=job_id, number__lt=attempt, ended_at=None).update(
        ended_at=timezone.now(), outcome="worker_lost"
    )


def _route(before: str, after: str) -> list[str]:
    """The moves from `before` to the end. A job that ended before its `running` was seen, or right
    after the step that it made while paused, has been running in between."""
    if after in states.MOVES[before] or states.RUNNING not in states.MOVES[before]:
        return [before, after]
    return [before, states.RUNNING, after]


def _expiry() -> Any:
    return timezone.now() + timedelta(seconds=settings.LEASE_S)


def _started(pid: int) -> float | None:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _conflict_target() -> dict[str, Any]:
    """MySQL finds the conflict by itself and refuses to be told; SQLite must be told."""
    if connection.vendor == "mysql":
        return {}
    return {"unique_fields": ["job", "attempt", "name"]}
