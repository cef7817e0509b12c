"""What the workers' runners use, for those who look: nobody measures while nobody asks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from playground import redis

ASKED = "figures:asked"
ASKED_S = 60  # so long after a question the workers go on measuring
KEPT_S = 15
PARTS = ("worker.interactive", "worker.training")


class RunnerMemory(NamedTuple):
    worker: str
    pid: int
    busy: bool
    resident_mb: float  # 2^20 bytes, the runner and all that it started


def report_runners(part: str, measure: Callable[[], list[tuple[int, bool, float]]]) -> None:
    """A worker's report, if somebody has asked lately."""
    try:
        client = redis.shared()
        if not client.exists(ASKED):
            return
        found = json.dumps({"t": time.time(), "runners": measure()})
        client.set(f"figures:{part}", found, ex=KEPT_S)
    except redis.RedisError:
        return


def runners() -> list[RunnerMemory]:
    """What the workers have reported last. The first question gets no answer yet, and wakes them.
    Raises RedisError."""
    client = redis.shared()
    client.set(ASKED, "1", ex=ASKED_S)
    said: Any = client.mget([f"figures:{part}" for part in PARTS])
    found = []
    for part, text in zip(PARTS, said, strict=True):
        for pid, busy, resident_mb in json.loads(text)["runners"] if text else []:
            found.append(RunnerMemory(part.removeprefix("worker."), pid, busy, resident_mb))
    return found
