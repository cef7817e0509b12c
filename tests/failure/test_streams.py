"""Readers in every condition: late, slow, many, flapping, frozen, stalled. None loses an event."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from tests.failure.followers import Follower, numbered
from tests.playground.client import Client
from tests.stack import ROOT, Stack

MB = 2**20


@pytest.fixture(scope="module")
def own() -> Iterator[Stack]:
    """A stack of this module's own, whose memory and shutdown are measured."""
    running = Stack()
    try:
        running.start()
        yield running
    finally:
        running.stop()


def web(stack: Stack) -> psutil.Process:
    return psutil.Process(stack.parts["web"].pid)


def talk(stack: Stack, events: int, wait_ms: float = 0.0) -> str:
    return str(Client(stack).submit("pipe.talk", events=events, wait_ms=wait_ms)["id"])


async def finish(*tasks: asyncio.Task[None], within_s: float) -> None:
    async with asyncio.timeout(within_s):
        await asyncio.gather(*tasks)


@pytest.mark.slow
async def test_a_reader_that_starts_five_seconds_late(stack: Stack) -> None:
    """5,000 events at full speed while the connection is open and nobody reads from it."""
    job = talk(stack, 5000)
    late = Follower(stack, job)
    async with late.open(max_queue=1) as socket:
        await late.sub(socket)
        await asyncio.sleep(5)
        async with asyncio.timeout(30):
            while not late.ended:
                await late.hear(socket)
    assert late.ids == numbered(5000)


@pytest.mark.parametrize(
    ("sockets", "seconds"), [(40, 5), pytest.param(200, 20, marks=pytest.mark.slow)]
)
async def test_a_class_follows_one_run(stack: Stack, sockets: int, seconds: int) -> None:
    """Fifty events a second to everybody: each gets all of them, in order."""
    job = talk(stack, 50 * seconds, wait_ms=20)
    followers = [Follower(stack, job) for _ in range(sockets)]
    await finish(
        *(asyncio.create_task(follower.run()) for follower in followers), within_s=seconds + 60
    )
    assert all(follower.ids == numbered(50 * seconds) for follower in followers)
    assert {follower.connections for follower in followers} == {1}


@pytest.mark.parametrize(
    ("stable", "flapping", "seconds"), [(5, 5, 4), pytest.param(20, 20, 30, marks=pytest.mark.slow)]
)
async def test_neighbours_that_come_and_go(
    stack: Stack, stable: int, flapping: int, seconds: int
) -> None:
    job = talk(stack, 50 * seconds, wait_ms=20)
    followers = [Follower(stack, job) for _ in range(stable)]

    async def flap(seed: int) -> None:
        chance = random.Random(seed)
        while True:
            neighbour = Follower(stack, job)
            async with neighbour.open() as socket:
                await neighbour.sub(socket)
                with contextlib.suppress(ConnectionClosed, TimeoutError):
                    async with asyncio.timeout(0.02 + chance.random() * 0.1):
                        while True:
                            await neighbour.hear(socket)

    restless = [asyncio.create_task(flap(number)) for number in range(flapping)]
    try:
        await finish(*(asyncio.create_task(f.run()) for f in followers), within_s=seconds + 60)
    finally:
        for task in restless:
            task.cancel()
        await asyncio.gather(*restless, return_exceptions=True)
    assert all(follower.ids == numbered(50 * seconds) for follower in followers)


@pytest.mark.slow
async def test_after_thirty_quiet_seconds_the_next_event_comes(own: Stack) -> None:
    client = Client(own)
    job = client.submit("pipe.train", steps=5000, wait_ms=20)["id"]
    client.until(job, "running")
    client.control(job, "pause")
    client.until(job, "paused")
    follower = Follower(own, job)
    async with follower.open() as socket:
        await follower.sub(socket)
        with contextlib.suppress(TimeoutError):
            while True:
                await asyncio.wait_for(follower.hear(socket), 30)
        heard = len(follower.ids)
        await asyncio.to_thread(client.control, job, "step")
        async with asyncio.timeout(5):
            while len(follower.ids) == heard:
                await follower.hear(socket)
    client.post(f"/api/v1/jobs/{job}/cancel")
    client.until(job)
    assert "Timeout" not in own.said()


def test_idle_sockets_cost_little(own: Stack) -> None:
    """300 of them: less than 30 MB."""
    client = Client(own)
    job = client.submit("pipe.echo", wait=10)["id"]

    async def measure() -> float:
        async with contextlib.AsyncExitStack() as stack:
            before = web(own).memory_info().rss
            for _ in range(300):
                follower = Follower(own, job)
                socket = await stack.enter_async_context(follower.open())
                await follower.sub(socket)
                while not follower.ended:
                    await follower.hear(socket)
            grown: float = (web(own).memory_info().rss - before) / MB
            return grown

    assert asyncio.run(measure()) < 30


@pytest.mark.slow
def test_a_stalled_reader_of_much(own: Stack) -> None:
    """Nobody reads while some 200 MB go by: the web process grows by less than 20 MB."""
    client = Client(own)

    async def measure() -> float:
        jobs = [client.submit("pipe.flood", events=3500)["id"] for _ in range(4)]  # 4 × 50 MB
        followers = [Follower(own, job) for job in jobs]
        async with contextlib.AsyncExitStack() as stack:
            before = web(own).memory_info().rss
            for follower in followers:
                socket = await stack.enter_async_context(follower.open(max_queue=1))
                await follower.sub(socket)
            most = 0.0
            for job in jobs:
                while client.job(job)["state"] not in ("succeeded", "failed"):
                    most = max(most, web(own).memory_info().rss - before)
                    await asyncio.sleep(0.2)
                assert client.job(job)["state"] == "succeeded"
            return most / MB

    assert asyncio.run(measure()) < 20


async def test_what_is_sent_too_large_or_too_fast(own: Stack) -> None:
    job = talk(own, 200, wait_ms=20)
    bystander = Follower(own, job)
    task = asyncio.create_task(bystander.run())
    async with Follower(own, job).open() as socket:
        await socket.send("x" * MB)
        with pytest.raises(ConnectionClosed) as large:
            while True:
                await socket.recv()
    assert large.value.rcvd is not None and large.value.rcvd.code == 1009
    async with Follower(own, job).open() as socket:
        with pytest.raises(ConnectionClosed) as fast:
            for _ in range(200):
                await socket.send('{"op":"ping"}')
            while True:
                await socket.recv()
    assert fast.value.rcvd is not None and fast.value.rcvd.code == 4429
    await finish(task, within_s=30)
    assert bystander.ids == numbered(200)


@pytest.mark.slow
def test_a_frozen_client_is_gone_within_45_s(own: Stack) -> None:
    """A process that holds a socket is stopped, as a laptop that is closed."""
    code = (
        "from websockets.sync.client import connect\n"
        f"socket = connect('ws://127.0.0.1:{own.port}/ws/v1')\n"
        "print(socket.recv(), flush=True)\n"
        "while True: socket.recv()\n"
    )

    def sockets() -> int:
        text = Client(own).get("/metrics").body.decode()
        line = next(row for row in text.splitlines() if row.startswith("playground_sockets "))
        return int(float(line.split()[1]))

    before = sockets()
    frozen = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert frozen.stdout is not None and frozen.stdout.readline()
        assert sockets() == before + 1
        frozen.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        while sockets() != before:
            assert time.monotonic() - started < 3 * 45
            time.sleep(0.5)
        assert time.monotonic() - started < 45 + 5
    finally:
        frozen.send_signal(signal.SIGCONT)
        frozen.kill()
        frozen.wait()
        if frozen.stdout is not None:
            frozen.stdout.close()


@pytest.mark.slow
async def test_the_server_leaves_in_time_with_stalled_readers(own: Stack) -> None:
    """SIGTERM with live and stalled sockets: gone within 8 s, with a hint when to come back."""
    job = talk(own, 3000, wait_ms=10)
    hints: list[int] = []

    async def live() -> None:
        follower = Follower(own, job)
        async with follower.open() as socket:
            await follower.sub(socket)
            with contextlib.suppress(ConnectionClosed):
                async for raw in socket:
                    message = json.loads(raw)
                    if message["op"] == "bye":
                        hints.append(message["retry_ms"])

    tasks = [asyncio.create_task(live()) for _ in range(100)]
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(5):
            stalled = Follower(own, job)
            socket = await stack.enter_async_context(stalled.open(max_queue=1))
            await stalled.sub(socket)
        await asyncio.sleep(2)
        took = await asyncio.to_thread(own.stop_part, "web", signal.SIGTERM, 60)
        await finish(*tasks, within_s=10)
    own.start_part("web")
    await asyncio.to_thread(own.wait_until_healthy)
    print(f"left after {took:.1f} s")
    assert took < 8 * 3
    assert len(hints) == 100 and all(1000 <= hint <= 5000 for hint in hints)
    assert len(set(hints)) > 50  # spread, not all at once
    Client(own).post(f"/api/v1/jobs/{job}/cancel")
