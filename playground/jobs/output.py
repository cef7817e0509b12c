"""What an attempt says, on its way out: files registered, then the spool, then the stream.

Whoever hears of a file can fetch it, and nothing is heard that a crash could take back.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import Error as DatabaseError
from django.db import close_old_connections

from compute.core.events import EVENT_TYPES
from playground import redis
from playground.jobs import artifacts, budget, spool, stream
from playground.jobs.attempts import Lease, Made
from playground.jobs.outcomes import Outcome

log = logging.getLogger(__name__)
BATCH_S = 0.02  # after a batch has gone out the next waits this long; a lone event never waits
RETRY_S = 0.5  # for files that wait for the database
NEVER = float("inf")


class Output:
    """The events of one attempt. `flush_at` is when those that wait are due (monotonic)."""

    def __init__(self, lease: Lease) -> None:
        self.lease, self.job = lease, lease.job
        self.spool = spool.Writer(self.job.pk, self.job.attempt)
        self.stream = stream.Writer(self.job.pk, self.job.attempt, redis.shared())
        self.flush_at = NEVER
        self.refused: Outcome | None = None  # the owner has no room for a file: the job is over
        self._seq = 0
        self._pending: list[tuple[str, str]] = []
        self._made: list[Made] = []
        self._flushed = time.monotonic()

    def say(self, type_: str, data: dict[str, Any]) -> None:
        """An event of the supervisor's own."""
        self.queue(type_, stream.rest_of(data))

    def queue(self, type_: str, rest: str) -> None:
        """`rest` is the end of the event's line, as `spool.entry` takes it."""
        self._pending.append((type_, rest))

    def parse(self, line: bytes) -> tuple[str, str, dict[str, Any]] | None:
        """A runner's line as (type, rest, data); None for what is no event."""
        try:
            type_, rest, data = stream.rest_of_raw(line)
        except ValueError as error:
            log.warning("job %s: dropped a line: %s", self.job.pk, error)
            return None
        if type_ not in EVENT_TYPES and type_ != "ready":
            log.warning("job %s: dropped an event of unknown type %.40r", self.job.pk, type_)
            return None
        return type_, rest, data

    def artifact(self, rest: str, data: dict[str, Any]) -> None:
        """An artifact as declared, if its name is a name and its file is there."""
        try:
            made = Made(
                str(data["name"]), str(data["type"]), int(data["size"]), str(data["sha256"])
            )
            there = artifacts.size(self.job.pk, self.job.attempt, made.name)
        except (KeyError, TypeError, ValueError) as error:
            log.warning("job %s: refused an artifact: %s", self.job.pk, error)
            return
        if there is None:
            log.warning("job %s: no file for artifact %.80r", self.job.pk, made.name)
            return
        self._made.append(made)
        self.queue("artifact", rest)

    def flush_soon(self) -> None:
        """After new events: at once if the last batch is a while ago, else with the next."""
        if self._pending:
            self.flush_at = self._flushed + BATCH_S

    def flush(self, *, create: bool = False, last: bool = False) -> None:
        """Sends what waits. Raises `LeaseLost` and `stream.Stale`, and for the `last` time
        DatabaseError, since later is too late then."""
        self.flush_at = NEVER
        if self._made:
            try:
                self._register()
            except DatabaseError as error:
                if last:
                    raise
                log.warning("job %s: files wait for the database: %s", self.job.pk, error)
                close_old_connections()
                self.flush_at = time.monotonic() + RETRY_S
                return
        if self._pending:
            entries = [self._numbered(type_, rest) for type_, rest in self._pending]
            self._pending = []
            self.spool.append(entries)
            self.stream.send(entries, create=create)
        self._flushed = time.monotonic()

    def _register(self) -> None:
        """Adds the files to the job, unless they go beyond the owner's quota: then neither they
        nor the news of them go out."""
        over = budget.over_quota(self.job, [made.size for made in self._made])
        if over is None:
            self.lease.register(self._made)
        else:
            self.refused = over
            for made in self._made:
                artifacts.remove(self.job.pk, self.job.attempt, made.name)
            self._pending = [event for event in self._pending if event[0] != "artifact"]
        self._made = []

    def _numbered(self, type_: str, rest: str) -> spool.Entry:
        """Ids are given at the last moment, so that they have no holes: a hole means a loss."""
        self._seq += 1
        return spool.entry(self.job.pk, f"{self.job.attempt}-{self._seq}", type_, rest)

    def expire(self) -> bool:
        """After the end: the stream lives on for a while only. False if it lacks events still."""
        if self.stream.behind:
            return False
        try:
            stream.expire(self.stream.client, self.job.pk)
        except redis.RedisError:
            return False
        return True

    def catch_up(self) -> None:
        """After Redis was away. The caller has just verified the lease against the row."""
        if self.stream.behind:
            self.flush()
            self.stream.recover()

    def close(self) -> None:
        self.spool.close()
