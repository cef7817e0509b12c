"""Following a job: all its events after a cursor, then the live ones, without a hole or a double.

The socket, server-sent events and `Prefer: wait` all read through this one generator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

from playground.jobs import history
from playground.jobs.counts import counts
from playground.jobs.hub import Hub, Reader
from playground.jobs.spool import Entry

BATCH = 100  # an event may have 16 KB


@dataclass(frozen=True)
class News:
    """What a follower gets: `events` (with entries), `gap` (events before `first` are gone),
    `lag` (this reader is slow and catches up), `idle` (nothing for a while), `bye` (the server
    stops)."""

    what: Literal["events", "gap", "lag", "idle", "bye"]
    entries: list[Entry]


async def follow(
    hub: Hub,
    job_id: str,
    after: str,
    *,
    idle_s: float | None = None,
    reader: Reader | None = None,
) -> AsyncGenerator[News, None]:
    """Yields news until `end` has been seen, the server stops, or `reader` has been told to
    leave."""
    reader = reader or Reader(job_id, after)
    counts.followers += 1
    try:
        while True:
            async for news in _catch_up(hub, reader):
                yield news
                if _ended(news.entries):
                    return
            async for news in _live(hub, reader, idle_s):
                yield news
                if news.what == "bye" or _ended(news.entries):
                    return
    finally:
        counts.followers -= 1
        hub.detach(reader)


async def _catch_up(hub: Hub, reader: Reader) -> AsyncGenerator[News, None]:
    """From the log up to the hub's position; returns attached."""
    counts.catch_ups += 1
    while True:
        found = await history.read(hub.client, reader.job_id, reader.cursor, BATCH)
        if found:
            if history.first_missing(reader.cursor, found):
                counts.gaps += 1
                yield News("gap", found[:1])
            reader.cursor = found[-1].id
            counts.events_delivered += len(found)
            yield News("events", found)
        if len(found) < BATCH and hub.attach(reader):
            return
        if not found:
            # The hub has read what the log no longer has: it was deleted under us. Go on live.
            reader.cursor = hub.position(reader.job_id)


async def _live(hub: Hub, reader: Reader, idle_s: float | None) -> AsyncGenerator[News, None]:
    """What the hub brings; returns, detached, when the reader must go back to the log."""
    while True:
        if hub.closing or reader.leaving:
            yield News("bye", [])
            return
        try:
            await asyncio.wait_for(reader.news.wait(), idle_s)
        except TimeoutError:
            yield News("idle", [])
            continue
        overflowed = reader.overflowed
        if overflowed or reader.outdated:
            hub.detach(reader)
        entries = [] if overflowed else reader.take()
        if overflowed:
            reader.news.clear()
            yield News("lag", [])
            return
        if entries:
            counts.events_delivered += len(entries)
            yield News("events", entries)
        if reader.outdated:
            return


def _ended(entries: list[Entry]) -> bool:
    return bool(entries) and entries[-1].type == "end"
