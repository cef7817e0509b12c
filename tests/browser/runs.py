"""Runs for browser tests, made through the API as anyone would."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

TINY = {
    "layers": 2,
    "heads": 2,
    "d_model": 32,
    "block": 32,
    "batch": 8,
    "steps": 120,
    "eval_every": 40,
    "snapshot_every": 20,
    "seed": 3,
}


def call(url: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def submit(base: str, kind: str, params: dict[str, Any]) -> str:
    return str(call(f"{base}/api/v1/jobs", {"kind": kind, "params": params})["id"])


def wait(base: str, job: str, *, seconds: float = 240) -> dict[str, Any]:
    """The job's row once it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        row = call(f"{base}/api/v1/jobs/{job}")
        if row["state"] in ("succeeded", "failed", "canceled", "aborted"):
            return dict(row)
        time.sleep(0.3)
    raise AssertionError(f"{job} did not end in {seconds} s")


def artifact(base: str, job: str, name: str, folder: Path) -> Path:
    target = folder / name.replace("/", "-")
    urllib.request.urlretrieve(f"{base}/api/v1/jobs/{job}/artifacts/{name}", target)
    return target
