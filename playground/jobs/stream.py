"""The stream: a job's events in Redis, each with the explicit id `<attempt>-<seq>`.

Redis refuses an id that isn't above the last, so a duplicate and a stale attempt are both turned
away by the server. Only a claim or a recovery, both verified against the row, may create a stream.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings

from compute.core import events
from playground import redis
from playground.jobs import spool
from playground.jobs.ids import START, event_key
from playground.jobs.spool import Entry

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)
BATCH = 500


class Stale(Exception):
    """The stream has gone beyond this writer: another attempt has taken over."""


def key(job_id: str) -> str:
    return f"ev:{job_id}"


def rest_of(data: Mapping[str, Any], at: float | None = None) -> str:
    """The end of an event's line for `spool.entry`: its time and data."""
    moment = time.time() if at is None else at
    return f',"t":{moment:.6f},"data":{events.dumps(data)}}}'


def rest_of_raw(line: bytes) -> tuple[str, str, dict[str, Any]]:
    """A runner's line as (type, rest for `spool.entry`, data).

    The runner has encoded it already; it is parsed to check it, and written out as it came.
    Raises ValueError for anything that isn't an event.
    """
    event = events.decode(line)
    type_, data = event.get("type"), event.get("data", {})
    if not isinstance(type_, str) or not isinstance(data, dict):
        raise ValueError(f"not an event: {line[:80]!r}")
    moment = event.get("t")
    at = float(moment) if isinstance(moment, int | float) else time.time()
    return type_, f',"t":{at:.6f},"data":{_raw(data)}}}', data


def _raw(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Writer:
    """Sends an attempt's entries to the stream, and catches up after Redis was away."""

    def __init__(self, job_id: str, attempt: int, client: Redis) -> None:
        self.job_id, self.attempt, self.client = job_id, attempt, client
        self.behind = False  # the spool holds events that the stream may lack

    def send(self, entries: Sequence[Entry], *, create: bool = False) -> None:
        """Pipelined XADDs. Losing Redis sets `behind`; the spool has everything.

        Raises `Stale` when the stream holds ids above ours.
        """
        if self.behind:
            return
        pipe = self.client.pipeline(transaction=False)
        for entry in entries:
            _xadd(pipe, self.job_id, entry, create=create)
        try:
            replies = pipe.execute(raise_on_error=False)
        except redis.RedisError as error:
            log.warning("job %s: Redis is away, the spool goes on: %s", self.job_id, error)
            self.behind = True
            return
        for reply in replies:
            if isinstance(reply, redis.ResponseError) and "equal or smaller" in str(reply):
                raise Stale(f"job {self.job_id} attempt {self.attempt}: {reply}")
            if reply is None or isinstance(reply, Exception):
                self.behind = True

    def recover(self) -> None:
        """Re-sends what the spool holds beyond the stream's last id, making the stream if it is
        gone. The caller has just verified the lease against the row. Raises `Stale`."""
        try:
            last = last_id(self.client, self.job_id)
            if event_key(last)[0] > self.attempt:
                raise Stale(f"job {self.job_id} attempt {self.attempt}: stream is at {last}")
            resend(self.client, self.job_id, last)
        except redis.RedisError as error:
            log.debug("job %s: still no Redis: %s", self.job_id, error)
            return
        self.behind = False


def _xadd(pipe: Any, job_id: str, entry: Entry, *, create: bool) -> None:
    pipe.xadd(
        key(job_id),
        {"type": entry.type, "line": entry.line},
        id=entry.id,
        nomkstream=not create,
        maxlen=settings.STREAM_MAXLEN,
        approximate=True,
    )


def last_id(client: Redis, job_id: str) -> str:
    """The id of the stream's last entry, `0-0` when there is none."""
    newest = cast("list[tuple[str, dict[str, str]]]", client.xrevrange(key(job_id), count=1))
    return newest[0][0] if newest else START


def resend(client: Redis, job_id: str, last: str) -> None:
    """Adds the spool's events above `last`, creating the stream if need be."""
    while entries := spool.read(job_id, last, BATCH):
        pipe = client.pipeline(transaction=False)
        for entry in entries:
            _xadd(pipe, job_id, entry, create=True)
        pipe.execute()
        last = entries[-1].id


def append_outside(job_id: str, attempt: int, *made: tuple[str, Mapping[str, Any]]) -> None:
    """Adds (type, data) events for an attempt that has no supervisor: an aborted, requeued or
    lost one. The row has been moved by the caller, and that move was its to make.

    With Redis away the spool alone has them; the dispatcher closes the log later.
    """
    spool.append_outside(job_id, attempt, [(type_, rest_of(data)) for type_, data in made])
    client = redis.shared()
    resend(client, job_id, last_id(client, job_id))


def expire(client: Redis, job_id: str) -> None:
    client.expire(key(job_id), settings.STREAM_TTL_S)


def delete(job_id: str) -> None:
    redis.shared().delete(key(job_id))
