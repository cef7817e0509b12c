"""The process that a job runs in: `python -m compute.core.runner [--warm module,module]`.

stdin takes JSON lines: `{"spec": {…}}` starts a job, `{"control": {"action": …, "values": …}}`
reaches the job that runs (with "job" only the one of that id). `{"ping": token}` is answered by
the thread that jobs run in, so it is a job that does nothing. stdout gives JSON lines
`{"type", "t", "data"}`: `ready` first and after each job, `pong` after a ping, and a job's events
in between, the last of them `end`. With `--name-jobs` a line on stderr that starts with `ABOUT`
names the job that the following lines belong to, an empty name none. One spec after another is
served until stdin closes; when it closes under a running job, the process kills its own group, so
that nothing it started lives on.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

from compute.core import devices
from compute.core.context import Context
from compute.core.controls import STOP, ControlBox
from compute.core.errors import DeadlineExceeded, InvalidParams
from compute.core.events import dumps, encode
from compute.core.execution import Spec, end_data, execute
from compute.core.texts import Text

DEADLINE_GRACE_S = 2.0  # a job that ticks ends itself; after this much more it is ended
PR_SET_PDEATHSIG = 1  # linux/prctl.h

ABOUT = "\x01"  # on stderr, with --name-jobs: the job that the following lines are about

_RUNAWAY = Text(
    "The job reached its time limit of {seconds} s and did not stop by itself.",
    "任务到达 {seconds} 秒的时间上限，且没有自行停止。",
)


@dataclass
class Order:
    """A spec as it was read, with the box its controls go into."""

    raw: Any
    job: str | None
    box: ControlBox = field(default_factory=ControlBox)


@dataclass(frozen=True)
class Ping:
    token: str


class Output:
    """Event lines on a private copy of stdout: a line is whole, flushed, and from one thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._ended = True
        self._on_end: Callable[[], None] = lambda: None

    def begin(self, on_end: Callable[[], None]) -> None:
        """A job starts; `on_end` is called just before its `end` goes out."""
        self._ended, self._on_end = False, on_end

    def event(self, type: str, data: Mapping[str, Any]) -> None:
        """One event of the running job. After its `end` nothing more comes out."""
        line = encode({"type": type, "t": time.time(), "data": data})
        with self._lock:
            if self._ended:
                return
            if type == "end":
                self._ended = True
                self._on_end()
            self._write(line)

    def ready(self, jobs: int) -> None:
        data = {"jobs": jobs, "rss_mb": devices.rss_mb()}
        with self._lock:
            self._write(dumps({"type": "ready", "t": time.time(), "data": data}))

    def pong(self, token: str) -> None:
        with self._lock:
            self._write(dumps({"type": "pong", "t": time.time(), "data": {"ping": token}}))

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()
        except BrokenPipeError:
            end_group()  # nobody listens any more


class Runner:
    """Reads orders on one thread, runs them one at a time on the main thread."""

    def __init__(self, *, orders: BinaryIO, output: Output, name_jobs: bool = False) -> None:
        self._orders, self._output = orders, output
        self._name_jobs = name_jobs
        self._queue: queue.SimpleQueue[Order | Ping | None] = queue.SimpleQueue()
        self._open: list[Order] = []  # read and not ended, oldest first
        self._lock = threading.Lock()  # never held while writing, nor by a signal handler
        self._leaving = False
        self._jobs = 0

    def serve(self) -> None:
        """Serve until stdin closes or SIGTERM comes."""
        signal.signal(signal.SIGTERM, lambda number, frame: self._leave())
        threading.Thread(target=self._read, name="orders", daemon=True).start()
        self._output.ready(self._jobs)
        while not self._leaving and (order := self._queue.get()) is not None:
            if isinstance(order, Ping):
                self._output.pong(order.token)
                continue
            with devices.tidy_process():
                self._run(order)
            self._jobs += 1
            if not self._leaving:
                self._output.ready(self._jobs)

    def _close(self, order: Order) -> None:
        """From here on a control or an end of stdin is no longer this job's."""
        with self._lock:
            self._open.remove(order)

    def _run(self, order: Order) -> None:
        self._output.begin(lambda: self._close(order))
        if self._name_jobs:
            say_about(order.job or "")
        try:
            self._execute(order)
        finally:
            if self._name_jobs:
                say_about("")

    def _execute(self, order: Order) -> None:
        try:
            spec = Spec.parse(order.raw)
        except InvalidParams as refused:
            self._output.event("error", refused.data())
            end = end_data("failed", reason=refused.reason, text=refused.text)
            self._output.event("end", end)
            return
        watch = Watchdog(self._output)
        try:
            outcome = execute(spec, self._output.event, box=order.box, on_context=watch.start)
        finally:
            watch.stop()
        if outcome.raised is not None and outcome.raised.__cause__ is not None:
            traceback.print_exception(outcome.raised.__cause__)

    def _read(self) -> None:
        with self._orders:
            for line in self._orders:
                if line.strip():
                    self._take(line)
        with self._lock:
            busy = bool(self._open)
        if busy:
            end_group()
        self._queue.put(None)

    def _take(self, line: bytes) -> None:
        """One line of stdin: a spec, a control, or neither."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and isinstance(message.get("control"), dict):
            self._control(message["control"])
            return
        if isinstance(message, dict) and isinstance(message.get("ping"), str):
            self._queue.put(Ping(message["ping"]))
            return
        raw = message.get("spec") if isinstance(message, dict) else None
        job = raw.get("job") if isinstance(raw, dict) else None
        order = Order(raw, job if isinstance(job, str) else None)
        with self._lock:
            # Whoever sends something unreadable to an idle runner waits for an end: it gets one.
            accepted = raw is not None or not self._open
            if accepted:
                self._open.append(order)
        if accepted:
            self._queue.put(order)
        else:
            words = "a line on stdin is neither a spec nor a control"
            self._output.event("log", {"level": "warning", "text": words})

    def _control(self, control: Mapping[str, Any]) -> None:
        with self._lock:
            order = self._open[0] if self._open else None
        # A control that crosses the end of its job on the way must not hit the next one.
        if order is not None and control.get("job", order.job) == order.job:
            if control.get("action") == STOP:
                control = {**control, "action": None}  # kept for the process itself
            order.box.put(control)

    def _leave(self) -> None:
        """SIGTERM: the job saves and stops at its next tick, then the process leaves."""
        self._leaving = True
        for order in self._open[:1]:  # no lock: this runs inside whatever the main thread does
            order.box.put({"action": STOP})
        self._queue.put(None)


class Watchdog:
    """Ends a job that runs past its deadline without ever looking at it, and the process too."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._done = threading.Event()

    def start(self, context: Context) -> None:
        if context.clock.deadline_s is not None:
            threading.Thread(target=self._watch, args=(context,), daemon=True).start()

    def stop(self) -> None:
        self._done.set()

    def _watch(self, context: Context) -> None:
        clock = context.clock
        while (over := clock.over_by_s()) < DEADLINE_GRACE_S:
            # While paused the clock stands, so look again rather than sleep the rest in one go.
            if self._done.wait(min(max(DEADLINE_GRACE_S - over, 0.05), 5.0)):
                return
        if self._done.is_set():
            return
        failure = DeadlineExceeded(_RUNAWAY.format(seconds=f"{clock.deadline_s:g}"))
        self._output.event("error", failure.data())
        self._output.event("end", end_data("failed", reason=failure.reason, text=failure.text))
        end_group()


def say_about(job: str) -> None:
    """Marks what follows on stderr as this job's."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(2, f"{ABOUT}{job}\n".encode())


def end_group() -> NoReturn:
    """End this process at once, and its whole group if it leads one.

    A runner that its parent did not put into an own session shares the parent's group: killing
    that would kill the parent, a notebook perhaps.
    """
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def die_with_parent() -> None:
    """On Linux, have the kernel tell us when the parent dies; elsewhere stdin's end must do.

    The kernel also says so when only the parent's *thread* that started us ends, so the handler
    looks whether the parent is really gone. A signal that can be caught, because the group is
    ours to end before we go.
    """
    if sys.platform != "linux":
        return
    import ctypes

    parent = os.getppid()
    signal.signal(signal.SIGHUP, lambda number, frame: _if_orphaned(parent))
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
    _if_orphaned(parent)  # it may have died before we asked


def _if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        end_group()


def private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Our own copies of stdin and stdout; a job's `input()` finds nothing, its prints go to stderr.

    The copies are not inherited by programs that a job starts.
    """
    orders = os.fdopen(os.dup(0), "rb")
    events = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")
    return orders, events


def main(argv: list[str] | None = None) -> None:
    """Serve jobs until stdin closes or SIGTERM comes."""
    parser = argparse.ArgumentParser(prog="python -m compute.core.runner", description=__doc__)
    parser.add_argument("--warm", default="", help="modules to import ahead, comma-separated")
    words = "mark on stderr whose lines follow"
    parser.add_argument("--name-jobs", action="store_true", help=words)
    options = parser.parse_args(argv)
    orders, events = private_streams()
    die_with_parent()
    for module in filter(None, options.warm.split(",")):
        importlib.import_module(module.strip())
    devices.collect()
    with contextlib.suppress(KeyboardInterrupt), events:
        output = Output(events)
        Runner(orders=orders, output=output, name_jobs=options.name_jobs).serve()


if __name__ == "__main__":
    main()
