"""Messages that come twice, late or never; starts by the clock; a Redis without room."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.failure.jobs import in_order, train
from tests.playground.client import Client, problem
from tests.stack import ROOT, Stack


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    running = Stack(LEASE_S="5")
    try:
        running.start()
        yield running
    finally:
        running.stop()


def attempts(client: Client, job_id: str) -> int:
    path = f"file:{client.stack.var}/playground.sqlite3?mode=ro"
    with sqlite3.connect(path, uri=True) as db:
        (count,) = db.execute(
            "SELECT COUNT(*) FROM jobs_attempt WHERE job_id = ?", [job_id]
        ).fetchone()
    db.close()
    return int(count)


AGAIN = """
import sys, time, django
django.setup()
from playground.jobs.dispatch import publish
print("ready", flush=True)
for line in sys.stdin:
    wait, job = line.split()
    time.sleep(float(wait))
    publish("interactive", job, 1)
    print(job, flush=True)
"""


@pytest.mark.parametrize("number", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_the_same_message_delivered_twice_runs_once(client: Client, number: int) -> None:
    """F21: 0 to 5 s apart, while it waits, while it runs and after its end: one attempt, one set
    of events."""
    rng = random.Random(21)
    jobs = []
    for _ in range(number):
        jobs.append(client.submit("pipe.talk", events=20, wait_ms=rng.choice([0, 20]))["id"])
    sender = subprocess.Popen(
        [sys.executable, "-c", AGAIN],
        env=client.stack.env,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert sender.stdin and sender.stdout
    assert sender.stdout.readline() == "ready\n"
    for job_id in jobs:
        sender.stdin.write(f"{rng.choice([0, 0, 5 / number])} {job_id}\n")
    sender.stdin.close()
    assert [line.strip() for line in sender.stdout] == jobs
    sender.stdout.close()
    assert sender.wait(30) == 0
    for job_id in jobs:
        job = client.until(job_id, timeout_s=60)
        assert (job["state"], job["attempt"]) == ("succeeded", 1)
    assert client.submit("pipe.echo", wait=10)["state"] == "succeeded"  # behind all copies
    for job_id in jobs:
        events = client.events(job_id)
        in_order(events)
        counts = Counter(e["type"] for e in events)
        assert (counts["metric"], counts["end"], attempts(client, job_id)) == (20, 1, 1)


def later(client: Client, seconds: float) -> tuple[str, datetime]:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    answer = client.post("/api/v1/jobs", {"kind": "pipe.echo", "start_at": at.isoformat()})
    assert answer.status == 202, answer.body
    return answer.json["id"], at


def lateness(client: Client, job_id: str, at: datetime) -> float:
    job = client.until(job_id, timeout_s=30)
    assert job["state"] == "succeeded"
    return (datetime.fromisoformat(job["started_at"]) - at).total_seconds()


def test_a_planned_start_comes_in_time(client: Client) -> None:
    """F34: within 2 s, asserted at three times that; never before."""
    job_id, at = later(client, 3)
    shown = client.job(job_id)
    assert (shown["state"], shown["place"]) == ("queued", None)
    assert 0 <= lateness(client, job_id, at) < 6


@pytest.mark.slow
def test_a_planned_start_outlives_a_restart_of_dispatcher_and_worker(client: Client) -> None:
    job_id, at = later(client, 9)
    for part in ("dispatcher", "worker-interactive"):
        client.stack.stop_part(part, signal.SIGKILL)
        client.stack.start_part(part)
    client.stack.wait_until_healthy()
    assert datetime.now(UTC) < at, "this machine is too slow for the test"
    assert 0 <= lateness(client, job_id, at) < 6


def test_no_celery_message_carries_a_time() -> None:
    for path in (ROOT / "playground").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "eta=" not in text and "countdown=" not in text, path


@pytest.mark.parametrize("_", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_a_web_server_killed_between_commit_and_message(client: Client, _: int) -> None:
    """F37: Redis is frozen, so the request hangs on waking the dispatcher, its row committed. Then
    the web process dies. The job starts in less than 15 s, asserted at three times that."""
    before = queued(client)
    assert client.stack.redis.process is not None
    redis_pid = client.stack.redis.process.pid
    os.kill(redis_pid, signal.SIGSTOP)
    try:
        threading.Thread(target=post_and_lose, args=(client.stack,), daemon=True).start()
        until = time.monotonic() + 20
        while not (made := queued(client) - before):
            assert time.monotonic() < until
            time.sleep(0.01)
        client.stack.stop_part("web", signal.SIGKILL)
    finally:
        os.kill(redis_pid, signal.SIGCONT)
    killed = time.monotonic()
    client.stack.start_part("web")
    client.stack.wait_until_healthy()
    job = client.until(made.pop(), timeout_s=45)
    assert job["state"] == "succeeded"
    assert time.monotonic() - killed < 45


def queued(client: Client) -> set[str]:
    path = f"file:{client.stack.var}/playground.sqlite3?mode=ro"
    with sqlite3.connect(path, uri=True) as db:
        found = {row[0] for row in db.execute("SELECT id FROM jobs_job WHERE state = 'queued'")}
    db.close()
    return found


def post_and_lose(stack: Stack) -> None:
    """A submission whose client never gets an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30)
    body = json.dumps({"kind": "pipe.echo", "params": {}})
    try:
        connection.request("POST", "/api/v1/jobs", body, {"Content-Type": "application/json"})
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return
    finally:
        connection.close()


@pytest.mark.slow
def test_a_full_redis_refuses_jobs_and_loses_nothing(client: Client) -> None:
    """F36: a submission gets 503 with Retry-After; the job that runs goes on to its end; with room
    again its stream has every event."""
    import redis

    job_id = train(client, steps=150, wait_ms=20)
    client.until(job_id, "running")
    own = redis.Redis(unix_socket_path=str(client.stack.redis.socket))
    own.config_set("maxmemory", "1mb")  # less than it uses already
    try:
        answer = client.post("/api/v1/jobs", {"kind": "pipe.echo", "params": {}})
        problem(answer, 503, "store_unavailable")
        assert 1 <= int(answer.headers["retry-after"]) <= 30
        job = client.until(job_id, timeout_s=40)
        assert job["state"] == "succeeded"
    finally:
        own.config_set("maxmemory", "0")
        own.close()
    client.stack.wait_until_healthy()
    assert client.submit("pipe.echo", wait=10)["state"] == "succeeded"
    until = time.monotonic() + 30
    while not (events := client.events(job_id)) or events[-1]["type"] != "end":
        assert time.monotonic() < until
        time.sleep(0.2)
    in_order(events)
    steps = [e["data"]["step"] for e in events if e["type"] == "metric"]
    assert steps == list(range(150))


@pytest.mark.slow
def test_one_student_with_fifty_jobs_delays_another_by_one_job_a_slot(client: Client) -> None:
    """F32 with every real part; one owner in local mode, so the rows are given to a second one."""
    said = client.stack.shell("""
        from playground.accounts.models import User
        from playground.jobs.models import Job
        from playground.jobs import service
        first, second = (User.objects.create(username=name) for name in ("ann", "bob"))
        for owner, number in ((first, 50), (second, 1)):
            for _ in range(number):
                job = service.submit(owner_id=owner.pk, kind="pipe.train", params={"steps": 2})
        print(job.pk)
    """)
    job_id = said.split()[-1]
    until = time.monotonic() + 60
    while (ahead := started_before(client, job_id)) is None:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert ahead <= 2  # one that was started before it came, and one turn
    client.stack.shell("""
        from playground.jobs.models import Job
        from playground.jobs import service
        for job in Job.objects.filter(owner__username="ann"):
            service.cancel(job=job)
    """)


def started_before(client: Client, job_id: str) -> int | None:
    path = f"file:{client.stack.var}/playground.sqlite3?mode=ro"
    with sqlite3.connect(path, uri=True) as db:
        found = db.execute(
            "SELECT (SELECT COUNT(*) FROM jobs_job AS other JOIN accounts_user AS owner"
            " ON owner.id = other.owner_id WHERE owner.username = 'ann'"
            " AND other.started_at > mine.created_at AND other.started_at < mine.started_at)"
            " FROM jobs_job AS mine WHERE mine.id = ? AND mine.started_at IS NOT NULL",
            [job_id],
        ).fetchone()
    db.close()
    return int(found[0]) if found else None
