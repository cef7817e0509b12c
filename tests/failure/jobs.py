"""Jobs of the failure tests: started, watched, and looked up behind the API's back."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from tests.playground.client import Client


def in_order(events: list[dict[str, Any]]) -> None:
    keys = [tuple(int(n) for n in e["id"].split("-")) for e in events]
    assert keys == sorted(set(keys))
    assert [e["type"] for e in events].count("end") <= 1
    assert events[-1]["type"] == "end" or "end" not in [e["type"] for e in events]


def runner_pid(client: Client, job_id: str) -> int:
    with sqlite3.connect(f"file:{client.stack.var}/playground.sqlite3?mode=ro", uri=True) as db:
        row = db.execute(
            "SELECT pid FROM jobs_attempt WHERE job_id = ? ORDER BY number DESC", [job_id]
        ).fetchone()
    db.close()
    return int(row[0])


def train(client: Client, **params: Any) -> str:
    job_id: str = client.submit("pipe.train", **{"steps": 5000, "wait_ms": 10, **params})["id"]
    return job_id


def running(client: Client, job_id: str, attempt: int) -> None:
    until = time.monotonic() + 30
    while ((job := client.job(job_id))["state"], job["attempt"]) != ("running", attempt):
        assert time.monotonic() < until, f"{job}\n{client.stack.said()}"
        time.sleep(0.05)


def restart(client: Client, part: str) -> None:
    client.stack.start_part(part)
    client.stack.wait_until_healthy()


def failed_because(client: Client, job_id: str, reason: str, words: str) -> None:
    job = client.until(job_id, timeout_s=15)
    assert (job["state"], job["reason"], job["attempt"]) == ("failed", reason, 1)
    assert words in job["message"]
    assert "secret detail" not in job["message"]
    events = client.events(job["id"])
    in_order(events)
    error = next(e for e in events if e["type"] == "error")
    assert error["data"]["reason"] == reason
    assert events[-1]["data"]["message"] == job["message"]
    chinese = client.get(f"/api/v1/jobs/{job['id']}", Accept_Language="zh-CN").json["message"]
    assert any("\u4e00" <= c <= "\u9fff" for c in chinese)
    assert client.submit("pipe.echo", wait=10)["state"] == "succeeded"
