"""The dispatcher: gives free slots to waiting jobs, and brings back what was lost.

It wakes at once on a nudge and once a second in any case: for what a nudge missed, and for jobs
whose time to start has come. One holder of a Redis lock works at a time; every write is a
compare-and-set besides, so two could do no harm.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections, transaction
from django.utils import timezone

from playground import redis
from playground.jobs import compaction, health, lines, places, recover, retention, service, states
from playground.jobs.models import Job

log = logging.getLogger(__name__)

TICK_S = 1
LOCK = "dispatch:lock"
LOCK_MS = 2500  # so long a killed dispatcher's successor waits at most
LOCK_TRY_S = 0.25

_KEEP = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0
"""
_RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""

Publish = Callable[[str, str, int], None]  # queue, job, attempt


class Start(NamedTuple):
    """A job that has been given a slot."""

    id: str
    attempt: int
    device: str


def hand_out(queue: str, devices: Sequence[str]) -> list[Start]:
    """Gives the free slots to waiting jobs; `devices` names each slot's. Free slots are counted,
    turns moved on and jobs marked in one transaction."""
    now = timezone.now()
    if not lines.waiting(queue, now).exists():
        lines.clear(queue)  # takes no write lock unless there is something to clear
        return []
    if not free_devices(devices, held_devices(queue)):  # neither does this
        return []
    with transaction.atomic():
        lines.lock(queue)
        free = free_devices(devices, held_devices(queue))
        line = lines.read(queue, now)
        starts = list(islice(line.turns.starts(line.waiting, line.weights), len(free)))
        started = []
        for (job_id, attempt), device in zip(lines.pick(queue, now, starts), free, strict=False):
            row = Job.objects.filter(pk=job_id, attempt=attempt, state=states.QUEUED)
            if row.filter(dispatched_at=None).update(dispatched_at=now, device=device):
                started.append(Start(job_id, attempt, device))
        lines.write(line)
    return started


def held_devices(queue: str) -> list[str]:
    """The devices of the slots that are taken."""
    holding = Job.objects.filter(places.holding_slot(), queue=queue)
    return list(holding.values_list("device", flat=True))


def free_devices(devices: Sequence[str], held: Sequence[str]) -> list[str]:
    """The devices of the free slots. A held one that is no longer listed takes up a slot too."""
    left = Counter(devices) - Counter(held)
    return list(left.elements())[: max(0, len(devices) - len(held))]


class Dispatcher:
    """The loop. `publish` sends a job's id to a queue."""

    def __init__(self, publish: Publish, stopping: Callable[[], bool]) -> None:
        self._publish, self._stopping = publish, stopping
        self._token = secrets.token_hex(8)
        self._client = redis.client(block_s=TICK_S)
        self._next_tick = 0.0
        self._pruning = retention.Hourly()
        self._compactor = compaction.Compactor()

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
            time.sleep(LOCK_TRY_S)
            return
        if time.monotonic() >= self._next_tick:
            self._next_tick = time.monotonic() + TICK_S
            health.beat("dispatcher")
            self._recover()
        self._client.blpop([service.NUDGE], TICK_S)
        self._client.delete(service.NUDGE)  # all nudges so far are served by what follows
        self._start_waiting()

    def _start_waiting(self) -> None:
        for queue, devices in settings.DEVICES.items():
            for start in hand_out(queue, devices):
                self._send(queue, start.id, start.attempt)

    def _recover(self) -> None:
        close_old_connections()
        recover.expire()
        recover.reap()
        recover.reconcile()
        self._pruning.tick()
        self._compactor.tick()
        for queue, job_id, attempt in recover.unclaimed():
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
