"""The hub: one blocking XREAD for all topics of this web process, fanned out to its readers.

The read is never cancelled: a cancelled command leaves its reply behind for the next one. When a
topic joins, an entry in a private wake stream ends the wait, and the next read includes it. Each
reader has a bounded queue; one that overflows loses the queue, not the events, since it goes back
to reading from its cursor (`playground.jobs.follow`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import weakref
from collections import deque
from typing import Any, cast

from playground import redis
from playground.jobs import stream
from playground.jobs.counts import counts
from playground.jobs.history import entry
from playground.jobs.ids import START, event_key
from playground.jobs.spool import Entry

log = logging.getLogger(__name__)

BLOCK_MS = 15_000
READ_COUNT = 100  # entries of one topic in one read: 1.6 MB at most
QUEUE_EVENTS = 1_000
QUEUE_BYTES = 1024 * 1024
WAKE_TTL_S = 120
CLOSE_S = 1.0


class Reader:
    """One reader of one topic: its cursor, its queue, and whether the queue has overflowed."""

    def __init__(self, job_id: str, cursor: str) -> None:
        self.job_id, self.cursor = job_id, cursor
        self.overflowed = False
        self.outdated = False  # Redis was away, and may have forgotten something
        self.leaving = False  # it may not read on
        self.news = asyncio.Event()
        self._queue: deque[Entry] = deque()
        self._bytes = 0

    def push(self, entries: list[Entry]) -> None:
        """Called by the hub. Ids at or below the cursor are dropped: catching up brought them."""
        seen = event_key(self._queue[-1].id if self._queue else self.cursor)
        for item in entries:
            if event_key(item.id) > seen:
                self._queue.append(item)
                self._bytes += len(item.line)
        if len(self._queue) > QUEUE_EVENTS or self._bytes > QUEUE_BYTES:
            self._queue.clear()
            self._bytes = 0
            self.overflowed = True
            counts.overflows += 1
        self.news.set()

    def read_again(self) -> None:
        self.outdated = True
        self.news.set()

    def leave(self) -> None:
        self.leaving = True
        self.news.set()

    def take(self) -> list[Entry]:
        """All that waits; moves the cursor."""
        items = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        self.news.clear()
        if items:
            self.cursor = items[-1].id
        return items


class _Topic:
    def __init__(self, position: str) -> None:
        self.position = position  # the last id that the hub has read
        self.readers: set[Reader] = set()


class Hub:
    """One for each event loop; see `hub()`."""

    def __init__(self) -> None:
        self.closing = False
        # The blocked connection is its own; short commands go through the other client.
        self.client = redis.async_client()
        self._blocking = redis.async_client(block_s=BLOCK_MS / 1000)
        self._topics: dict[str, _Topic] = {}
        self._wake_key = f"wake:{secrets.token_hex(8)}"
        self._wake_position = START
        self._poke = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def attach(self, reader: Reader) -> bool:
        """Adds a reader that has caught up to where the hub is. False when the hub is further:
        then the reader reads on and asks again. No await in here, so nothing slips between."""
        topic = self._topics.get(reader.job_id)
        if topic is None:
            topic = self._topics[reader.job_id] = _Topic(reader.cursor)
            self._start()
            self._poke.set()
        elif event_key(topic.position) > event_key(reader.cursor):
            return False
        reader.overflowed = reader.outdated = False
        topic.readers.add(reader)
        return True

    def position(self, job_id: str) -> str:
        topic = self._topics.get(job_id)
        return topic.position if topic else START

    def detach(self, reader: Reader) -> None:
        topic = self._topics.get(reader.job_id)
        if topic is not None:
            topic.readers.discard(reader)
            if not topic.readers:
                del self._topics[reader.job_id]

    def say_bye(self) -> None:
        """The server is about to stop: every follower ends, and its client comes back later."""
        self.closing = True
        for topic in self._topics.values():
            for reader in topic.readers:
                reader.news.set()

    async def close(self) -> None:
        """Ends the tasks: by an entry in the wake stream, so even here no read is cut off, unless
        Redis is away too."""
        self.say_bye()
        self._poke.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=CLOSE_S)
        await self._blocking.aclose()
        await self.client.aclose()

    def _start(self) -> None:
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._read()), loop.create_task(self._wake())]

    async def _read(self) -> None:
        pause, lost = 0.1, False
        while not self.closing:
            streams = {self._wake_key: self._wake_position}
            streams |= {stream.key(job): topic.position for job, topic in self._topics.items()}
            try:
                if lost:  # a Redis that was killed may lack what it had shown: the log has it
                    await cast("Any", self._blocking.ping())
                    lost = False
                    for reader in [r for topic in self._topics.values() for r in topic.readers]:
                        reader.read_again()
                reply = await self._blocking.xread(
                    cast("Any", streams), count=READ_COUNT, block=BLOCK_MS
                )
            except redis.RedisError as error:
                log.warning("the hub waits for Redis: %s", error)
                lost = True
                await asyncio.sleep(pause)
                pause = min(2.0, pause * 2)
                continue
            pause = 0.1
            for name, found in reply or []:
                if name == self._wake_key:
                    self._wake_position = found[-1][0]
                else:
                    self._deliver(name.removeprefix(stream.key("")), found)

    def _deliver(self, job_id: str, found: list[tuple[str, dict[str, str]]]) -> None:
        topic = self._topics.get(job_id)
        if topic is None:
            return
        # Someone may have left and come back since the read was sent, with a topic further on.
        fresh = [entry(i, f) for i, f in found if event_key(i) > event_key(topic.position)]
        if fresh:
            topic.position = fresh[-1].id
            counts.events_read += len(fresh)
            for reader in topic.readers:
                reader.push(fresh)

    async def _wake(self) -> None:
        """Ends the blocking read when topics have joined. Many at once need one entry."""
        while not self.closing or self._poke.is_set():
            await self._poke.wait()
            self._poke.clear()
            try:
                pipe = self.client.pipeline(transaction=False)
                pipe.xadd(self._wake_key, {"": ""}, maxlen=1)
                pipe.expire(self._wake_key, WAKE_TTL_S)
                await pipe.execute()
            except redis.RedisError:
                if self.closing:
                    return
                await asyncio.sleep(0.2)
                self._poke.set()


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def hub() -> Hub:
    """The running loop's hub: one in a web process."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub()
    return found
