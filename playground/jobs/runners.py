"""Runner processes: `python -m compute.core.runner`, where torch lives.

Each leads its own process group. It dies with its worker: by the end of stdin, and on Linux by a
parent-death signal. That signal goes out when the *thread* that started a process ends, so one
thread, which lives as long as the worker, starts them all.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import psutil
from django.conf import settings

from compute.core import events
from compute.core.devices import thread_environment
from playground.jobs import cgroups
from playground.jobs.chatter import Chatter

log = logging.getLogger(__name__)
READ_BYTES = 256 * 1024
LINE_BYTES = 1024 * 1024  # a line beyond this is no event: an event's data ends at 16 KB
PING_S = 5.0  # an idle runner answers within a millisecond
RESTED_S = 1.0
STARTING_S = 60.0  # for imports, on a slow disk
WATCHED_S = 30.0  # a supervisor looks at its runner twice a second
# What a runner has no business knowing.
SECRETS = (
    "SECRET_KEY",
    "DATABASE_URL",
    "REDIS_URL",
    "DJANGO_SETTINGS_MODULE",
    "LOCAL_TOKEN",
    "METRICS_TOKEN",
)


class Usage(NamedTuple):
    """Of a runner and all that it started."""

    resident_mb: float  # 2^20 bytes
    cpu_s: float


class NoOp(NamedTuple):
    """What became of a job that does nothing.

    done      an idle runner did it
    busy      none is at rest, and every busy one has a supervisor that looks at it
    starting  the first ones are still importing
    none      none stands ready: with TRAINING_SPARES=0 that is how it is meant
    wedged    a runner doesn't answer, or nobody looks at it any more
    """

    how: str
    idle: int
    busy: int


class LineTooLong(Exception):
    """The runner wrote a line that can't be an event."""


class Runner:
    """One runner process. Used by one supervisor at a time."""

    def __init__(self, *, threads: int, warm: Sequence[str]) -> None:
        command = [sys.executable, "-m", "compute.core.runner", "--name-jobs"]
        if warm:
            command += ["--warm", ",".join(warm)]
        env = {name: value for name, value in os.environ.items() if name not in SECRETS}
        env |= thread_environment(threads)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=settings.BASE_DIR,
            env=env,
            start_new_session=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        assert self.process.stderr is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._chatter = Chatter(self.process.stderr, self.pid)
        os.set_blocking(self._stdout.fileno(), False)
        self.group = cgroups.make(settings.JOB_MEMORY_MB, self.pid)
        self._rest = b""
        self._cpu_s = self._lost_cpu_s = 0.0
        self.jobs = 0
        self.started = self.watched = time.monotonic()  # watched: by its supervisor, at last
        self.ready = False  # it has said its first word, so what it was to import is imported

    @property
    def pid(self) -> int:
        return self.process.pid

    def fileno(self) -> int:
        return self._stdout.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """One line on stdin. A runner that is gone is noticed by its closed output."""
        if "spec" in message:
            self._chatter.expect(message["spec"])
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(events.dumps(message).encode() + b"\n")
            self._stdin.flush()

    def read(self) -> list[bytes] | None:
        """The whole lines that have arrived; None once the output is closed."""
        try:
            data = os.read(self.fileno(), READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            raise LineTooLong
        return lines

    def ping(self, *, wait_s: float) -> bool:
        """Whether an idle runner does a job that does nothing. False too when it has ended."""
        token = secrets.token_hex(4)
        answer = f'"ping":"{token}"'.encode()
        self.send({"ping": token})
        until = time.monotonic() + wait_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno(), selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0:
                if not selector.select(left):
                    continue
                lines = self.read()
                if lines is None:
                    return False
                self.ready = True
                if any(answer in line for line in lines):
                    return True
        return False

    def spoken(self) -> bool:
        """Whether it has said something that nobody has read yet: its first `ready`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno(), selectors.EVENT_READ)
            return bool(selector.select(0))

    def frozen(self) -> bool:
        """Whether somebody has stopped the process (SIGSTOP), so that it can't do anything."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False

    def usage(self) -> Usage:
        """What the runner and all that it started use now, and have used since it started."""
        resident, cpu = 0, 0.0
        for process in group_of(self.pid):
            with contextlib.suppress(psutil.Error), process.oneshot():
                resident += process.memory_info().rss
                times = process.cpu_times()
                # Children that have ended and been waited for count with their parent.
                cpu += times.user + times.system + times.children_user + times.children_system
        # Ended with nobody waiting for it: its time is with nobody now.
        self._lost_cpu_s += max(0.0, self._cpu_s - cpu)
        self._cpu_s = cpu
        return Usage(resident / 2**20, cpu + self._lost_cpu_s)

    def usage_now_mb(self) -> float:
        """Resident memory of the group, for showing. `usage` keeps books for its supervisor."""
        resident = 0
        for process in group_of(self.pid):
            with contextlib.suppress(psutil.Error):
                resident += process.memory_info().rss
        return resident / 2**20

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed the runner, or something that it started, for memory."""
        return self.group is not None and self.group.killed()

    def alive(self) -> bool:
        return self.process.poll() is None

    def wait(self, *, grace_s: float) -> int:
        """Its exit code, negative for a signal; it has `grace_s` to end by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_s)
        kill_group(self.pid)
        return self.process.wait()

    def close(self, *, grace_s: float = 0.0) -> int:
        """Ends the runner and its group; returns its exit code, negative for a signal."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()  # an idle runner leaves by itself then
        code = self.wait(grace_s=grace_s)
        self._stdout.close()
        if self.group is not None:
            self.group.remove()
        return code


def group_of(pid: int) -> list[psutil.Process]:
    """The processes of the group that `pid` leads."""
    found = []
    for each in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(each) == pid:
                found.append(psutil.Process(each))
    return found


def kill_group(pid: int) -> None:
    """SIGKILL to the process group that `pid` leads. A group that is gone is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class Pool:
    """The runners of one worker.

    `single_use` runners serve one job and are closed: a crash costs that job only. Others come
    back and serve the next one, until they have served enough or have grown too large.
    """

    def __init__(self, *, spares: int, single_use: bool, threads: int, warm: Sequence[str]) -> None:
        self._spares, self._single_use = spares, single_use
        self._threads, self._warm = threads, tuple(warm)
        self._idle: list[Runner] = []
        self._busy = 0  # taken, or being made for somebody
        self._taken: set[Runner] = set()
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = False
        self._starter = threading.Thread(target=self._start_all, name="runners", daemon=True)
        self._starter.start()

    def fill(self) -> None:
        """Starts idle runners until idle and busy ones make up `spares`. Returns at once."""
        self._orders.put(self._fill)

    def take(self) -> Runner:
        """An idle runner, or a new one."""
        with self._lock:
            self._busy += 1
            while self._idle:
                runner = self._idle.pop(0)  # the longest idle: it has tidied up after its last
                if runner.alive():
                    return self._handed(runner)
                runner.close()
        made: Future[Runner] = Future()
        self._orders.put(lambda: self._make_for(made))
        return self._handed(made.result(timeout=30))

    def _handed(self, runner: Runner) -> Runner:
        runner.watched = time.monotonic()
        self._taken.add(runner)
        return runner

    def give_back(self, runner: Runner, *, healthy: bool) -> None:
        """After a job. `healthy`: it has said its `end` and waits for the next spec."""
        runner.jobs += 1
        runner.ready = runner.ready or healthy
        runner.watched = time.monotonic()
        with self._lock:
            self._busy -= 1
            self._taken.discard(runner)
        keep = (
            healthy
            and not self._single_use
            and not self._closed
            and runner.alive()
            and runner.jobs < settings.RUNNER_MAX_JOBS
            and runner.usage().resident_mb < settings.RUNNER_MAX_MB
        )
        if keep:
            with self._lock:
                self._idle.append(runner)
            return
        runner.close(grace_s=1.0 if healthy else 0.0)
        self.fill()

    def no_op(self) -> NoOp:
        """Has an idle runner do a job that does nothing. One that doesn't answer is replaced. The
        one that has rested longest is asked, so each has its turn."""
        with self._lock:
            idle = [runner for runner in self._idle if runner.ready or runner.spoken()]
            starting = [runner for runner in self._idle if runner not in idle]
            taken = list(self._taken)
            # One that has just served is alive, tidies up, and may be wanted for the next job.
            rested = [r for r in idle if time.monotonic() - r.watched > RESTED_S]
            runner = min(rested, key=lambda each: each.watched, default=None)
            if runner is not None:
                self._idle.remove(runner)
                self._busy += 1
        done = runner is not None and self._asked(runner)
        now = time.monotonic()
        late = [each for each in starting if now - each.started > STARTING_S]
        for each in late:
            self._replace(each)
        alone = [each for each in taken if each.frozen() or now - each.watched > WATCHED_S]
        if late or alone or (runner is not None and not done):
            how = "wedged"
        elif done:
            how = "done"
        elif taken or idle:
            how = "busy"
        else:
            how = "starting" if starting else "none"
        return NoOp(how, len(idle), len(taken))

    def _asked(self, runner: Runner) -> bool:
        answered = runner.ping(wait_s=PING_S)
        runner.watched = time.monotonic()
        with self._lock:
            self._busy -= 1
            if answered and not self._closed:
                self._idle.append(runner)
                return True
        if not answered:
            log.error("runner %s did not answer in %s s and is replaced", runner.pid, PING_S)
        runner.close()
        self.fill()
        return answered

    def _replace(self, runner: Runner) -> None:
        with self._lock:
            if runner not in self._idle:
                return
            self._idle.remove(runner)
        log.error("runner %s was not ready after %s s and is replaced", runner.pid, STARTING_S)
        runner.close()
        self.fill()

    def memory(self) -> list[tuple[int, bool, float]]:
        """Of each runner: its process, whether it runs a job, and its resident MB (2^20 bytes)."""
        with self._lock:
            found = [(r, False) for r in self._idle] + [(r, True) for r in self._taken]
        return [(r.pid, busy, r.usage_now_mb()) for r, busy in found]

    def close(self) -> None:
        """Ends the idle runners. Busy ones belong to their supervisors."""
        self._closed = True
        self._orders.put(None)
        self._starter.join(timeout=5)
        with self._lock:
            idle, self._idle = self._idle, []
        for runner in idle:
            runner.close(grace_s=0.5)

    def _start_all(self) -> None:
        while (order := self._orders.get()) is not None:
            order()

    def _new(self) -> Runner:
        return Runner(threads=self._threads, warm=self._warm)

    def _fill(self) -> None:
        while not self._closed:
            with self._lock:
                if len(self._idle) + self._busy >= self._spares:
                    return
            runner = self._new()
            with self._lock:
                self._idle.append(runner)

    def _make_for(self, made: Future[Runner]) -> None:
        try:
            made.set_result(self._new())
        except BaseException as error:
            made.set_exception(error)
            if not isinstance(error, OSError):
                raise
