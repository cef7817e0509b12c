"""The dispatcher: decides who starts next, and recovers what was lost.

It wakes at once on a nudge and once a second in any case, for what a nudge missed. One holder of
a Redis lock works at a time; every write is a compare-and-set besides, so two could do no harm.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections, transaction
from django.db.models import Count, Max, Q
from django.utils import timezone

from playground import redis
from playground.jobs import health, outcomes, queries, service, states
from playground.jobs.models import Attempt, Job

log = logging.getLogger(__name__)

TICK_S = 1
LOCK = "dispatch:lock"
LOCK_MS = 5000
REPUBLISH_S = 10  # a message unclaimed for so long was lost
RECONCILE_S = 5  # an end that is missing for so long will not come by itself
LOOK_AHEAD = 1000  # waiting jobs considered at once

_KEEP = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0
"""
_RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""

Publish = Callable[[str, str, int], None]  # queue, job, attempt


class Waiting(NamedTuple):
    """A queued job, as much of it as the choice needs."""

    id: str
    attempt: int
    owner_id: int


def fair(
    waiting: Sequence[Waiting],
    held: dict[int, int],
    last_start: dict[int, datetime | None],
    free: int,
) -> list[Waiting]:
    """Which `free` of the `waiting` (oldest first) start now.

    Each slot goes to the owner who holds the fewest; among equals to the one whose last start is
    longest ago, then to the one who has waited longest. An owner's own jobs keep their order.
    """
    lines: dict[int, list[Waiting]] = {}
    for item in waiting:
        lines.setdefault(item.owner_id, []).append(item)
    counts = {owner: held.get(owner, 0) for owner in lines}
    turn: dict[int, float] = {}
    for owner in lines:
        last = last_start.get(owner)
        turn[owner] = last.timestamp() if last else 0.0
    chosen: list[Waiting] = []
    newest = max([time.time(), *turn.values()])
    while lines and len(chosen) < free:
        owner = min(lines, key=lambda o: (counts[o], turn[o]))  # ties: the order of waiting
        chosen.append(lines[owner].pop(0))
        counts[owner] += 1
        newest += 1.0
        turn[owner] = newest
        if not lines[owner]:
            del lines[owner]
    return chosen


def hand_out(queue: str, slots: int) -> list[Waiting]:
    """Gives free slots to waiting jobs: counted and marked in one transaction."""
    rows = Job.objects.filter(queue=queue)
    unsent = rows.filter(state=states.QUEUED, dispatched_at=None)
    if not unsent.exists():  # without taking the write lock
        return []
    with transaction.atomic():
        holding = rows.filter(queries.holding_slot())
        held = dict(holding.order_by().values_list("owner_id").annotate(Count("pk")))
        free = slots - sum(held.values())
        if free <= 0:
            return []
        found = unsent.select_for_update(skip_locked=True) if _can_skip() else unsent
        columns = found.order_by("created_at", "pk").values_list("pk", "attempt", "owner_id")
        waiting = [Waiting(*row) for row in columns[:LOOK_AHEAD]]
        owners = {item.owner_id for item in waiting}
        last = dict(
            rows.filter(owner_id__in=owners)
            .order_by()
            .values_list("owner_id")
            .annotate(Max("dispatched_at"))
        )
        chosen = fair(waiting, held, last, free)
        now = timezone.now()
        Job.objects.filter(
            pk__in=[item.id for item in chosen], state=states.QUEUED, dispatched_at=None
        ).update(dispatched_at=now)
    return chosen


def unclaimed() -> list[tuple[str, str, int]]:
    """(queue, job, attempt) of messages that nobody took in ten seconds; their clock restarts."""
    now = timezone.now()
    late = Q(state=states.QUEUED, dispatched_at__lt=now - timedelta(seconds=REPUBLISH_S))
    found = list(Job.objects.filter(late).values_list("queue", "pk", "attempt"))
    for _, job_id, attempt in found:
        Job.objects.filter(late, pk=job_id, attempt=attempt).update(dispatched_at=now)
    return found


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
    if job.cancel_requested_at is not None:
        states.check(job.state, states.CANCELED)
        moved = mine.update(state=states.CANCELED, ended_at=now, **free)
    elif job.retried:
        states.check(job.state, states.FAILED)
        checkpoint = queries.newest_checkpoint(job.pk)
        lost = outcomes.failure("worker_lost")
        lost = outcomes.with_kept(lost, checkpoint.name if checkpoint else None)
        moved = mine.update(
            state=lost.state,
            reason=lost.reason,
            message=lost.message,
            message_zh=lost.message_zh,
            ended_at=now,
            **free,
        )
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
        Job.objects.filter(state__in=states.TERMINAL, log_closed=False, ended_at__lt=late)[:100]
    )
    for job in found:
        service.close_log(job)
    return len(found)


class Dispatcher:
    """The loop. `publish` sends a job's id to a queue."""

    def __init__(self, publish: Publish, stopping: Callable[[], bool]) -> None:
        self._publish, self._stopping = publish, stopping
        self._token = secrets.token_hex(8)
        self._client = redis.client(block_s=TICK_S)
        self._next_tick = 0.0

    def run(self) -> None:
        while not self._stopping():
            try:
                self._turn()
            except redis.RedisError as error:
                log.warning("the dispatcher waits for Redis: %s", error)
                time.sleep(0.5)
            except DatabaseError as error:
                log.warning("the dispatcher waits for the database: %s", error)
                close_old_connections()
                time.sleep(0.5)
        self._release()

    def _turn(self) -> None:
        if not self._hold():
            time.sleep(TICK_S)
            return
        if time.monotonic() >= self._next_tick:
            self._next_tick = time.monotonic() + TICK_S
            health.beat("dispatcher")
            self._recover()
        self._client.blpop([service.NUDGE], TICK_S)
        self._client.delete(service.NUDGE)  # all nudges so far are served by what follows
        self._start_waiting()

    def _start_waiting(self) -> None:
        for queue, slots in settings.SLOTS.items():
            for item in hand_out(queue, slots):
                self._send(queue, item.id, item.attempt)

    def _recover(self) -> None:
        close_old_connections()
        reap()
        reconcile()
        for queue, job_id, attempt in unclaimed():
            log.warning("job %s attempt %s: nobody took it, sent again", job_id, attempt)
            self._send(queue, job_id, attempt)

    def _send(self, queue: str, job_id: str, attempt: int) -> None:
        try:
            self._publish(queue, job_id, attempt)
        except Exception as error:  # kombu raises whatever its transport does
            log.warning("job %s is sent again later: %s", job_id, error)

    def _hold(self) -> bool:
        """Takes or keeps the lock."""
        if self._client.eval(_KEEP, 1, LOCK, self._token, str(LOCK_MS)):
            return True
        return bool(self._client.set(LOCK, self._token, nx=True, px=LOCK_MS))

    def _release(self) -> None:
        try:
            self._client.eval(_RELEASE, 1, LOCK, self._token)
        except redis.RedisError:
            return


def publish(queue: str, job_id: str, attempt: int) -> None:
    from playground.celery import app

    app.send_task("run_job", args=[job_id, attempt], queue=queue, retry=False)


def _can_skip() -> bool:
    from django.db import connection

    return bool(connection.features.has_select_for_update_skip_locked)
