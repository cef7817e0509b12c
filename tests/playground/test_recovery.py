"""Controls, ends of every sort, lost workers, planned stops: real processes, killed for real."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from playground.jobs.spool import FENCE_STEP
from tests.failure.jobs import failed_because, in_order, restart, runner_pid, running, train
from tests.playground.client import Client
from tests.stack import Stack


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """One of our own, with short patience: its parts get killed."""
    running = Stack(LEASE_S="3", PARK_AFTER_S="2", JOB_MEMORY_MB="512")
    try:
        running.start()
        yield running
    finally:
        running.stop()


# -- pause, step, set --------------------------------------------------------------------------


def test_pause_step_set_resume(client: Client) -> None:
    job_id = train(client, steps=40, wait_ms=20)
    client.until(job_id, "running")
    client.control(job_id, "pause")
    client.until(job_id, "paused")
    metrics = [e for e in client.events(job_id) if e["type"] == "metric"]
    time.sleep(0.2)
    assert len([e for e in client.events(job_id) if e["type"] == "metric"]) == len(metrics)

    client.control(job_id, "step")
    until = time.monotonic() + 5
    while len([e for e in client.events(job_id) if e["type"] == "metric"]) <= len(metrics):
        assert time.monotonic() < until
    client.until(job_id, "paused")
    assert len([e for e in client.events(job_id) if e["type"] == "metric"]) == len(metrics) + 1

    assert client.control(job_id, "set", lr=2.5).status == 202
    client.control(job_id, "resume")
    job = client.until(job_id, timeout_s=20)
    assert (job["state"], job["result"]["lr"]) == ("succeeded", 2.5)
    events = client.events(job_id)
    in_order(events)
    controls = [e["data"]["action"] for e in events if e["type"] == "control"]
    assert controls == ["pause", "step", "set", "resume"]
    assert [e["data"]["step"] for e in events if e["type"] == "metric"] == list(range(40))
    assert job["progress"]["done"] == 40


# -- ends of every sort ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "reason", "words"),
    [
        ("user", "user_error", "That is not possible."),
        ("bug", "internal", "RuntimeError"),
        ("exit", "worker_lost", "exit code 3"),
    ],
)
def test_failures_say_why(client: Client, case: str, reason: str, words: str) -> None:
    job = client.submit("pipe.case", case=case)
    failed_because(client, job["id"], reason, words)


def test_a_warm_runner_serves_many_jobs(client: Client) -> None:
    pids = {client.submit("pipe.case", wait=10, case="")["result"]["pid"] for _ in range(6)}
    assert len(pids) <= 2  # two slots


def test_training_gets_a_fresh_process_each_time(client: Client) -> None:
    pids = set()
    for _ in range(2):
        job_id = train(client, steps=1, wait_ms=0)
        client.until(job_id)
        pids.add(runner_pid(client, job_id))
    assert len(pids) == 2


# -- lost workers and planned stops ------------------------------------------------------------


def test_a_killed_worker_costs_one_attempt_and_nothing_else(client: Client) -> None:
    job_id = train(client, steps=120, wait_ms=20)
    client.until(job_id, "running")
    while not [e for e in client.events(job_id) if e["type"] == "artifact"]:
        time.sleep(0.05)
    pid = runner_pid(client, job_id)
    client.stack.stop_part("worker-training", signal.SIGKILL)
    until = time.monotonic() + 3
    while psutil.pid_exists(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not psutil.pid_exists(pid)  # no orphan
    restart(client, "worker-training")
    job = client.until(job_id, timeout_s=30)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert job["result"]["first"] > 0  # from its checkpoint, not from the start
    events = client.events(job_id)
    in_order(events)
    fence = next(e for e in events if e["data"].get("state") == "queued")
    assert int(fence["id"].split("-")[1]) > FENCE_STEP
    resumed = next(e for e in events if e["type"] == "resumed")
    assert resumed["data"] == {"from_step": job["result"]["first"]}
    steps = [e["data"]["step"] for e in events if e["type"] == "metric" and e["id"][0] == "2"]
    assert steps == list(range(job["result"]["first"], 120))


def test_a_worker_killed_twice_fails_the_job(client: Client) -> None:
    job_id = train(client)
    for attempt in (1, 2):
        running(client, job_id, attempt)
        client.stack.stop_part("worker-training", signal.SIGKILL)
        if attempt == 1:
            restart(client, "worker-training")
    job = client.until(job_id, "failed", timeout_s=15)
    restart(client, "worker-training")
    assert (job["reason"], job["attempt"]) == ("worker_lost", 2)
    events = client.events(job_id)
    in_order(events)
    assert events[-1]["type"] == "end"


def test_a_runner_that_is_stopped_again_and_again_fails_the_second_time(client: Client) -> None:
    """Nobody has asked for a cancel, so it isn't one; and it doesn't go round for ever."""
    job_id = train(client)
    for attempt in (1, 2):
        running(client, job_id, attempt)
        os.kill(runner_pid(client, job_id), signal.SIGTERM)
    job = client.until(job_id, timeout_s=30)
    assert (job["state"], job["reason"], job["attempt"]) == ("failed", "worker_lost", 2)
    assert job["message"].startswith("Something outside stopped the process")
    assert "What it saved last is kept: checkpoints/" in job["message"]


def test_a_killed_runner_says_which_checkpoint_is_kept(client: Client) -> None:
    job_id = train(client)
    client.until(job_id, "running")
    while len([e for e in client.events(job_id) if e["type"] == "artifact"]) < 2:
        time.sleep(0.05)
    os.kill(runner_pid(client, job_id), signal.SIGKILL)
    job = client.until(job_id, "failed")
    assert job["reason"] == "worker_lost"
    events = client.events(job_id)
    in_order(events)
    newest = [e for e in events if e["type"] == "artifact"][-1]["data"]["name"]
    assert job["message"].endswith(f"(SIGKILL). What it saved last is kept: {newest}.")
    error = next(e for e in events if e["type"] == "error")
    assert error["data"]["message"] == events[-1]["data"]["message"] == job["message"]
    chinese = client.get(f"/api/v1/jobs/{job_id}", Accept_Language="zh-CN").json["message"]
    assert f"它最后保存的检查点还在：{newest}。" in chinese


def test_a_stalled_worker_finds_its_job_gone(client: Client) -> None:
    """SIGSTOP past the lease, then SIGCONT: the old attempt must not write one more thing."""
    job_id = train(client)
    client.until(job_id, "running")
    old = client.stack.parts["worker-training"]
    old_pid = runner_pid(client, job_id)
    os.kill(old.pid, signal.SIGSTOP)
    try:
        until = time.monotonic() + 15
        while client.job(job_id)["attempt"] == 1:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        os.kill(old.pid, signal.SIGCONT)
    running(client, job_id, 2)
    events = client.events(job_id)
    in_order(events)
    fence = next(n for n, e in enumerate(events) if e["data"].get("state") == "queued")
    assert all(e["id"].startswith("2-") for e in events[fence + 1 :])
    assert not psutil.pid_exists(old_pid)
    client.post(f"/api/v1/jobs/{job_id}/cancel")
    client.until(job_id, "canceled", timeout_s=3)


def test_a_planned_stop_loses_nothing_and_spends_no_retry(client: Client) -> None:
    job_id = train(client, steps=100, wait_ms=20)
    client.until(job_id, "running")
    while not [e for e in client.events(job_id) if e["type"] == "metric"]:
        time.sleep(0.05)
    pid = runner_pid(client, job_id)
    assert client.stack.stop_part("worker-training") < 8
    assert not psutil.pid_exists(pid)
    assert client.job(job_id)["state"] == "queued"
    restart(client, "worker-training")
    job = client.until(job_id, timeout_s=30)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    events = client.events(job_id)
    in_order(events)
    first = [e["data"]["step"] for e in events if e["type"] == "metric" and e["id"][0] == "1"]
    second = [e["data"]["step"] for e in events if e["type"] == "metric" and e["id"][0] == "2"]
    assert second == list(range(job["result"]["first"], 100))
    assert first[: job["result"]["first"]] == list(range(job["result"]["first"]))


def test_a_paused_job_gives_its_slot_back_and_resumes(client: Client) -> None:
    job_id = train(client, steps=60, wait_ms=10)
    client.until(job_id, "running")
    client.control(job_id, "set", lr=3.0)
    client.control(job_id, "pause")
    client.until(job_id, "paused")
    other = train(client, steps=1, wait_ms=0)  # the only slot is held until it is parked
    client.until(other, "succeeded", timeout_s=15)
    assert client.job(job_id)["state"] == "paused"
    assert client.control(job_id, "step").status == 409
    answer = client.control(job_id, "resume")
    assert (answer.status, answer.json["attempt"]) == (202, 2)
    job = client.until(job_id, timeout_s=20)
    assert (job["state"], job["result"]["lr"]) == ("succeeded", 3.0)
    events = client.events(job_id)
    in_order(events)
    assert "resumed" in [e["type"] for e in events]


def test_a_dispatcher_that_was_killed_starts_again(client: Client) -> None:
    client.stack.stop_part("dispatcher", signal.SIGKILL)
    job = client.submit("pipe.echo")
    time.sleep(0.3)
    assert client.job(job["id"])["state"] == "queued"
    client.stack.start_part("dispatcher")
    client.until(job["id"], "succeeded", timeout_s=20)
    client.stack.wait_until_healthy()


def test_health_names_what_is_down(client: Client) -> None:
    client.stack.stop_part("worker-interactive")
    until = time.monotonic() + 20
    while client.stack.health()[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.2)
    status, parts = client.stack.health()
    assert (status, parts["down"]) == (503, ["worker.interactive"])
    restart(client, "worker-interactive")


def test_the_web_server_says_goodbye_and_leaves(client: Client) -> None:
    job_id = train(client, steps=400, wait_ms=10)
    with client.socket() as socket:
        socket.send(json.dumps({"op": "sub", "topic": f"job:{job_id}", "after": None}))
        connection = http.client.HTTPConnection("127.0.0.1", client.stack.port, timeout=20)
        headers = {"Accept": "text/event-stream"}
        connection.request("GET", f"/api/v1/jobs/{job_id}/events", headers=headers)
        streaming = connection.getresponse()
        while json.loads(socket.recv(timeout=10))["op"] != "ev":
            pass
        assert client.stack.stop_part("web") < 8
        heard = []
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                heard.append(json.loads(socket.recv(timeout=5)))
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        assert 1000 <= heard[-1]["retry_ms"] <= 5000
        assert heard[-1]["op"] == "bye"
        assert b": bye" in streaming.read()
        connection.close()
    restart(client, "web")
    assert client.job(job_id)["state"] in ("running", "succeeded")
    client.post(f"/api/v1/jobs/{job_id}/cancel")


def test_redis_away_for_two_seconds(client: Client) -> None:
    """The spool goes on; afterwards the stream has every event, and a reader misses none."""
    job_id = train(client, steps=200, wait_ms=20)
    client.until(job_id, "running")
    with client.socket() as socket:
        socket.send(json.dumps({"op": "sub", "topic": f"job:{job_id}", "after": None}))
        client.stack.redis.stop()
        time.sleep(2)
        client.stack.redis.start()
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["type"] != "end":
            message = json.loads(socket.recv(timeout=30))
            if message["op"] == "ev":
                seen += message["events"]
    in_order(seen)
    steps = [e["data"]["step"] for e in seen if e["type"] == "metric"]
    assert steps == list(range(200))
    client.stack.wait_until_healthy()
