"""Workers that live long: nothing piles up (F30), no result is waited for (F31), and Redis may come
and go (F24)."""

from __future__ import annotations

import ast
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from tests.playground.client import Client
from tests.stack import ROOT, Stack

MB = 2**20
SHORT_JOBS, AT_ONCE = 2_000, 16


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_thousand_short_jobs_leave_nothing_behind() -> None:
    """Half of them raise. The worker's own memory, not its runners', and Redis' keys."""
    stack = Stack(STREAM_TTL_S="1")
    try:
        stack.start()
        client = Client(stack)
        worker = psutil.Process(stack.parts["worker-interactive"].pid)

        def one(number: int) -> str:
            if number % 2:
                return str(client.submit("pipe.case", wait=10, case="bug")["state"])
            return str(client.submit("pipe.echo", wait=10)["state"])

        def run(numbers: range) -> list[str]:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                return list(pool.map(one, numbers))

        run(range(50))  # what is made once is made
        keys = settled_keys(stack)
        before = worker.memory_info().rss
        states = run(range(SHORT_JOBS))
        assert (states.count("succeeded"), states.count("failed")) == (1_000, 1_000)
        grown = (worker.memory_info().rss - before) / MB
        assert grown < 50, grown
        assert settled_keys(stack) <= keys + 3, "Redis keeps something of each job"
    finally:
        stack.stop()


def settled_keys(stack: Stack) -> int:
    """How many keys there are once the streams have expired."""
    time.sleep(3)
    return int(stack.shell("from playground import redis; print(redis.shared().dbsize())"))


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_redis_restarted_five_times_in_a_minute() -> None:
    """Under load: every job that was accepted ends, and no event is missing."""
    stack = Stack()
    try:
        stack.start()
        client = Client(stack)
        accepted: list[str] = []
        started = time.monotonic()
        for restart in range(5):
            for _ in range(20):
                answer = client.post(
                    "/api/v1/jobs", {"kind": "pipe.talk", "params": {"events": 20, "wait_ms": 5}}
                )
                assert answer.status in (202, 503), answer.body
                if answer.status == 202:
                    accepted.append(answer.json["id"])
            stack.redis.stop()
            time.sleep(1)
            stack.redis.start()
            until = started + 12 * (restart + 1)
            time.sleep(max(0.0, until - time.monotonic()))
        assert len(accepted) >= 80
        for job_id in accepted:
            job = client.until(job_id, timeout_s=120)
            assert job["state"] == "succeeded", (job, stack.said())
        for job_id in accepted[::7]:
            events = client.events(job_id)
            steps = [e["data"]["step"] for e in events if e["type"] == "metric"]
            assert steps == list(range(20)) and events[-1]["type"] == "end"
        stack.wait_until_healthy()
    finally:
        stack.stop()


def test_no_result_is_waited_for() -> None:
    """Celery stores none, and nobody asks: a job's row is the truth."""
    for path in (ROOT / "playground").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            assert name not in ("AsyncResult", "GroupResult", "delay", "apply_async"), path
        sent = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "send_task"
        ]
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == "send_task"
        ]
        assert len(sent) == len(calls), f"{path}: the result of send_task is used"


@pytest.mark.slow
def test_the_end_while_redis_is_away() -> None:
    """The row is final all the same, and the tail of the events follows when Redis is back."""
    stack = Stack()
    try:
        stack.start()
        client = Client(stack)
        job = client.submit("pipe.train", steps=60, wait_ms=20)
        client.until(job["id"], "running")
        stack.redis.stop()
        try:
            ended = client.until(job["id"], timeout_s=30)
            assert ended["state"] == "succeeded"
        finally:
            stack.redis.start()
        until = time.monotonic() + 30
        while (events := client.events(job["id"]))[-1]["type"] != "end":
            assert time.monotonic() < until, stack.said()
            time.sleep(0.2)
        steps = [e["data"]["step"] for e in events if e["type"] == "metric"]
        assert steps == list(range(60))
        # In the stream too, from which live readers read, not in the log on disk alone.
        shown = stack.shell(
            f"""
            from playground import redis
            from playground.jobs import stream
            print(redis.shared().xrevrange(stream.key("{job["id"]}"), count=1))
            """
        )
        assert events[-1]["id"] in shown
    finally:
        stack.stop()
