"""Health is proof that jobs run (F25), and the worker keeps clear of torch (F26)."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.playground.client import Client
from tests.stack import Stack

pytestmark = pytest.mark.timeout(400)
RED_S = 3 * 60  # three times the stated minute


@pytest.fixture(scope="module")
def own() -> Iterator[Stack]:
    """Not everybody's stack: what is frozen here could be in another test's way."""
    running = Stack(TRAINING_SPARES="1", INTERACTIVE_SLOTS="1")
    try:
        running.start()
        yield running
    finally:
        for process in running.parts.values():
            process.send_signal(signal.SIGCONT)
        running.stop()


def runners(stack: Stack, part: str) -> list[psutil.Process]:
    children = psutil.Process(stack.parts[part].pid).children()
    return [c for c in children if "compute.core.runner" in c.cmdline()]


def runner_of(stack: Stack, job_id: str) -> int:
    """The process that runs the job, as its attempt's row has it."""
    return int(
        stack.shell(
            f"""
            from playground.jobs.models import Attempt
            print(Attempt.objects.get(job_id="{job_id}").pid)
            """
        )
    )


def until(stack: Stack, wanted: Callable[[int, list[str]], bool], seconds: float) -> float:
    started = time.monotonic()
    while True:
        status, parts = stack.health()
        if wanted(status, parts.get("down", [])):
            return time.monotonic() - started
        assert time.monotonic() - started < seconds, (status, parts, stack.said())
        time.sleep(0.1)


def red(part: str) -> Callable[[int, list[str]], bool]:
    return lambda status, down: status == 503 and part in down


def green(status: int, down: list[str]) -> bool:
    return status == 200


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["interactive", "training"])
def test_a_frozen_runner_turns_health_red_and_is_replaced(own: Stack, queue: str) -> None:
    part = f"worker-{queue}"
    until(own, lambda _, down: own.health()[1][f"worker.{queue}"]["runners"] == "done", 20)
    frozen = runners(own, part)
    assert frozen
    for runner in frozen:
        os.kill(runner.pid, signal.SIGSTOP)
    assert own.parts[part].poll() is None
    until(own, red(f"worker.{queue}"), RED_S)
    until(own, green, 60)
    assert not {r.pid for r in frozen} & {r.pid for r in runners(own, part)}
    assert all(not psutil.pid_exists(r.pid) or not r.is_running() for r in frozen)
    kind = "pipe.echo" if queue == "interactive" else "pipe.train"
    params = {} if queue == "interactive" else {"steps": 1}
    assert Client(own).submit(kind, wait=10, **params)["state"] == "succeeded"


@pytest.mark.slow
def test_a_runner_frozen_in_the_middle_of_a_job_shows(own: Stack) -> None:
    client = Client(own)
    job = client.submit("pipe.train", steps=100_000, wait_ms=5)
    client.until(job["id"], "running")
    runner = runner_of(own, job["id"])
    os.kill(runner, signal.SIGSTOP)
    try:
        # Its spare goes on answering: a stopped job is not hidden behind it.
        until(own, red("worker.training"), RED_S)
    finally:
        os.kill(runner, signal.SIGCONT)
    until(own, green, 30)
    client.control(job["id"], "cancel")
    assert client.until(job["id"])["state"] == "canceled"


@pytest.mark.slow
def test_a_frozen_worker_turns_health_red_and_comes_back(own: Stack) -> None:
    worker = own.parts["worker-interactive"]
    worker.send_signal(signal.SIGSTOP)
    try:
        until(own, red("worker.interactive"), RED_S)
    finally:
        worker.send_signal(signal.SIGCONT)
    until(own, green, 30)


def test_only_runners_map_torch(stack: Stack) -> None:
    """From the kernel's own account of what each process has mapped into its memory."""
    client = Client(stack)
    assert client.submit("pipe.torch", wait=10)["state"] == "succeeded"
    parents = {name: process.pid for name, process in stack.parts.items()}
    assert len(parents) == 4
    mapped = {name: torch_in(pid) for name, pid in parents.items()}
    assert mapped == dict.fromkeys(parents, False)
    # The same look finds it where it must be.
    assert any(torch_in(r.pid) for r in runners(stack, "worker-interactive"))


def torch_in(pid: int) -> bool:
    return re.search(r"/torch/.*\.so", Path(f"/proc/{pid}/maps").read_text()) is not None
