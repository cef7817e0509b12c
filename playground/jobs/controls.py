"""Controls on their way to a supervisor: one Redis list a worker, apart from all data, so that a
cancel never waits behind a million metrics."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from playground import redis

log = logging.getLogger(__name__)
TTL_S = 3600  # the list of a worker that is gone
BLOCK_S = 1

Deliver = Callable[[str, int, dict[str, Any]], None]


def key(worker: str) -> str:
    return f"ctl:{worker}"


def send(*, worker: str, job_id: str, attempt: int, control: Mapping[str, Any]) -> None:
    """Raises RedisError when Redis is away: the caller tells the person that nothing happened."""
    line = json.dumps({"job": job_id, "attempt": attempt, "control": control}, allow_nan=False)
    pipe = redis.shared().pipeline(transaction=True)
    pipe.rpush(key(worker), line)
    pipe.expire(key(worker), TTL_S)
    pipe.execute()


class Listener(threading.Thread):
    """Takes a worker's controls in order and hands each to `deliver(job, attempt, control)`."""

    def __init__(self, worker: str, deliver: Deliver) -> None:
        super().__init__(name="controls", daemon=True)
        self._worker, self._deliver = worker, deliver
        self._stopping = threading.Event()

    def run(self) -> None:
        client = redis.client(block_s=BLOCK_S)
        while not self._stopping.is_set():
            try:
                item = cast("tuple[str, str] | None", client.blpop([key(self._worker)], BLOCK_S))
            except redis.RedisError as error:
                log.warning("controls wait for Redis: %s", error)
                self._stopping.wait(0.5)
                continue
            if item is not None:
                message = json.loads(item[1])
                self._deliver(message["job"], message["attempt"], message["control"])
        client.close()

    def stop(self) -> None:
        self._stopping.set()
        until = time.monotonic() + BLOCK_S + 1
        self.join(max(0.0, until - time.monotonic()))
