"""The socket, `/ws/v1`, one a tab. JSON text frames both ways.

Client: `sub{topic,after}` `unsub{topic}` `ping`. Server: `welcome` `ev{topic,events}`
`snapshot{topic,job}` `gap{topic,first}` `lag{topic}` `error{topic,code,detail}` `bye{retry_ms}`
`pong`. A topic is `job:<id>`. Where the request comes from is checked before it gets here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import Coroutine
from typing import Any, cast

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from uvicorn.protocols.utils import ClientDisconnected

from compute.core.events import dumps
from compute.core.texts import Text
from playground.accounts.handshake import actor_of
from playground.accounts.owner import Actor, NotSignedIn, ScopeNeeded
from playground.accounts.watch import Open, classes_of, watch
from playground.jobs import database, places, queries
from playground.jobs.counts import counts
from playground.jobs.follow import News, follow
from playground.jobs.hub import hub
from playground.jobs.ids import EVENT_ID, START
from playground.local_mode import Scope, headers_of, language_of

log = logging.getLogger(__name__)

# Application close codes, beside 1009 (a frame over 64 KB) and 1012 (the server restarts).
CLOSE_CODES = {
    4401: Text("Nobody is signed in.", "没有登录。"),
    4403: Text("You may not connect.", "你无权连接。"),
    4404: Text("There is no socket at this address.", "此地址没有套接字。"),
    4408: Text("You read too slowly.", "你读取得太慢。"),
    4429: Text("You send too fast.", "你发送得太快。"),
}
TOPICS = 32  # at once on one socket
RATE = 30.0  # messages a second from a client, over
BURST = 60.0  # this many at once
SLOW_S = 60.0  # a frame that can't be sent for so long
FRAME_BYTES = 256 * 1024

ERRORS = {
    "bad_message": Text("That message can't be understood.", "无法理解该消息。"),
    "bad_topic": Text("A topic reads job:<id>.", "主题形如 job:<id>。"),
    "bad_cursor": Text("after is an event's id, such as 1-42.", "after 是事件编号，例如 1-42。"),
    "no_such_topic": Text("You have no job with this id.", "你没有这个编号的任务。"),
    "too_many_topics": Text(
        f"One socket follows at most {TOPICS} topics.", f"一个连接最多订阅 {TOPICS} 个主题。"
    ),
}


class JobSocket(AsyncWebsocketConsumer):
    channel_layer_alias = "none"  # data never travels by groups, and a layer costs a connection

    async def connect(self) -> None:
        self.headers = headers_of(cast("Scope", self.scope))
        self.lang = language_of(self.headers)
        self.follows: dict[str, asyncio.Task[None]] = {}
        self.sending = asyncio.Lock()
        self.said_bye = False
        self.allowance, self.counted = BURST, time.monotonic()
        self.open: Open | None = None
        try:
            self.actor, classes = await database.call(_rights, self.headers)
        except (NotSignedIn, ScopeNeeded) as error:
            await self.accept()  # a code can be given only to an open socket
            await self.close(4401 if isinstance(error, NotSignedIn) else 4403)
            return
        self.owner_id = self.actor.user_id
        self.open = Open(self.actor, self._withdraw, classes)
        await self.accept()
        watch().add(self.open)
        counts.sockets += 1
        await self._say(
            {
                "op": "welcome",
                "protocol": 1,
                "version": settings.VERSION,
                "limits": {"topics": TOPICS, "rate": RATE, "burst": BURST},
            }
        )

    async def disconnect(self, code: int) -> None:
        if (item := getattr(self, "open", None)) is not None:
            watch().remove(item)
            counts.sockets -= 1
        self._leave_all()

    async def _withdraw(self, code: int) -> None:
        """Not one event more, also where the client answers the close late or never."""
        self._leave_all()
        await self.close(code)

    def _leave_all(self) -> None:
        for task in getattr(self, "follows", {}).values():
            task.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not self._within_rate():
            await self.close(4429)
            return
        try:
            message = json.loads(text_data or "")
        except ValueError:
            message = None
        if not isinstance(message, dict):
            await self._error(None, "bad_message")
            return
        op, topic = message.get("op"), message.get("topic")
        if op == "ping":
            await self._say({"op": "pong"})
        elif op == "sub":
            await self._subscribe(topic, message.get("after"))
        elif op == "unsub" and isinstance(topic, str):
            task = self.follows.pop(topic, None)
            if task is not None:
                task.cancel()
        else:
            await self._error(topic, "bad_message")

    async def _subscribe(self, topic: Any, after: Any) -> None:
        if not isinstance(topic, str) or not topic.startswith("job:"):
            await self._error(topic, "bad_topic")
            return
        cursor = START if after is None else after
        if not isinstance(cursor, str) or EVENT_ID.fullmatch(cursor) is None:
            await self._error(topic, "bad_cursor")
            return
        known = self.follows.pop(topic, None)
        if known is not None:
            known.cancel()
        elif len(self.follows) >= TOPICS:
            await self._error(topic, "too_many_topics")
            return
        task = asyncio.create_task(self._guarded(self._follow(topic, cursor)))
        self.follows[topic] = task
        task.add_done_callback(lambda done: self._forget(topic, done))

    def _forget(self, topic: str, done: asyncio.Task[None]) -> None:
        if self.follows.get(topic) is done:
            del self.follows[topic]

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """A follow that fails says so in the log, and the client comes back from its cursor."""
        try:
            await work
        except ClientDisconnected:
            return  # left in mid-send; its disconnect is on the way
        except Exception:
            log.exception("a follow failed")
            await self.close(1011)

    async def _follow(self, topic: str, after: str) -> None:
        job_id = topic.removeprefix("job:")
        if not await self._snapshot(topic, job_id):
            await self._error(topic, "no_such_topic")
            return
        async with contextlib.aclosing(follow(hub(), job_id, after)) as all_news:
            async for news in all_news:
                await self._pass_on(topic, job_id, news)

    async def _pass_on(self, topic: str, job_id: str, news: News) -> None:
        if news.what == "events":
            await self._events(topic, news)
            if any(entry.type in ("state", "end") for entry in news.entries):
                await self._snapshot(topic, job_id)
        elif news.what == "gap":
            await self._say({"op": "gap", "topic": topic, "first": news.entries[0].id})
        elif news.what == "lag":
            await self._say({"op": "lag", "topic": topic})
        elif news.what == "bye" and not self.said_bye:
            self.said_bye = True  # once, for all topics
            # Spread over four seconds, so that a restart isn't met by everyone at once.
            retry_ms = random.randint(1000, 5000)
            await self._say({"op": "bye", "retry_ms": retry_ms})

    async def _events(self, topic: str, news: News) -> None:
        """Lines go out as they are: no event is parsed on its way through this process."""
        head = f'{{"op":"ev","topic":{json.dumps(topic)},"events":['
        lines: list[str] = []
        size = 0
        for entry in news.entries:
            lines.append(entry.line)
            size += len(entry.line)
            if size > FRAME_BYTES:
                await self._send_text(f"{head}{','.join(lines)}]}}")
                lines, size = [], 0
        if lines:
            await self._send_text(f"{head}{','.join(lines)}]}}")

    async def _snapshot(self, topic: str, job_id: str) -> bool:
        """The row, as it is now; False when the owner has no such job."""
        try:
            job = await database.call(self._job, job_id)
        except queries.NoSuchJob:
            return False
        await self._say({"op": "snapshot", "topic": topic, "job": job})
        return True

    def _job(self, job_id: str) -> dict[str, Any]:
        job = queries.job(owner_id=self.owner_id, job_id=job_id)
        return queries.as_json(job, lang=self.lang, place=places.place(job))

    async def _error(self, topic: Any, code: str) -> None:
        shown = topic[:80] if isinstance(topic, str) else None
        detail = ERRORS[code].get(self.lang)
        await self._say({"op": "error", "topic": shown, "code": code, "detail": detail})

    async def _say(self, message: dict[str, Any]) -> None:
        await self._send_text(dumps(message))

    async def _send_text(self, text: str) -> None:
        """Waits while the client reads slowly; gives up on one that has stopped reading."""
        try:
            async with asyncio.timeout(SLOW_S), self.sending:
                await self.send(text_data=text)
        except TimeoutError:
            await self.close(4408)

    def _within_rate(self) -> bool:
        now = time.monotonic()
        self.allowance = min(BURST, self.allowance + (now - self.counted) * RATE) - 1
        self.counted = now
        return self.allowance >= 0


async def unknown_socket(scope: Any, receive: Any, send: Any) -> None:
    """A handshake at any other address."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4404})


def _rights(headers: dict[str, list[str]]) -> tuple[Actor, frozenset[int]]:
    actor = actor_of(headers)
    return actor, classes_of(actor.user_id)
