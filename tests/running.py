"""A playground started the way a person starts it: `manage.py up` with a folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Up:
    """A running `manage.py up` and everything it has said so far."""

    def __init__(self, var: Path, port: int, **environment: str) -> None:
        self.var, self.port = var, port
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)],
            env={**os.environ, "VAR_DIR": str(var), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.said.append(line.rstrip())

    def exit_code(self) -> int:
        """Of a start that ends by itself."""
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=5)
        return code

    def wait_for(self, words: str, timeout_s: float = 60) -> str:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            for line in self.said:
                if words in line:
                    return line
            if self.process.poll() is not None and not self._reader.is_alive():
                break
            time.sleep(0.05)
        raise AssertionError(f"never said {words!r}; said {self.said}")

    def parts(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("PLAYGROUND_PART_OF") == str(self.var):
                found.append(process)
        return found

    def part(self, words: str) -> psutil.Process:
        return next(p for p in self.parts() if words in " ".join(p.cmdline()))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)
        self._reader.join(timeout=5)
