"""The hub's reads under cancellation: no reply goes astray and no connection leaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random

from playground import redis
from playground.jobs import spool, stream
from playground.jobs.follow import follow
from playground.jobs.hub import Hub
from playground.jobs.ids import START, event_key, new_job_id
from tests.stack import RedisServer

JOBS = 20
CANCELLATIONS = 500


async def test_five_hundred_cancelled_readers(pipe: RedisServer) -> None:
    """Under load, each at a random moment of its reading: what a reader gets is its own job's, in
    order; the readers that stay miss nothing; afterwards the connections are as many as before."""
    chance = random.Random(9)
    jobs = [new_job_id() for _ in range(JOBS)]
    hub, writing = Hub(), redis.async_client()
    sent = dict.fromkeys(jobs, 0)
    got: dict[str, list[str]] = {job: [] for job in jobs}
    stop = asyncio.Event()

    async def write() -> None:
        while not stop.is_set():
            for job in jobs:
                sent[job] += 1
                entry = spool.entry(job, f"1-{sent[job]}", "log", stream.rest_of({"of": job}, 1.0))
                fields = {"type": entry.type, "line": entry.line}
                await writing.xadd(stream.key(job), fields, id=entry.id)  # type: ignore[arg-type]
            await asyncio.sleep(0.02)

    async def read(job: str, ids: list[str]) -> None:
        async for news in follow(hub, job, START):
            for entry in news.entries:
                event = json.loads(entry.line)
                assert event["data"]["of"] == event["job"] == job
                assert not ids or event_key(entry.id) > event_key(ids[-1])
                ids.append(entry.id)

    async def connections() -> int:
        return len(await writing.client_list())

    stays = [asyncio.create_task(read(job, got[job])) for job in jobs]
    writer = asyncio.create_task(write())
    await asyncio.sleep(0.3)
    idle = await connections()
    for _ in range(CANCELLATIONS // 20):
        some = [asyncio.create_task(read(chance.choice(jobs), [])) for _ in range(20)]
        for task in some:
            await asyncio.sleep(chance.random() * 0.004)
            task.cancel()
        _, late = await asyncio.wait(some, timeout=10)
        assert not late  # a cancellation that is swallowed leaves a reader behind
        for outcome in await asyncio.gather(*some, return_exceptions=True):
            assert isinstance(outcome, asyncio.CancelledError), outcome
    stop.set()
    await writer
    async with asyncio.timeout(8):
        while any(len(got[job]) < sent[job] for job in jobs):
            await asyncio.sleep(0.05)
    try:
        assert all(got[job] == [f"1-{n}" for n in range(1, sent[job] + 1)] for job in jobs)
        assert sum(sent.values()) > CANCELLATIONS
        # A command that was cut off gives its connection up; none stays taken.
        async with asyncio.timeout(5):
            while await connections() > idle + 1:
                await asyncio.sleep(0.05)
        assert await hub.client.ping() is True  # type: ignore[misc]
        assert await hub.client.xlen(stream.key(jobs[0])) == sent[jobs[0]]
    finally:
        for task in stays:
            task.cancel()
        await asyncio.gather(*stays, return_exceptions=True)
        await hub.close()
        with contextlib.suppress(redis.RedisError):
            await writing.aclose()
