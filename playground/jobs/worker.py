"""One Celery worker process: its runners, its controls, its proof of life.

The worker serves one queue with as many threads as the queue has slots. Each task is a supervisor
in one of the threads. Nothing here imports torch.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import close_old_connections

from compute.core import kinds
from playground import logs, redis, stores
from playground.jobs import attempts, cgroups, figures, health, service
from playground.jobs.controls import Listener
from playground.jobs.inbox import Inbox
from playground.jobs.runners import Pool
from playground.jobs.supervise import Supervision

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)
PROBE_S = 2.0


class Worker:
    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.name = f"{queue}@{attempts.HOST}:{os.getpid()}:{secrets.token_hex(3)}"
        self.stopping = threading.Event()
        self.probed = threading.Event()
        self._active: dict[tuple[str, int], Inbox] = {}
        self._lock = threading.Lock()
        mine = [kind for kind in kinds.all_kinds() if kind.queue == queue]
        interactive = queue == "interactive"
        self.pool = Pool(
            spares=settings.SLOTS[queue] if interactive else settings.TRAINING_SPARES,
            single_use=not interactive,
            threads=settings.THREADS[queue],
            warm=sorted({module for kind in mine for module in kind.warm}),
        )
        self.pool.fill()
        self.listener = Listener(self.name, self._deliver)
        self.listener.start()
        threading.Thread(target=self._prove_forever, name="no-op", daemon=True).start()

    def _prove_forever(self) -> None:
        """After each probe that came through the queue: a job that does nothing, by an idle
        runner. That is what a worker's sign of life means."""
        part, trouble = f"worker.{self.queue}", ""
        while not self.stopping.is_set():
            if not self.probed.wait(PROBE_S):
                continue
            self.probed.clear()
            found = self.pool.no_op()
            if found.how == "wedged":
                trouble = health.WEDGED
            elif found.how in ("done", "busy"):  # until then the new one has proved nothing
                trouble = ""
            health.beat(part, trouble=trouble, how=found.how)
            figures.report_runners(part, self.pool.memory)

    def supervise(self, job_id: str, attempt: int) -> None:
        """Runs one job to its end in this thread; returns at once if it isn't there to take."""
        if self.stopping.is_set():
            return  # unclaimed, so the dispatcher publishes it again
        inbox = Inbox()
        key = (job_id, attempt)
        # Known before the claim: a control can arrive the moment the claim has committed.
        with self._lock:
            if key in self._active:
                inbox.close()
                return
            self._active[key] = inbox
        try:
            lease = attempts.claim(job_id=job_id, attempt=attempt, worker=self.name)
            if lease is None:
                log.info("job %s attempt %s is taken or gone", job_id, attempt)
                return
            with logs.about(request_id=lease.job.request_id, job=job_id, attempt=attempt):
                log.info("job starts: %s", lease.job.kind)
                Supervision(lease=lease, inbox=inbox, pool=self.pool, stopping=self.stopping).run()
            service.nudge()
        finally:
            with self._lock:
                del self._active[key]
            inbox.close()
            close_old_connections()

    def _deliver(self, job_id: str, attempt: int, control: dict[str, Any]) -> None:
        with self._lock:
            inbox = self._active.get((job_id, attempt))
        if inbox is not None:
            inbox.post(control)

    def stop(self) -> None:
        """A planned stop: every job is told, and none is lost."""
        self.stopping.set()
        with self._lock:
            inboxes = list(self._active.values())
        for inbox in inboxes:
            inbox.post({"action": "stop"})

    def close(self) -> None:
        self.listener.stop()
        self.pool.close()


def probe_forever(app: Celery, queue: str, stopping: threading.Event) -> None:
    """Sends this queue a message every two seconds. The consumer's own loop takes it and asks for
    a no-op job (`playground.jobs.tasks`), so a worker that pings but consumes nothing shows."""
    while not stopping.is_set():
        try:
            app.send_task("probe", args=[queue], queue=queue, expires=3 * PROBE_S, retry=False)
        except Exception as error:  # kombu raises whatever its transport does
            log.warning("probe of %s: %s", queue, error)
        stopping.wait(PROBE_S)


_current: Worker | None = None


def current() -> Worker:
    if _current is None:
        raise RuntimeError("jobs run in a worker: celery -A playground worker -Q <queue>")
    return _current


def boot(app: Celery, queues: list[str]) -> None:
    """Once, before the consumer starts: waits for the stores, then readies the runners."""
    global _current
    if len(queues) != 1 or queues[0] not in settings.SLOTS:
        log.error("a worker serves one queue; start it with -Q %s", " or -Q ".join(settings.SLOTS))
        sys.exit(2)
    redis.wait_for_redis(timeout_s=stores.PATIENCE_S)
    stores.wait_for_database()
    health.forget(f"worker.{queues[0]}")
    _current = Worker(queues[0])
    tell_memory_limit(queues[0])
    threading.Thread(
        target=probe_forever, args=(app, queues[0], _current.stopping), name="probe", daemon=True
    ).start()
    log.info("worker %s: %s slots", _current.name, settings.SLOTS[queues[0]])


def tell_memory_limit(queue: str) -> None:
    """Says on the operations page's behalf how this worker keeps its jobs' memory limit."""
    try:
        redis.shared().set(f"ops:memory:{queue}", cgroups.manager())
    except redis.RedisError as error:
        log.warning("could not say how memory is limited: %s", error)


def shut() -> None:
    if _current is not None:
        started = time.monotonic()
        _current.close()
        log.info("worker %s closed in %.1f s", _current.name, time.monotonic() - started)
