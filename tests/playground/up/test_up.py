"""`manage.py up` as a person runs it: start, crash, second start, Ctrl-C."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import ROOT, Up, free_port


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    running = Up(tmp_path_factory.mktemp("up"), free_port())
    try:
        running.wait_for("The playground is ready")
        yield running
    finally:
        running.end()
    # Ctrl-C has ended it in order and left nothing running.
    assert running.process.returncode == 0
    assert "Stopped." in running.said[-1]
    assert running.parts() == []


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_it_prints_one_address_that_answers(up: Up) -> None:
    assert f"http://127.0.0.1:{up.port}" in up.wait_for("The playground is ready")
    assert answers(up.port)


def test_doctor_finds_everything_well_on_another_port_too(up: Up) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "doctor"],
        env={**os.environ, "VAR_DIR": str(up.var)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"http://127.0.0.1:{up.port}" in done.stdout


def test_a_second_start_in_the_same_folder_is_refused(up: Up) -> None:
    second = Up(up.var, free_port())
    second.wait_for("already runs here")
    assert second.exit_code() == 1
    assert answers(up.port)


def test_a_part_that_crashes_is_restarted_and_said_so(up: Up) -> None:
    up.part("uvicorn").kill()
    assert "starting it again" in up.wait_for("web stopped unexpectedly")
    up.part("redis-server").terminate()  # ends well, with status 0; it should not have
    assert "starting it again" in up.wait_for("redis stopped unexpectedly")
    until = time.monotonic() + 30
    while not answers(up.port):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_killed_start_leaves_nothing_behind(tmp_path: Path) -> None:
    first = Up(tmp_path, free_port())
    first.wait_for("The playground is ready")
    supervisord = first.part("supervisor.supervisord")
    first.process.kill()
    supervisord.kill()
    first.exit_code()
    left = first.parts()
    assert any("redis-server" in part.name() for part in left)
    again = Up(tmp_path, free_port())  # clears away what it finds
    again.wait_for("The playground is ready")
    assert not any(part.is_running() for part in left)
    again.process.kill()  # supervisord hears of it and ends the rest in order
    again.exit_code()
    until = time.monotonic() + 60
    while again.parts():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        running = Up(tmp_path, port)
        running.wait_for(f"Port {port} is in use by another program")
        assert running.exit_code() == 1
    assert not any("Traceback" in line for line in running.said)


def test_a_missing_redis_binary_is_one_sentence(tmp_path: Path) -> None:
    running = Up(tmp_path, free_port(), PATH=str(tmp_path))
    running.wait_for("redis-server is not installed")
    assert running.exit_code() == 1
    assert not any("Traceback" in line for line in running.said)


@pytest.mark.parametrize("port", ["0", "70000"])
def test_a_port_that_does_not_exist_is_one_sentence(tmp_path: Path, port: str) -> None:
    running = Up(tmp_path, int(port))
    running.wait_for("does not exist")
    assert running.exit_code() == 1
