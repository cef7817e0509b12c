"""F35: a training that is stopped in the middle goes on elsewhere, and ends bit for bit as one that
nobody stopped (on a CPU with one thread)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import safetensors

from tests.failure.jobs import in_order, runner_pid
from tests.playground.client import Client
from tests.stack import Stack

STEPS = 300
PARAMS = {
    "layers": 1,
    "heads": 2,
    "d_model": 32,
    "block": 32,
    "batch": 8,
    "steps": STEPS,
    "dropout": 0.1,
    "eval_every": 100,
    "checkpoint_every": 50,
    "seed": 35,
}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    running = Stack(LEASE_S="3", TRAINING_THREADS="1", INTERACTIVE_SLOTS="1")
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def whole(stack: Stack) -> dict[str, Any]:
    """What a run that nobody stops comes to."""
    client = Client(stack)
    job_id = client.submit("transformer.train", **PARAMS)["id"]
    job = client.until(job_id, timeout_s=90)
    assert (job["state"], job["attempt"]) == ("succeeded", 1)
    return {"weights": weights(client, job_id), "metrics": metrics(client, job_id)}


def weights(client: Client, job_id: str) -> dict[str, bytes]:
    """Every tensor's bits. (The file's own may differ: its header has no fixed order.)"""
    raw = client.get(f"/api/v1/jobs/{job_id}/artifacts/model.safetensors").body
    return {name: bytes(info["data"]) for name, info in safetensors.deserialize(raw)}


def metrics(client: Client, job_id: str) -> dict[int, float]:
    """The loss at each step, as a reader holds it: after `resumed` older ones beyond it go."""
    found: dict[int, float] = {}
    for event in client.events(job_id):
        if event["type"] == "resumed":
            found = {s: v for s, v in found.items() if s <= event["data"]["from_step"]}
        if event["type"] == "metric":
            found[event["data"]["step"]] = event["data"]["loss"]
    return found


def until_step(client: Client, job_id: str, step: int) -> None:
    until = time.monotonic() + 60
    while max(metrics(client, job_id), default=0) < step:
        assert time.monotonic() < until, client.stack.said()
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["worker told to stop", "runner told to stop", "worker killed"])
def test_a_stopped_training_ends_as_if_nobody_had_stopped_it(
    client: Client, whole: dict[str, Any], how: str
) -> None:
    job_id = client.submit("transformer.train", **PARAMS)["id"]
    until_step(client, job_id, 75)
    if how == "runner told to stop":
        os.kill(runner_pid(client, job_id), signal.SIGTERM)
    else:
        number = signal.SIGKILL if how == "worker killed" else signal.SIGTERM
        client.stack.stop_part("worker-training", number)
        client.stack.start_part("worker-training")
        client.stack.wait_until_healthy()
    job = client.until(job_id, timeout_s=120)
    assert (job["state"], job["attempt"]) == ("succeeded", 2), job
    events = client.events(job_id)
    in_order(events)
    resumed = next(event for event in events if event["type"] == "resumed")
    assert 50 <= resumed["data"]["from_step"] < STEPS
    assert [e["data"]["attempt"] for e in events if e["data"].get("state") == "queued"] == [2]
    assert metrics(client, job_id) == whole["metrics"]
    assert weights(client, job_id) == whole["weights"]
