"""Server memory for an idle open page: sockets that follow a job that has ended, or one at rest."""

from __future__ import annotations

import asyncio
import contextlib
import json

import psutil
from websockets.asyncio.client import connect

from tests.playground.client import Client
from tests.stack import Stack

PAGES = 300
KB = 1024


async def memory(stack: Stack, job: str) -> float:
    """Kilobytes of resident memory that each open page adds to the web process."""
    web = psutil.Process(stack.parts["web"].pid)
    async with contextlib.AsyncExitStack() as opened:

        async def page() -> None:
            socket = await opened.enter_async_context(
                connect(
                    f"ws://127.0.0.1:{stack.port}/ws/v1",
                    compression=None,
                    ping_interval=None,
                    open_timeout=60,
                )
            )
            await socket.send(json.dumps({"op": "sub", "topic": f"job:{job}", "after": None}))
            while json.loads(await socket.recv())["op"] != "ev":
                pass

        for _ in range(20):  # what the first ones load is no page's own
            await page()
        await asyncio.sleep(1)
        before = web.memory_info().rss
        for _ in range(PAGES):
            await page()
        await asyncio.sleep(1)
        return (web.memory_info().rss - before) / PAGES / KB


def main() -> None:
    stack = Stack()
    client = Client(stack)
    try:
        stack.start()
        ended = client.submit("pipe.echo", wait=10)["id"]
        of_ended = asyncio.run(memory(stack, ended))
        at_rest = client.submit("pipe.train", steps=100_000, wait_ms=10)["id"]
        client.until(at_rest, "running")
        client.control(at_rest, "pause")
        client.until(at_rest, "paused")
        of_resting = asyncio.run(memory(stack, at_rest))
    finally:
        stack.stop()
    print(f"{PAGES} pages on a job that has ended: {of_ended:.0f} KB each (target ≤ 150)")
    print(f"{PAGES} more on a job at rest: {of_resting:.0f} KB each, in memory used before")


if __name__ == "__main__":
    main()
