"""Jobs that take too much: memory, time, processor time, files; and threads that share cores."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from tests.failure.jobs import failed_because
from tests.playground.client import Client
from tests.stack import Stack

NEXT_S = 10.0


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    running = Stack(LEASE_S="5", JOB_MEMORY_MB="512", QUOTA_MB="8", INTERACTIVE_SLOTS="1")
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("case", "reason", "words"),
    [("kill", "worker_lost", "signal 9 (SIGKILL)"), ("memory", "out_of_memory", "512 MB")],
)
def test_a_job_that_takes_its_process_down_costs_nobody_else(
    client: Client, case: str, reason: str, words: str
) -> None:
    """F22, with one slot: the next job starts in less than 10 s. Its own death is the job's, so it
    isn't tried again; only a lost worker is."""
    bad = client.submit("pipe.case", case=case)["id"]
    client.until(bad, timeout_s=20)
    ended = time.monotonic()
    assert client.submit("pipe.echo", wait=10)["state"] == "succeeded"
    assert time.monotonic() - ended < NEXT_S
    failed_because(client, bad, reason, words)


@pytest.mark.slow
def test_a_loop_in_c_ends_at_its_limit_and_keeps_what_it_made(client: Client) -> None:
    """F29: the limit is 5 s; ended 3 s later at most, asserted at three times that."""
    job_id = client.submit("pipe.partial")["id"]
    client.until(job_id, "running")
    started = time.monotonic()
    job = client.until(job_id, timeout_s=30)
    assert time.monotonic() - started < 5 + 3 * 3
    assert (job["state"], job["reason"]) == ("failed", "deadline_exceeded")
    assert client.get(f"/api/v1/jobs/{job_id}/artifacts/part.txt").body == b"kept"
    assert [e["type"] for e in client.events(job_id)].count("metric") == 1
    assert client.submit("pipe.echo", wait=10)["state"] == "succeeded"


def test_processor_time_counts_over_children_that_have_ended(client: Client) -> None:
    """Two seconds are allowed; none of the four children takes more than one."""
    job = client.submit("pipe.burn", wait=10, seconds=0.2)
    assert job["state"] == "succeeded"
    job = client.until(client.submit("pipe.burn", seconds=0.9, processes=4)["id"], timeout_s=40)
    assert (job["state"], job["reason"]) == ("failed", "deadline_exceeded")
    assert "seconds of processor time" in job["message"] and "the limit is 2" in job["message"]


def test_what_a_warm_runner_used_before_is_not_counted_again(client: Client) -> None:
    for _ in range(4):
        assert client.submit("pipe.burn", wait=10, seconds=0.7)["state"] == "succeeded"


def test_files_beyond_the_quota_end_the_job_and_are_not_kept(client: Client) -> None:
    job = client.until(client.submit("pipe.files", megabytes=3, files=4)["id"])
    assert (job["state"], job["reason"]) == ("failed", "quota_exceeded")
    assert "3.0 MB more are needed and" in job["message"]
    events = client.events(job["id"])
    told = [e["data"]["name"] for e in events if e["type"] == "artifact"]
    items = client.get(f"/api/v1/jobs/{job['id']}/artifacts").json["items"]
    assert told == [item["name"] for item in items] == ["part-0.bin", "part-1.bin"]
    assert [int(e["id"][2:]) for e in events] == list(range(1, len(events) + 1))  # no hole
    folder = client.stack.var / "artifacts" / job["id"] / "1"
    assert sorted(p.name for p in folder.iterdir()) == told
    assert client.request("DELETE", f"/api/v1/jobs/{job['id']}").status == 204
    assert client.submit("pipe.files", wait=10, megabytes=3)["state"] == "succeeded"


@pytest.mark.slow
def test_a_warm_runner_is_replaced_after_enough_jobs() -> None:
    stack = Stack(RUNNER_MAX_JOBS="3", INTERACTIVE_SLOTS="1")
    try:
        stack.start()
        client = Client(stack)
        pids = [client.submit("pipe.case", wait=10, case="")["result"]["pid"] for _ in range(9)]
    finally:
        stack.stop()
    changes = [number for number in range(1, 9) if pids[number] != pids[number - 1]]
    # The probe's own no-op jobs count too, so three is the most that one runner serves.
    assert changes and max(b - a for a, b in zip([0, *changes], [*changes, 9], strict=True)) <= 3


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_job_hears_which_device_it_was_given_and_says_if_it_is_not_there() -> None:
    stack = Stack(TRAINING_DEVICES="cuda:0")
    try:
        stack.start()
        client = Client(stack)
        job = client.until(client.submit("pipe.backward", events=1)["id"], timeout_s=60)
    finally:
        stack.stop()
    assert (job["state"], job["reason"]) == ("failed", "user_error")
    assert job["message"].startswith("This machine has no usable CUDA device.")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_jobs_go_forward_and_backward_and_none_hangs() -> None:
    """F27: a fresh interpreter each, so torch was never forked; 60 s each at most."""
    stack = Stack(TRAINING_SLOTS="2")
    try:
        stack.start()
        client = Client(stack)
        jobs = [client.submit("pipe.backward", events=5)["id"] for _ in range(20)]
        for job_id in jobs:
            assert client.until(job_id, timeout_s=60)["state"] == "succeeded"
    finally:
        stack.stop()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_trainings_side_by_side_share_the_cores() -> None:
    """F28: each has cores ÷ slots threads, set before torch was imported. The stated ratio is 2.4;
    on a machine that does other things too it is asserted at 3."""
    stack = Stack(TRAINING_SLOTS="2", TRAINING_THREADS="1", TRAINING_SPARES="2")
    try:
        stack.start()
        client = Client(stack)
        alone = seconds(client, 1)
        both = seconds(client, 2)
    finally:
        stack.stop()
    print(f"two side by side took {both / alone:.2f} times as long as one alone")
    assert both / alone < 3


def seconds(client: Client, number: int) -> float:
    jobs = [client.submit("pipe.backward", events=1500)["id"] for _ in range(number)]
    ended = [client.until(job_id, timeout_s=120) for job_id in jobs]
    assert {job["result"]["threads"] for job in ended} == {1}
    took = []
    for job in ended:
        events = client.events(job["id"])
        running = next(e["t"] for e in events if e["data"].get("state") == "running")
        took.append(events[-1]["t"] - running)
    return max(took)
