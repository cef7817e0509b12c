"""A real runner process, driven as the supervisor drives it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compute.core.devices import thread_environment

ROOT = Path(__file__).parents[3]
KINDS = "tests.compute.core.sample_kinds"
Event = dict[str, Any]


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG"))}
    return {
        **kept,
        **thread_environment(1),
        "PYTHONPATH": str(ROOT),
        "COMPUTE_KINDS": KINDS,
        "PYTHONWARNINGS": "error",
    }


class RunnerProcess:
    """`python -m compute.core.runner` with its lines in a queue; close() leaves nothing running."""

    def __init__(self, *args: str, own_session: bool = True) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "compute.core.runner", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            start_new_session=own_session,
        )
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.stderr = b""
        self.ready: list[Event] = []
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line

    def send(self, message: object) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def spec(self, kind: str, params: object, dir: Path, **more: object) -> None:
        base = {"job": "j1", "attempt": 1, "kind": kind, "params": params, "seed": 1}
        self.send({"spec": {**base, "dir": str(dir), **more}})

    def control(self, action: str, **more: object) -> None:
        self.send({"control": {"action": action, **more}})

    def next(self, timeout: float = 60) -> Event | None:
        """The next event of a job (`ready` lines are kept aside), or None at the end of output."""
        while True:
            line = self.lines.get(timeout=timeout)
            if line is None:
                return None
            assert line.endswith(b"\n") and len(line.decode().splitlines()) == 1
            event: Event = json.loads(line, parse_constant=lambda name: 1 / 0)
            if event["type"] != "ready":
                return event
            self.ready.append(event)

    def until(self, found: Callable[[Event], bool], timeout: float = 60) -> list[Event]:
        """The events up to the first that is `found`; fails at the end of output."""
        events: list[Event] = []
        while True:
            event = self.next(timeout)
            assert event is not None, (events[-3:], self.stderr.decode()[-2000:])
            events.append(event)
            if found(event):
                return events

    def to_end(self, timeout: float = 60) -> list[Event]:
        return self.until(is_type("end"), timeout)

    def wait(self, timeout: float = 30) -> int:
        code = self.process.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
        return code

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for reader in self._readers:
            reader.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def is_type(type: str, **data: object) -> Callable[[Event], bool]:
    """Whether an event is of that type and holds that data."""
    return lambda event: (
        event["type"] == type
        and all(event["data"].get(key) == value for key, value in data.items())
    )


def of_type(events: list[Event], type: str) -> list[Event]:
    return [event["data"] for event in events if event["type"] == type]
