"""The pipe on MariaDB: the same outcomes as on SQLite, also when the server goes and returns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from playground import one_thread
from playground.jobs import database
from tests.mariadb import MariaDB
from tests.playground.client import Client, follow
from tests.stack import ROOT, Stack

WIDE = (
    "test_api.py",
    "test_api_failures.py",
    "test_artifacts.py",
    "test_dispatch.py",
    "test_leases.py",
    "test_places.py",
    "test_fairness.py",
    "test_recovery.py",
    "test_socket.py",
    "test_sse.py",
)
EMOJI = (
    "训练 🎉 \U0001f468‍\U0001f469‍\U0001f467 ünïcödé"  # outside the three bytes of MySQL's old utf8
)
# A page or API process: its pool, its request threads, and what looks at it from time to time.
WEB_SESSIONS = database.THREADS + one_thread.AT_ONCE
OTHER_SESSIONS = 8  # the dispatcher and a few threads of each worker


@pytest.fixture
def client(mysql_stack: Stack) -> Client:
    return Client(mysql_stack)


def test_text_beyond_the_basic_plane_survives(client: Client) -> None:
    job = client.submit("pipe.echo", wait=10, text=EMOJI)
    assert job["state"] == "succeeded"
    assert job["result"] == {"text": EMOJI}
    assert client.job(job["id"])["params"]["text"] == EMOJI


@pytest.mark.parametrize("other", ["MODEL.BIN", "modèl.bin", "model.bin%00"])
def test_a_name_is_itself_alone(client: Client, other: str) -> None:
    """As on SQLite: in the usual collations these would be the same name."""
    job = client.submit("pipe.train", wait=10, steps=1, wait_ms=0)
    assert client.get(f"{job['urls']['artifacts']}/model.bin").status == 200
    assert client.get(f"{job['urls']['artifacts']}/{quote(other, safe='%')}").status == 404


def test_moments_keep_their_microseconds(client: Client) -> None:
    jobs = [client.submit("pipe.echo", wait=10) for _ in range(4)]
    parts = {job["created_at"].partition(".")[2].rstrip("Z") for job in jobs}
    assert all(len(part) == 6 for part in parts) and len(parts) > 1
    for job in jobs:
        assert job["created_at"] < job["started_at"] < job["ended_at"]


def test_only_one_wins_a_claim_and_the_same_values_again_are_a_write(
    mysql_stack: Stack, client: Client
) -> None:
    """Rows that match are counted, also where the UPDATE changes nothing in them: MySQL's own
    count leaves those out, and a lease renewed within one microsecond would look lost."""
    job = client.submit("pipe.train", wait=10, steps=1, wait_ms=0)
    code = f"""
        from django.db import connection
        from playground.jobs import attempts, states
        from playground.jobs.models import Job
        rows = Job.objects.filter(pk="{job["id"]}")
        assert rows.update(attempt=1) == 1 and rows.update(attempt=1) == 1
        assert rows.filter(attempt=2).update(attempt=1) == 0
        rows.update(state=states.QUEUED, log_closed=False)
        rows.first().attempts.all().delete()
        assert attempts.claim(job_id="{job["id"]}", attempt=1, worker="a") is not None
        assert attempts.claim(job_id="{job["id"]}", attempt=1, worker="b") is None
        rows.update(state=states.SUCCEEDED, lease_worker="", log_closed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@tx_isolation, @@collation_database")
            assert cursor.fetchone() == ("READ-COMMITTED", "utf8mb4_bin")
    """
    mysql_stack.shell(code)


def test_a_deadlock_is_tried_again(mysql_stack: Stack) -> None:
    """Two transactions that take the same two rows in opposite order: the server ends one of them
    (error 1213), and both have their way in the end."""
    mysql_stack.shell(
        """
        import threading
        from django.db import connection, transaction
        from playground import stores
        from playground.accounts.models import User
        from playground.accounts.owner import local_owner

        ids = [local_owner().pk, User.objects.create(username="second").pk]
        barrier, tries = threading.Barrier(2), []

        @stores.repeated
        def take(first, second, name):
            tries.append(name)
            with transaction.atomic():
                User.objects.filter(pk=first).update(first_name=name)
                if len(tries) <= 2:
                    barrier.wait(10)
                User.objects.filter(pk=second).update(first_name=name)

        def work(first, second, name):
            try:
                take(first, second, name)
                done.append(name)
            finally:
                connection.close()

        done = []
        threads = [threading.Thread(target=work, args=a) for a in [(*ids, "a"), (*ids[::-1], "b")]]
        [thread.start() for thread in threads]
        [thread.join(30) for thread in threads]
        assert sorted(done) == ["a", "b"] and len(tries) == 3, (done, tries)
        User.objects.filter(username="second").delete()
        """
    )


def test_many_submissions_at_once_all_end(client: Client) -> None:
    with ThreadPoolExecutor(12) as pool:
        jobs = list(pool.map(lambda i: client.submit("pipe.echo", text=f"{i}"), range(60)))
    assert len({job["id"] for job in jobs}) == 60
    for job in jobs:
        ended = client.until(job["id"], timeout_s=60)
        assert ended["state"] == "succeeded", ended
    # In the order of submission each event once: state, state, end.
    events = client.events(jobs[-1]["id"])
    assert [event["type"] for event in events] == ["state", "state", "end"]


def test_connections_stay_bounded(mysql_stack: Stack, client: Client) -> None:
    """300 sockets and 500 requests, up to 40 at once."""
    assert mysql_stack.mariadb is not None
    job = client.submit("pipe.train", wait=10, steps=1, wait_ms=0)
    before = mysql_stack.mariadb.sessions()
    most, over = [0], threading.Event()

    def watch() -> None:
        assert mysql_stack.mariadb is not None
        while not over.wait(0.02):
            most[0] = max(most[0], mysql_stack.mariadb.sessions())

    def socket(_: int) -> None:
        with client.socket() as opened:
            events, _others = follow(opened, job["id"])
            assert events[-1]["type"] == "end"

    def request(_: int) -> None:
        assert client.get(f"/api/v1/jobs/{job['id']}").status == 200

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with ThreadPoolExecutor(40) as pool:
            list(pool.map(socket, range(300)))
            list(pool.map(request, range(500)))
    finally:
        over.set()
        watcher.join()
    assert most[0] <= WEB_SESSIONS + OTHER_SESSIONS, most
    until = time.monotonic() + 10
    while mysql_stack.mariadb.sessions() > before + database.THREADS:
        assert time.monotonic() < until, "connections stay behind"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_server_away_for_three_seconds(mysql_stack: Stack, client: Client, how: str) -> None:
    """In the middle of a run, with a watcher. The run ends well, its events are complete, and
    whoever asks meanwhile is told to come back."""
    mariadb = mysql_stack.mariadb
    assert mariadb is not None
    job = client.submit("pipe.train", steps=300, wait_ms=20, save_every=50)
    client.until(job["id"], "running")
    time.sleep(1)
    getattr(mariadb, how)()
    try:
        time.sleep(1)
        answer = client.get(f"/api/v1/jobs/{job['id']}")
        assert (answer.status, answer.json["code"]) == (503, "store_unavailable")
        assert 1 <= int(answer.headers["retry-after"]) <= 5
        assert mysql_stack.health()[1]["down"] == ["database"]
        time.sleep(2)
    finally:
        mariadb.start()
    started = time.monotonic()
    second = client.submit("pipe.echo", wait=10)
    assert second["state"] == "succeeded", second
    assert time.monotonic() - started < 6
    ended = client.until(job["id"], timeout_s=30)
    assert (ended["state"], ended["attempt"]) == ("succeeded", 1), (ended, mysql_stack.said())
    steps = _steps(client.events(job["id"]))
    assert steps == list(range(300))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_pipes_own_tests_on_mariadb() -> None:
    """What the pipe must do, once more: the running stack and the in-process tests alike."""
    mariadb = MariaDB()
    try:
        mariadb.create()
        with mariadb.connect() as cursor:
            cursor.execute("GRANT ALL PRIVILEGES ON test_playground.* TO 'playground'@'localhost'")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--database",
            "mysql",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            [*command, *(f"tests/playground/{name}" for name in WIDE)],
            env={**os.environ, "DATABASE_URL": mariadb.url},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=840,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert re.search(r"\b[1-9]\d* passed", done.stdout)
    finally:
        mariadb.remove()


def _steps(events: list[dict[str, Any]]) -> list[int]:
    return [event["data"]["step"] for event in events if event["type"] == "metric"]
