"""Many followers of one job in one event loop, each with all that it heard, in order."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.stack import Stack


@dataclass
class Follower:
    """Follows `job`, comes back from its cursor when it is cut off, and keeps ids and delays."""

    stack: Stack
    job: str
    ids: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)  # seconds from an event's own time
    ops: list[str] = field(default_factory=list)
    connections: int = 0
    ended: bool = False

    def open(self, **options: Any) -> connect:
        return connect(
            f"ws://127.0.0.1:{self.stack.port}/ws/v1",
            compression=None,
            ping_interval=None,
            open_timeout=30,
            close_timeout=1,  # a stalled one never answers
            **options,
        )

    async def sub(self, socket: ClientConnection) -> None:
        after = self.ids[-1] if self.ids else None
        await socket.send(json.dumps({"op": "sub", "topic": f"job:{self.job}", "after": after}))

    async def hear(self, socket: ClientConnection) -> None:
        """One message."""
        message = json.loads(await socket.recv())
        self.ops.append(message["op"])
        if message["op"] != "ev":
            return
        now = time.time()
        for event in message["events"]:
            self.ids.append(event["id"])
            self.events.append(event)
            self.delays.append(now - event["t"])
            self.ended = self.ended or event["type"] == "end"

    async def run(self) -> None:
        """To the end, through whatever happens to the server."""
        while not self.ended:
            try:
                async with self.open() as socket:
                    self.connections += 1
                    await self.sub(socket)
                    while not self.ended:
                        await self.hear(socket)
            except (ConnectionClosed, OSError):
                await asyncio.sleep(0.2)


def numbered(count: int) -> list[str]:
    """The ids of a job's only attempt: starting, running, `count` metrics, end."""
    return [f"1-{number}" for number in range(1, count + 4)]
