"""A whole playground for tests: private Redis, dispatcher, both workers and the web server, each a
real process, in a temporary folder. `stack` in conftest.py holds one for the session."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.mariadb import MariaDB

ROOT = Path(__file__).resolve().parents[1]
TEST_KINDS = "tests.playground.kinds"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """A private redis-server on a unix socket. `stop` and `start` again keep the data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        binary = shutil.which("redis-server")
        assert binary, "the tests need redis-server"
        options = (
            f"--port 0 --unixsocket {self.socket} --unixsocketperm 700 --dir {self.folder} "
            "--appendonly yes --appendfsync everysec --maxmemory-policy noeviction"
        )
        self.process = subprocess.Popen(
            [binary, *options.split(), "--save", ""], stdout=subprocess.DEVNULL
        )
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                if probe.recv(16).startswith(b"+PONG"):
                    return
            time.sleep(0.01)
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            self.process = None


class Stack:
    """`url`, `port`, `var`, `env`; `start`, `stop`; single parts by name in `parts`. The database
    is SQLite, or with `database="mysql"` a private MariaDB, `mariadb`."""

    def __init__(self, database: str = "sqlite", **environment: str) -> None:
        # A short path: a unix socket's is limited.
        self.var = Path(tempfile.mkdtemp(prefix="pg-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.redis = RedisServer(self.var)
        self.env = {
            **os.environ,
            "VAR_DIR": str(self.var),
            "PORT": str(self.port),
            "REDIS_URL": self.redis.url,
            "COMPUTE_KINDS": TEST_KINDS,
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "playground.settings",
            "LOG_LEVEL": "WARNING",
            **environment,
        }
        self.env.pop("DATABASE_URL", None)
        self.mariadb = MariaDB() if database == "mysql" else None
        if self.mariadb is not None:
            self.env["DATABASE_URL"] = self.mariadb.url
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.log = self.var / "stack.log"

    def start(self) -> None:
        self.redis.start()
        if self.mariadb is not None:
            self.mariadb.create()
        ready = [
            self._manage("migrate", "--verbosity", "0"),
            self._manage("collectstatic", "--no-input", "--verbosity", "0"),
        ]
        for part in ("dispatcher", "worker-interactive", "worker-training"):
            self.start_part(part)  # each waits for the tables by itself
        for process in ready:
            said = process.communicate()[0]
            assert process.returncode == 0, said
        self.start_part("web")  # WhiteNoise lists the static files once, at its start
        self.wait_until_healthy()

    def command(self, name: str) -> list[str]:
        python = sys.executable
        if name == "dispatcher":
            return [python, str(ROOT / "manage.py"), "dispatch"]
        if name == "web":
            options = (
                f"playground.asgi:application --host 127.0.0.1 --port {self.port} --lifespan on "
                "--ws-per-message-deflate false --ws-max-size 65536 --no-proxy-headers "
                "--timeout-graceful-shutdown 5 --log-level warning --no-access-log"
            )
            return [python, "-m", "uvicorn", *options.split()]
        queue = name.removeprefix("worker-")
        slots = self.env.get(f"{queue.upper()}_SLOTS", {"interactive": "2"}.get(queue, "1"))
        options = (
            f"--quiet -A playground worker --queues {queue} --concurrency {slots} --pool threads "
            f"--hostname {queue}@%h --loglevel WARNING "
            "--without-mingle --without-gossip --without-heartbeat"
        )
        return [python, "-m", "celery", *options.split()]

    def start_part(self, name: str) -> None:
        with self.log.open("ab") as out:
            self.parts[name] = subprocess.Popen(
                self.command(name), env=self.env, cwd=ROOT, stdout=out, stderr=out
            )

    def stop_part(self, name: str, number: int = signal.SIGTERM, timeout_s: float = 20) -> float:
        """Sends a signal and waits; how long it took, in seconds."""
        process = self.parts.pop(name)
        started = time.monotonic()
        process.send_signal(number)
        process.wait(timeout_s)
        return time.monotonic() - started

    def _manage(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=self.env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def shell(self, code: str) -> str:
        """Runs Python with this stack's settings and rows; what it printed."""
        done = subprocess.run(
            [sys.executable, "-c", "import django; django.setup()\n" + textwrap.dedent(code)],
            env=self.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def health(self) -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def wait_until_healthy(self, timeout_s: float = 40) -> None:
        until = time.monotonic() + timeout_s
        last: object = None
        while time.monotonic() < until:
            try:
                status, last = self.health()
                if status == 200:
                    return
            except OSError as error:
                last = error
            time.sleep(0.05)
        raise AssertionError(f"the stack is not up: {last}\n{self.said()}")

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""

    def stop(self) -> None:
        for process in self.parts.values():
            process.terminate()
        for process in self.parts.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.parts.clear()
        self.redis.stop()
        if self.mariadb is not None:
            self.mariadb.remove()
        shutil.rmtree(self.var, ignore_errors=True)
