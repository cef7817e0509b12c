"""What the dispatcher brings back: lost messages, lost workers, missing ends, passed deadlines."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from playground.jobs import outcomes, queries, service, states
from playground.jobs.models import Attempt, Job

log = logging.getLogger(__name__)

REPUBLISH_S = 10  # a message unclaimed for so long was lost
RECONCILE_S = 5  # an end that is missing for so long will not come by itself
BATCH = 100  # rows at once; the rest follows a second later


def unclaimed() -> list[tuple[str, str, int]]:
    """(queue, job, attempt) of messages that nobody took in ten seconds; their clock restarts."""
    now = timezone.now()
    late = Q(state=states.QUEUED, dispatched_at__lt=now - timedelta(seconds=REPUBLISH_S))
    found = list(Job.objects.filter(late).values_list("queue", "pk", "attempt"))
    for _, job_id, attempt in found:
        Job.objects.filter(late, pk=job_id, attempt=attempt).update(dispatched_at=now)
    return found


def expire() -> int:
    """Jobs without a worker whose deadline from the submission has passed: aborted where they
    wait, canceled where they are parked. A supervisor watches its own job's."""
    now = timezone.now()
    late = Job.objects.filter(cancel_at__lte=now, state__in=(states.QUEUED, states.PAUSED))
    ended = 0
    for job in late.filter(lease_worker="")[:BATCH]:
        ask = outcomes.aborted if job.state == states.QUEUED else outcomes.canceled
        end = ask(job.cancel_at)
        states.check(job.state, end.state)
        mine = Job.objects.filter(pk=job.pk, state=job.state, attempt=job.attempt, lease_worker="")
        if mine.update(**end.row(), ended_at=now, dispatched_at=None):
            job.refresh_from_db()
            service.close_log(job)
            ended += 1
    return ended


def reap() -> int:
    """Jobs whose lease has run out: cancelled if that was asked, queued again once, else failed."""
    expired = Job.objects.filter(
        state__in=states.HELD, lease_expires_at__lt=timezone.now()
    ).exclude(lease_worker="")
    found = list(expired)
    for job in found:
        _reap(job)
    return len(found)


def _reap(job: Job) -> None:
    before, worker = job.attempt, job.lease_worker
    mine = Job.objects.filter(
        pk=job.pk,
        attempt=before,
        lease_worker=worker,
        state=job.state,
        lease_expires_at=job.lease_expires_at,
    )
    free = {"lease_worker": "", "lease_expires_at": None}
    now = timezone.now()
    late = job.cancel_at if job.cancel_at and job.cancel_at <= now else None
    if job.cancel_requested_at is not None or late:
        end = outcomes.canceled(None if job.cancel_requested_at else late)
        states.check(job.state, end.state)
        moved = mine.update(**end.row(), ended_at=now, **free)
    elif job.retried:
        checkpoint = queries.newest_checkpoint(job.pk)
        end = outcomes.failure("worker_lost")
        end = outcomes.with_kept(end, checkpoint.name if checkpoint else None)
        states.check(job.state, end.state)
        moved = mine.update(**end.row(), ended_at=now, **free)
    else:
        states.check(job.state, states.QUEUED, attempt_before=before, attempt_to=before + 1)
        moved = mine.update(
            state=states.QUEUED, attempt=before + 1, retried=True, dispatched_at=None, **free
        )
    if not moved:
        return  # it came back in the meantime
    log.warning("job %s: worker %s is lost", job.pk, worker)
    job.refresh_from_db()
    Attempt.objects.filter(job_id=job.pk, number=before).update(outcome="worker_lost")
    if job.ended:
        service.close_log(job)
    else:
        service.announce_requeue(job, before)


def reconcile() -> int:
    """Ends that are in the row but not in the log."""
    late = timezone.now() - timedelta(seconds=RECONCILE_S)
    found = list(
        Job.objects.filter(state__in=states.TERMINAL, log_closed=False, ended_at__lt=late)[:BATCH]
    )
    for job in found:
        service.close_log(job)
    return len(found)
