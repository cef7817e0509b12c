"""Run supervisord and tell its story in plain words."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playground.up.problems import CannotStart

LOOK_S = 0.1
# "expected" only says that the status was 0; no part of ours ends by itself. One that supervisord
# has stopped is logged as "stopped".
_EXITED = re.compile(r"exited: (?P<part>\S+) \((?P<how>.*?); (?:not )?expected\)")
_GAVE_UP = re.compile(r"gave up: (?P<part>\S+) entered FATAL")


def _die_with_parent() -> None:
    """Linux: ask for SIGTERM when `manage.py up` itself is killed, so that nothing stays behind."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM)


def story(line: str, *, logs: Path) -> str | None:
    """The sentence for a line of supervisord's log, None for what needs no telling."""
    if match := _EXITED.search(line):
        part, how = match["part"], match["how"]
        return f"{part} stopped unexpectedly ({how}); starting it again. Its log: {logs}/{part}.log"
    if match := _GAVE_UP.search(line):
        part = match["part"]
        return f"{part} could not be started. Read {logs}/{part}.log, then run `manage.py doctor`."
    return None


class Supervisord:
    """A supervisord in a process group of its own, and a reader of its log.

    The group keeps the terminal's Ctrl-C from reaching it twice; `stop` passes it on once. It
    writes to its log file only: a pipe to this process would break, and stop its orderly end,
    when this process is killed.
    """

    def __init__(self, *, config: Path, logs: Path, tell: Callable[[str], None]) -> None:
        self.logs = logs
        self.tell = tell
        self.stopping = False
        self.failed: str | None = None
        log = logs / "supervisord.log"
        log.touch()
        self._log = log.open(encoding="utf-8", errors="replace")
        self._log.seek(0, os.SEEK_END)
        command = [sys.executable, "-m", "supervisor.supervisord", "--silent"]
        self.process = subprocess.Popen(
            [*command, "--configuration", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_die_with_parent,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._log as log:
            while not self.stopping:
                line = log.readline()
                if not line:
                    time.sleep(LOOK_S)
                elif sentence := story(line, logs=self.logs):
                    if _GAVE_UP.search(line):
                        self.failed = sentence
                    self.tell(sentence)

    def stop(self) -> None:
        """Stop every part in reverse order and wait until nothing runs."""
        self.stopping = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self._reader.join(timeout=2)


def health(url: str) -> tuple[bool, dict[str, Any]]:
    """What /healthz says: (everything is up, the parts). An empty dict while the web is silent."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
            return True, json.load(answer)
    except urllib.error.HTTPError as error:
        try:
            return False, json.load(error)
        except ValueError:
            return False, {}
    except (OSError, ValueError):
        return False, {}


def wait_until_up(running: Supervisord, *, url: str, timeout_s: float = 60) -> None:
    """Return once every part answers; raise CannotStart naming what does not."""
    until = time.monotonic() + timeout_s
    parts: dict[str, Any] = {}
    while time.monotonic() < until:
        if running.failed:
            raise CannotStart(running.failed)
        if running.process.poll() is not None:
            raise CannotStart(f"supervisord ended early. Read {running.logs}/supervisord.log.")
        up, parts = health(url)
        if up:
            return
        time.sleep(0.1)
    silent = [name for name, part in parts.items() if isinstance(part, dict) and not part.get("ok")]
    names = ", ".join(silent) if silent else "the web server"
    raise CannotStart(f"No answer from {names} after {timeout_s:.0f} s. Read {running.logs}/.")
