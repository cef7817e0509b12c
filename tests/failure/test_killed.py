"""kill -9 of any one part at random moments of a training run: nobody sees a gap or a double."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from compute.core.errors import REASONS
from tests.failure.followers import Follower
from tests.failure.jobs import in_order, runner_pid, train
from tests.playground.client import Client
from tests.stack import Stack

PARTS = ("web", "worker-training", "runner", "redis")
MOMENTS = 10
FAST = {("web", 0), ("runner", 0), ("redis", 0)}
STEPS = 120


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    running = Stack(LEASE_S="3", COMPACT_AFTER_S="1")
    try:
        running.start()
        yield running
    finally:
        running.stop()


@dataclass
class Reading:
    """Follows by server-sent events, and comes back with the last id that it saw."""

    url: str
    events: list[dict[str, Any]] = field(default_factory=list)

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=httpx.Timeout(5, read=30)) as http:
            while not self.events or self.events[-1]["type"] != "end":
                try:
                    await self.read(http)
                except httpx.TransportError:
                    await asyncio.sleep(0.2)

    async def read(self, http: httpx.AsyncClient) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.events:
            headers["Last-Event-ID"] = self.events[-1]["id"]
        async with http.stream("GET", self.url, headers=headers) as answer:
            if answer.status_code != 200:
                await asyncio.sleep(0.2)
                return
            async for line in answer.aiter_lines():
                assert not line.startswith("event: gap")
                if line.startswith("data: "):
                    self.events.append(json.loads(line[6:]))


def kill(client: Client, part: str, job_id: str) -> None:
    """kill -9, and the start that whoever watches over the parts would do."""
    stack = client.stack
    if part == "runner":
        os.kill(runner_pid(client, job_id), signal.SIGKILL)
    elif part == "redis":
        assert stack.redis.process is not None
        stack.redis.process.kill()
        stack.redis.process.wait()
        stack.redis.start()
    else:
        stack.stop_part(part, signal.SIGKILL)
        stack.start_part(part)


def log_of(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    """The compacted log, once it is there and the attempts' files are gone."""
    folder = stack.var / "spool" / job_id
    until = time.monotonic() + 40
    while [path.name for path in folder.iterdir()] != ["log.zip"]:
        assert time.monotonic() < until, f"{list(folder.iterdir())}\n{stack.said()}"
        time.sleep(0.05)
    with zipfile.ZipFile(folder / "log.zip") as log:
        text = b"".join(log.read(name) for name in log.namelist())
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("part", "moment"),
    [
        pytest.param(part, moment, marks=[] if (part, moment) in FAST else [pytest.mark.slow])
        for part in PARTS
        for moment in range(MOMENTS)
    ],
)
async def test_killed(client: Client, part: str, moment: int) -> None:
    after_s = random.Random(f"{part} {moment}").uniform(0.05, STEPS * 0.02)
    job_id = await asyncio.to_thread(train, client, steps=STEPS, wait_ms=20)
    sockets = [Follower(client.stack, job_id) for _ in range(3)]
    reading = Reading(f"{client.stack.url}/api/v1/jobs/{job_id}/events")
    tasks = [asyncio.create_task(who.run()) for who in sockets]
    tasks.append(asyncio.create_task(reading.run()))
    try:
        await asyncio.to_thread(client.until, job_id, "running")
        await asyncio.sleep(after_s)
        await asyncio.to_thread(kill, client, part, job_id)
        late = Follower(client.stack, job_id)
        tasks.append(asyncio.create_task(late.run()))
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    await asyncio.to_thread(client.stack.wait_until_healthy)
    job = await asyncio.to_thread(client.job, job_id)
    if job["state"] != "succeeded":
        assert job["state"] == "failed" and job["reason"] in REASONS and job["message"]
    log = await asyncio.to_thread(log_of, client.stack, job_id)
    in_order(log)
    assert log[-1]["type"] == "end" and log[-1]["data"]["state"] == job["state"]
    for events in (*(who.events for who in sockets), reading.events, late.events):
        assert events == log
    assert not {op for who in (*sockets, late) for op in who.ops} & {"gap", "error"}
    assert client.events(job_id) == log
