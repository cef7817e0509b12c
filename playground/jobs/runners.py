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
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import psutil
from django.conf import settings

from compute.core import events
from compute.core.devices import thread_environment

log = logging.getLogger(__name__)
READ_BYTES = 256 * 1024
LINE_BYTES = 1024 * 1024  # a line beyond this is no event: an event's data ends at 16 KB
# What a runner has no business knowing.
SECRETS = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "LOCAL_TOKEN")


class LineTooLong(Exception):
    """The runner wrote a line that can't be an event."""


class Runner:
    """One runner process. Used by one supervisor at a time."""

    def __init__(self, *, threads: int, warm: Sequence[str]) -> None:
        command = [sys.executable, "-m", "compute.core.runner"]
        if warm:
            command += ["--warm", ",".join(warm)]
        env = {name: value for name, value in os.environ.items() if name not in SECRETS}
        env |= thread_environment(threads)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=settings.BASE_DIR,
            env=env,
            start_new_session=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._rest = b""
        self.jobs = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def fileno(self) -> int:
        return self._stdout.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """One line on stdin. A runner that is gone is noticed by its closed output."""
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

    def resident_mb(self) -> float:
        """Memory of the runner and what it started, in MB (2^20); 0 when it is gone."""
        total = 0
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self.pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += process.memory_info().rss
        return total / 2**20

    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self, *, grace_s: float = 0.0) -> int:
        """Ends the runner and its group; returns its exit code, negative for a signal."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()  # an idle runner leaves by itself then
        if grace_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_s)
        kill_group(self.pid)
        code = self.process.wait()
        self._stdout.close()
        return code


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
        self._busy = 0
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
                    return runner
                runner.close()
        made: Future[Runner] = Future()
        self._orders.put(lambda: self._make_for(made))
        return made.result(timeout=30)

    def give_back(self, runner: Runner, *, healthy: bool) -> None:
        """After a job. `healthy`: it has said its `end` and waits for the next spec."""
        runner.jobs += 1
        with self._lock:
            self._busy -= 1
        keep = (
            healthy
            and not self._single_use
            and not self._closed
            and runner.alive()
            and runner.jobs < settings.RUNNER_MAX_JOBS
            and runner.resident_mb() < settings.RUNNER_MAX_MB
        )
        if keep:
            with self._lock:
                self._idle.append(runner)
            return
        runner.close(grace_s=1.0 if healthy else 0.0)
        self.fill()

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
