"""Reading a job's events: from the stream, or the spool where the stream no longer has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from playground import redis
from playground.jobs import spool, stream
from playground.jobs.ids import event_key
from playground.jobs.spool import Entry

if TYPE_CHECKING:
    from redis.asyncio import Redis

Raw = list[tuple[str, dict[str, str]]]
FIRST = "1-1"  # every job's first event has this id


async def read(client: Redis, job_id: str, after: str, limit: int) -> list[Entry]:
    """Up to `limit` events above `after`, oldest first.

    The stream lacks what was trimmed, what came before a recovery, an hour after the end
    everything, and its last second when Redis was killed. The spool on this machine, which is
    written first, has it all. With Redis away the spool answers too.
    """
    pipe = client.pipeline(transaction=False)
    pipe.xrange(stream.key(job_id), f"({after}", "+", count=limit)
    pipe.xrange(stream.key(job_id), "-", "+", count=1)
    try:
        found, oldest = cast("tuple[Raw, Raw]", tuple(await pipe.execute()))
    except redis.UNAVAILABLE:
        return await asyncio.to_thread(spool.read, job_id, after, limit)
    _heed_cancellation()
    complete = oldest and (oldest[0][0] == FIRST or event_key(oldest[0][0]) <= event_key(after))
    if not complete:
        spooled = await asyncio.to_thread(spool.read, job_id, after, limit)
        if spooled:
            return spooled
    entries = [entry(event_id, fields) for event_id, fields in found]
    if len(entries) < limit and not (entries and entries[-1].type == "end"):
        last = entries[-1].id if entries else after
        entries += await asyncio.to_thread(spool.read, job_id, last, limit - len(entries))
    return entries


def _heed_cancellation() -> None:
    """Up to Python 3.11 `asyncio.wait_for`, by which the client sends its commands, can swallow
    a cancellation that arrives just as the command has gone. A reader would then live on."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def entry(event_id: str, fields: dict[str, Any]) -> Entry:
    return Entry(event_id, fields["type"], fields["line"])


def first_missing(after: str, found: list[Entry]) -> bool:
    """Whether events between `after` and the first of `found` have expired everywhere.

    Within an attempt ids have no holes but a fence's, and a new attempt starts at 1.
    """
    if not found:
        return False
    attempt, seq = event_key(found[0].id)
    before, last = event_key(after)
    if attempt == before or before > 0:
        return attempt == before and 1 < seq - last < spool.FENCE_STEP
    return (attempt, seq) != (1, 1) and seq < spool.FENCE_STEP
