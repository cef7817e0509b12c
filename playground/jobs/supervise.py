"""One job under supervision: from the claim to the terminal row.

A single thread waits on two pipes, the runner's output and the inbox of controls, and on a few
deadlines. Every event goes to the spool first, then to the stream. No torch in this process.
"""

from __future__ import annotations

import logging
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections
from django.utils import timezone

from compute.core import kinds
from compute.core.errors import ComputeError
from playground.jobs import artifacts, budget, outcomes, queries, refs, service, states, stream
from playground.jobs.attempts import Lease, LeaseLost
from playground.jobs.budget import Budget
from playground.jobs.inbox import Inbox
from playground.jobs.outcomes import Outcome
from playground.jobs.output import Output
from playground.jobs.runners import LineTooLong, Runner

log = logging.getLogger(__name__)

CANCEL_GRACE_S = 1.5  # then the process group is killed: a C loop hears nothing
BOOT_S = 60.0  # a runner that hasn't begun by then is broken
DEADLINE_GRACE_S = 2.7  # the runner's own watchdog comes first, with better words
STOP_GRACE_S = 4.0  # for a checkpoint, when this worker is asked to leave
MEASURE_S = 0.5
NEVER = float("inf")
Answer = TypeVar("Answer")


class Left(Exception):
    """The job goes on elsewhere or later: parked, requeued, or lost to another attempt."""


class RunnerPool(Protocol):
    def take(self) -> Runner: ...
    def give_back(self, runner: Runner, *, healthy: bool) -> None: ...


class Supervision:
    """The whole of one attempt. `run` returns when the attempt is over, whatever became of it."""

    def __init__(
        self, *, lease: Lease, inbox: Inbox, pool: RunnerPool, stopping: threading.Event
    ) -> None:
        self.lease, self.job, self.inbox = lease, lease.job, inbox
        self.pool, self.stopping = pool, stopping
        self.output = Output(lease)
        self.runner: Runner | None = None
        self.budget: Budget | None = None
        self.said_end = False  # the runner has told how the job ended
        self.healthy = False  # and can serve another job
        self.progress: dict[str, Any] | None = None
        self.outcome: Outcome | None = None
        self.cancel_asked = self.past_cancel_at = False
        self.paused_since: float | None = None
        self.renewed = self.renew_at = self.measure_at = time.monotonic()
        self.kill_at = self.park_at = self.stop_at = self.deadline_at = NEVER
        self.cancel_at = NEVER  # when the deadline that came with the submission passes
        if self.job.cancel_at is not None:
            left = self.job.cancel_at - timezone.now()
            self.cancel_at = self.renewed + max(0.0, left.total_seconds())

    # -- the whole ---------------------------------------------------------------------------

    def run(self) -> None:
        job = self.job
        try:
            self.output.say("state", {"state": states.STARTING, "attempt": job.attempt})
            self.output.flush(create=True)
            try:
                self._start()
                outcome = self._watch()
            except (LeaseLost, stream.Stale, Left):
                raise
            except ComputeError as error:
                outcome = Outcome(states.FAILED, error.reason, error.text.en, error.text.zh)
            except Exception:
                log.exception("job %s: supervision failed", job.pk)
                outcome = outcomes.failure("internal")
            self._finish(outcome)
        except (LeaseLost, stream.Stale) as error:
            log.warning("leaving a job that is no longer ours: %s", error)
        except Left as left:
            log.info("job %s: %s", job.pk, left)
        finally:
            if self.runner is not None:
                self.pool.give_back(self.runner, healthy=self.healthy)
            self.output.close()

    def _start(self) -> None:
        job = self.job
        folder = artifacts.make_attempt_folder(job.pk, job.attempt)
        self.runner = self.pool.take()
        self.budget = Budget(job, self.runner)
        source = self.lease.resume_from
        spec = {
            "job": job.pk,
            "request_id": job.request_id,
            "attempt": job.attempt,
            "kind": job.kind,
            "params": job.params,
            "seed": job.seed,
            "dir": str(folder),
            "inputs": self._insist(lambda: refs.inputs(job)),
            "threads": settings.THREADS[job.queue],
            "device": job.device or "cpu",
            "deadline_s": job.deadline_s,
            "resume_from": source and str(artifacts.attempt_folder(job.pk, source)),
            "replay": service.live_sets(job.pk) if source else [],
        }
        self.runner.send({"spec": spec})
        pid = self.runner.pid
        self._insist(lambda: self.lease.record_runner(pid))
        now = time.monotonic()
        self.deadline_at = now + BOOT_S  # the job's own time starts with its `running`
        self.renew_at = now + min(1.0, settings.LEASE_S / 5)
        self.measure_at = now + MEASURE_S

    def _watch(self) -> Outcome:
        """Until the runner says its end, or one of our own limits ends it."""
        assert self.runner is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.runner, selectors.EVENT_READ, self._read)
            selector.register(self.inbox, selectors.EVENT_READ, self._obey)
            while self.outcome is None:
                due = min(
                    self.output.flush_at,
                    self.renew_at,
                    self.cancel_at,
                    self.measure_at,
                    self.deadline_at,
                    self.kill_at,
                    self.park_at,
                    self.stop_at,
                )
                for key, _ in selector.select(max(0.0, due - time.monotonic())):
                    key.data()
                if self.outcome is None:
                    self._look_at_clock(time.monotonic())
        return self.outcome

    def _finish(self, outcome: Outcome) -> None:
        """Row first, then the `end` event; the dispatcher adds an `end` that we fail to."""
        self._insist(lambda: self.output.flush(last=True))
        if self.output.refused is not None and outcome.state == states.SUCCEEDED:
            outcome, self.said_end = self.output.refused, False
        if outcome.state == states.FAILED and not self.said_end:
            outcome = self._with_kept(outcome)
            self.output.say("error", outcome.error_data())
            self.output.flush()
        self._insist(lambda: self.lease.finish(outcome, self.progress))
        service.nudge()
        self.output.say("end", outcome.end_data())
        self.output.flush()
        if self.output.expire():
            self._insist(self.lease.log_closed)

    def _with_kept(self, outcome: Outcome) -> Outcome:
        try:
            checkpoint = queries.newest_checkpoint(self.job.pk)
        except DatabaseError:  # the words can do without
            return outcome
        return outcomes.with_kept(outcome, checkpoint.name if checkpoint else None)

    # -- the runner's words ------------------------------------------------------------------

    def _read(self) -> None:
        """Takes what the runner has written."""
        assert self.runner is not None
        try:
            lines = self.runner.read()
        except LineTooLong:
            log.warning("job %s: a line without end", self.job.pk)
            self._kill(outcomes.failure("internal"))
            return
        if lines is None:
            self._runner_gone()
            return
        for line in lines:
            if self.outcome is None and (event := self.output.parse(line)) is not None:
                self._take(*event)
        self.output.flush_soon()

    def _take(self, type_: str, rest: str, data: dict[str, Any]) -> None:
        if type_ == "ready":
            return
        if type_ == "end":
            self._runner_ended(data)
            return
        if type_ == "artifact":
            self.output.artifact(rest, data)
            return
        if type_ == "state":
            self._state(data)
        elif type_ == "progress":
            self.progress = data
        self.output.queue(type_, rest)

    def _state(self, data: dict[str, Any]) -> None:
        to, now = data.get("state"), time.monotonic()
        if to not in (states.RUNNING, states.PAUSED):
            log.warning("job %s: the runner named a state %.40r", self.job.pk, to)
            return
        if self.lease.state == states.STARTING:
            self.deadline_at = now + self.job.deadline_s + DEADLINE_GRACE_S
            if self.budget is not None:
                self.budget.start()
        self._insist(lambda: self.lease.move(to))
        if to == states.PAUSED:
            self.paused_since = now
            self.park_at = now + settings.PARK_AFTER_S
            if self.stop_at < NEVER:
                self.stop_at = now
        elif self.paused_since is not None:
            self.deadline_at += now - self.paused_since  # time spent paused doesn't count
            self.paused_since, self.park_at = None, NEVER

    def _runner_ended(self, data: dict[str, Any]) -> None:
        """The runner has told how the job ended."""
        outcome = outcomes.from_runner(data)
        if outcome.state == states.CANCELED:
            if not self.cancel_asked:
                self._stopped_from_outside()
            outcome = self._canceled()
        self.outcome, self.said_end = outcome, True
        # Past its deadline a runner may have been stuck in C code, and ends itself.
        self.healthy = outcome.reason != "deadline_exceeded"

    def _stopped_from_outside(self) -> None:
        """A SIGTERM has reached the runner, not this worker: the machine shuts down, perhaps. It
        has saved. The job goes on elsewhere, once, as after a lost worker; unless this worker is
        leaving too, which spends no retry."""
        assert self.runner is not None
        self.runner.close(grace_s=1.0)
        planned = self.stopping.is_set()
        if self.job.retried and not planned:
            raise ComputeError(outcomes.STOPPED_TWICE, reason="worker_lost")
        self._requeue(retried=None if planned else True)

    def _runner_gone(self) -> None:
        """The output closed without an `end`: the process has died under the job."""
        assert self.runner is not None
        code = self.runner.wait(grace_s=0.5)
        if self.cancel_asked:
            self.outcome = self._canceled()
        elif self.runner.out_of_memory():
            self.outcome = budget.killed_for_memory()
        else:
            self.outcome = outcomes.died(code)
        self.runner.close()

    # -- controls in, and the clock ----------------------------------------------------------

    def _obey(self) -> None:
        for control in self.inbox.drain():
            if control.get("action") == "cancel":
                self._ask_cancel()
            elif control.get("action") == "stop":
                self._ask_stop()
            else:
                self._control(control)
                if self.paused_since is not None:
                    self.park_at = time.monotonic() + settings.PARK_AFTER_S

    def _control(self, control: dict[str, Any]) -> None:
        """On to the runner, with the job's id: one that crosses the end must not hit the next."""
        assert self.runner is not None
        self.runner.send({"control": {**control, "job": self.job.pk}})

    def _ask_cancel(self) -> None:
        now = time.monotonic()
        if not self.cancel_asked:
            self.cancel_asked = True
            self.past_cancel_at = now >= self.cancel_at
            self.kill_at = now + CANCEL_GRACE_S
            self._control({"action": "cancel"})
        self.cancel_at = NEVER

    def _canceled(self) -> Outcome:
        """In words that say by whom: at the deadline of the submission, or by a person now."""
        return outcomes.canceled(self.job.cancel_at if self.past_cancel_at else None)

    def _ask_stop(self) -> None:
        """This worker leaves. A kind that can pause writes its checkpoint first."""
        now = time.monotonic()
        if self.paused_since is not None:
            self.stop_at = now
            return
        self.stop_at = now + STOP_GRACE_S
        if "pause" in kinds.get(self.job.kind).controls:
            self._control({"action": "pause"})

    def _look_at_clock(self, now: float) -> None:
        if now >= self.cancel_at:
            self._ask_cancel()
        if now >= self.output.flush_at:
            self.output.flush()
            if self.output.refused is not None:
                self._kill(self.output.refused)
                return
        if now >= self.renew_at:
            self._renew(now)
        if now >= self.measure_at:
            self._measure(now)
        if now >= self.kill_at:
            self._kill(self._canceled())
        elif now >= self.deadline_at and self.paused_since is None:
            self._kill(outcomes.too_late(self.lease.state, self.job.deadline_s))
        elif now >= self.stop_at:
            self._leave()
        elif now >= self.park_at:
            self._park()

    def _renew(self, now: float) -> None:
        self.renew_at = now + (1.0 if self.output.stream.behind else settings.LEASE_S / 5)
        try:
            canceled = self.lease.renew(self.progress)
        except DatabaseError as error:
            log.warning("job %s: the lease is not renewed: %s", self.job.pk, error)
            close_old_connections()
            if now - self.renewed > settings.LEASE_S:
                raise LeaseLost(f"job {self.job.pk}: no database for a whole lease") from error
            return
        self.renewed = now
        if canceled:
            self._ask_cancel()
        self.output.catch_up()

    def _measure(self, now: float) -> None:
        assert self.budget is not None
        self.measure_at = now + MEASURE_S
        if self.runner is not None:
            self.runner.watched = now
        over = self.budget.exceeded()
        if over is not None:
            self._kill(over)

    def _kill(self, outcome: Outcome) -> None:
        assert self.runner is not None
        self.runner.close()
        self.outcome = outcome

    def _park(self) -> None:
        """A paused job gives its slot back, if there is something to resume from."""
        if self._insist(lambda: queries.newest_checkpoint(self.job.pk)) is None:
            self.park_at = NEVER
            return
        self._insist(lambda: self.output.flush(last=True))
        self._insist(self.lease.park)
        service.nudge()
        raise Left("parked; its slot is free")

    def _leave(self) -> None:
        """A planned stop: paused stays paused, the rest is queued again; no retry is spent."""
        assert self.runner is not None
        asked_by_us = self.paused_since is not None and self.stop_at <= self.paused_since
        if self.paused_since is not None and not asked_by_us:
            self._park()
        self.runner.close()
        self._requeue()

    def _requeue(self, *, retried: bool | None = None) -> NoReturn:
        self._insist(lambda: self.output.flush(last=True))
        self._insist(lambda: self.lease.requeue(retried=retried))
        self.output.say("state", {"state": states.QUEUED, "attempt": self.job.attempt + 1})
        self.output.flush()
        service.nudge()
        raise Left("queued again")

    def _insist(self, write: Callable[[], Answer]) -> Answer:
        """Repeats a read or a write until the database takes it: the job goes on, the row lags."""
        while True:
            try:
                return write()
            except DatabaseError as error:
                log.warning("job %s: the row waits for the database: %s", self.job.pk, error)
                if self.stopping.wait(0.5):
                    raise Left("stopped without a database") from error
                close_old_connections()
