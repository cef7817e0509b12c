"""200 sockets on one job, 50 events/s: lost, delay, CPU; against group_send from a Celery task.

Both have the same uvicorn, the same Redis options and the same clients, one after the other. The
peer's capacity is raised until it loses nothing. The delay runs from the event's own time, given
where it is made, to its arrival in the client.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import psutil
from celery import Celery
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.playground.client import Client
from tests.stack import ROOT, RedisServer, Stack, free_port

SILENT_S = 8.0  # so long without a message: no more comes
CAPACITIES = (0, 1000, 10_000, 100_000)


@dataclass
class Heard:
    """What all sockets have got together."""

    delays: list[float] = field(default_factory=list)  # of events made since everybody was there
    events: int = 0
    since: float = float("inf")


async def listen(port: int, topic: str | None, heard: Heard, open_now: asyncio.Semaphore) -> None:
    url = f"ws://127.0.0.1:{port}/ws/v1"
    async with connect(url, compression=None, ping_interval=None, open_timeout=60) as opened:
        await opened.recv()  # welcome
        if topic:
            await opened.send(json.dumps({"op": "sub", "topic": topic, "after": None}))
        open_now.release()
        with contextlib.suppress(TimeoutError, ConnectionClosed):
            while True:
                raw = await asyncio.wait_for(opened.recv(), SILENT_S)
                now = time.time()
                message = json.loads(raw)
                if message["op"] != "ev":
                    continue
                for event in message["events"]:
                    if event["type"] == "metric":
                        heard.events += 1
                        if event["t"] >= heard.since:
                            heard.delays.append(now - event["t"])
                    elif event["type"] == "end":
                        return


async def measure(
    port: int, web: psutil.Process, sockets: int, start: Callable[[], Awaitable[str | None]]
) -> tuple[Heard, float]:
    """What was heard, and the CPU seconds that the web process took for it."""
    heard, open_now = Heard(), asyncio.Semaphore(0)
    # Ours follows a job, so that comes first; the peer's group has to be joined before the task.
    topic = await start()
    tasks = [asyncio.create_task(listen(port, topic, heard, open_now)) for _ in range(sockets)]
    for _ in range(sockets):
        await open_now.acquire()
    await asyncio.sleep(1)  # what was there before has arrived
    heard.since, before = time.time(), web.cpu_times()
    if topic is None:
        await start()
    else:
        await asyncio.to_thread(Client(STACK[0]).control, topic.removeprefix("job:"), "resume")
    await asyncio.gather(*tasks)
    after = web.cpu_times()
    return heard, after.user + after.system - before.user - before.system


STACK: list[Stack] = []


def ours(sockets: int, events: int, wait_ms: float) -> tuple[Heard, float]:
    stack = Stack()
    STACK[:] = [stack]
    client = Client(stack)
    try:
        stack.start()

        async def start() -> str | None:
            """A run that waits until everybody is there."""
            job = client.submit("pipe.train", steps=events, wait_ms=wait_ms, save_every=1000)["id"]
            client.until(job, "running")
            client.control(job, "pause")
            client.until(job, "paused")
            return f"job:{job}"

        web = psutil.Process(stack.parts["web"].pid)
        return asyncio.run(measure(stack.port, web, sockets, start))
    finally:
        stack.stop()


def peer(sockets: int, events: int, wait_ms: float, capacity: int) -> tuple[Heard, float]:
    stack = Stack()  # for its folder only
    redis = RedisServer(stack.var)
    redis.start()
    port = free_port()
    env = {**os.environ, "LAYER": redis.url, "CAPACITY": str(capacity)}
    env.pop("DJANGO_SETTINGS_MODULE", None)
    command = stack.command("web")
    command[command.index("playground.asgi:application")] = (
        "tests.benchmarks.group_send:application"
    )
    command[command.index(str(stack.port))] = str(port)
    command[command.index("--lifespan") + 1] = "off"
    worker = "-m celery -A tests.benchmarks.group_send worker --pool threads -c 1 -l ERROR"
    parts = [
        subprocess.Popen(
            words, env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for words in (command, [sys.executable, *worker.split()])
    ]
    try:
        sender = Celery(broker=redis.url.replace("unix://", "redis+socket://"))
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with contextlib.suppress(OSError), contextlib.closing(_try(port)):
                break
            time.sleep(0.1)
        calls = 0

        async def start() -> str | None:
            nonlocal calls
            calls += 1
            if calls == 2:
                sender.send_task("talk", args=[events, wait_ms / 1000])
            return None

        return asyncio.run(measure(port, psutil.Process(parts[0].pid), sockets, start))
    finally:
        for part in parts:
            part.terminate()
        for part in parts:
            try:
                part.wait(10)
            except subprocess.TimeoutExpired:
                part.kill()
                part.wait()
        redis.stop()
        shutil.rmtree(stack.var, ignore_errors=True)


def _try(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=1)


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] * 1000 if len(values) > 1 else float("nan")


def told(name: str, heard: Heard, cpu: float, sent: int) -> None:
    each = cpu / max(1, heard.events) * 100_000
    print(
        f"{name}: {sent - heard.events} of {sent} lost, delay p50 "
        f"{statistics.median(heard.delays or [float('nan')]) * 1000:.1f} ms, p99 "
        f"{p99(heard.delays):.1f} ms, web {each:.2f} CPU s per 100,000 delivered",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    events, sent = options.seconds * 50, options.seconds * 50 * options.sockets
    mine, cpu = ours(options.sockets, events, 20)
    told("ours", mine, cpu, sent)
    for capacity in CAPACITIES:
        other, cost = peer(options.sockets, events, 20, capacity)
        told(f"group_send, capacity {capacity or '100 (default)'}", other, cost, sent)
        if capacity and other.events == sent:
            break
    delay = p99(mine.delays) / p99(other.delays)
    per_event = (cpu / max(1, mine.events)) / (cost / max(1, other.events))
    print(f"p99 delay ratio {delay:.2f} (target ≤ 0.5), CPU ratio {per_event:.2f} (≤ 0.5)")


if __name__ == "__main__":
    main()
