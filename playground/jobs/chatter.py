"""What a runner says on stderr, line by line into this process's log: prints, warnings, traces.

The runner marks which job the lines are about (`compute.core.runner.ABOUT`), since what it says
after a job's end may be read only when the next one has begun. A job that writes such a mark itself
can name no job but those that this runner was given.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import IO, Any

from playground import logs

log = logging.getLogger("playground.runner")
MARK = "\x01"
LINE = 2_000  # characters of a line that are shown
LINES = 500  # of one job; the rest is counted
REMEMBERED = 8  # jobs whose late words are still theirs


class Chatter:
    """Reads one runner's stderr to its end, in a thread of its own: a full pipe would stop it."""

    def __init__(self, stderr: IO[bytes], pid: int) -> None:
        self._stderr, self._pid = stderr, pid
        self._given: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._job, self._lines = "", 0
        threading.Thread(target=self._read, name=f"stderr of {pid}", daemon=True).start()

    def expect(self, spec: dict[str, Any]) -> None:
        """The runner is about to be given this job."""
        names = {name: spec.get(name) for name in logs.NAMES}
        self._given[str(spec["job"])] = names
        while len(self._given) > REMEMBERED:
            self._given.popitem(last=False)

    def _read(self) -> None:
        with self._stderr:
            while raw := self._stderr.readline(4 * LINE):
                text, mark, job = raw.decode("utf-8", "replace").rstrip("\r\n").partition(MARK)
                if text:
                    self._say(text)
                if mark:
                    self._turn(job)
        self._turn("")

    def _turn(self, job: str) -> None:
        if self._lines > LINES:
            self._log(f"{self._lines - LINES} more lines are left out")
        self._job, self._lines = job, 0

    def _say(self, text: str) -> None:
        self._lines += 1
        if self._lines <= LINES:
            self._log(logs.readable(text, LINE))

    def _log(self, text: str) -> None:
        with logs.about(**self._given.get(self._job, {})):
            log.warning("%s: %s", self._pid, text)
