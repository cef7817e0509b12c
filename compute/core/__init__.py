"""Kinds, events, traces and the runner: what every lab stands on.

In a notebook:

    from compute.core import run
    done = run("transformer.train", {"steps": 200}, on_event=print)
    done.result["loss"], done.dir / "model.safetensors"
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compute.core.errors import (
    Canceled,
    ComputeError,
    DeadlineExceeded,
    Diverged,
    InvalidParams,
    UnknownKind,
    UserError,
)

__all__ = [
    "Canceled",
    "ComputeError",
    "DeadlineExceeded",
    "Diverged",
    "InvalidParams",
    "Run",
    "UnknownKind",
    "UserError",
    "run",
]


@dataclass(frozen=True)
class Run:
    """What a job made: its events in order, its result, and the folder of its artifacts."""

    events: list[dict[str, Any]]
    result: dict[str, Any]
    dir: Path


def run(
    kind: str,
    params: Mapping[str, Any] | None = None,
    *,
    dir: Path | str | None = None,
    seed: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
    on_event: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """Run one job in this process and return what it made.

    dir       artifact folder; a new temporary one, which is yours to delete, by default
    seed      of the global random generators; the param `seed` if the kind has one, else 0.
              The generators are given back as they were.
    device    "cpu", "cuda", "cuda:N" or "auto"
    on_event  called with each event as it comes

    A param that names another job may be that job's folder: `{"model": str(done.dir)}`.
    There is no deadline. Ctrl-C, or the notebook's stop button, cancels.

    Raises InvalidParams, UnknownKind, UserError, Diverged or another ComputeError, and Canceled
    (not an Exception); each has what was made so far as `.run`, None if it never started.
    """
    # Light at import: the web process reads kinds through this package.
    from compute.core import devices
    from compute.core.events import decode, encode
    from compute.core.execution import Spec, execute
    from compute.core.kinds import get, validate

    checked = validate(get(kind).name, params or {})
    if seed is None:
        seed = getattr(checked, "seed", None) or 0
    folder = Path(dir) if dir is not None else Path(tempfile.mkdtemp(prefix="playground-"))
    job = uuid.uuid4().hex
    events: list[dict[str, Any]] = []

    def keep(type: str, data: Mapping[str, Any]) -> None:
        head = {"id": f"1-{len(events) + 1}", "job": job, "type": type, "t": time.time()}
        event = decode(encode({**head, "data": data}))
        events.append(event)
        if on_event is not None:
            on_event(event)

    spec = Spec(job, kind, params or {}, folder, seed=seed, threads=threads, device=device)
    with devices.own_randomness():
        outcome = execute(spec, keep, local=True)
    made = Run(events, outcome.result or {}, folder)
    if outcome.raised is not None:
        outcome.raised.run = made
        raise outcome.raised
    return made
