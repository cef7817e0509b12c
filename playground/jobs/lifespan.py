"""Start and stop of the web process.

uvicorn closes sockets before it says that it shuts down, so the goodbye hangs on the signal.
"""

from __future__ import annotations

import asyncio
import signal
from types import FrameType
from typing import Any

from playground.jobs.hub import hub


class Lifespan:
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                say_bye_on_signal(asyncio.get_running_loop())
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await hub().close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def say_bye_on_signal(loop: asyncio.AbstractEventLoop) -> None:
    """Puts our goodbye in front of the handlers that the server has set."""
    bye = hub().say_bye
    for number in (signal.SIGTERM, signal.SIGINT):
        server = signal.getsignal(number)
        if not callable(server):
            continue

        def handle(number: int, frame: FrameType | None, server: Any = server) -> None:
            loop.call_soon_threadsafe(bye)
            server(number, frame)

        signal.signal(number, handle)
