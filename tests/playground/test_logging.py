"""One id leads from the answer through the logs of web, supervisor and runner."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.playground.client import Client
from tests.stack import Stack

GIVEN = "lesson-7.request_0042"


@pytest.fixture(scope="module")
def own() -> Iterator[Stack]:
    running = Stack(LOG_FORMAT="json", LOG_LEVEL="INFO")
    try:
        running.start()
        yield running
    finally:
        running.stop()


def lines(stack: Stack, request_id: str) -> list[dict[str, object]]:
    found = []
    for line in stack.log.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return [line for line in found if line.get("request_id") == request_id]


def test_a_failing_job_by_its_requests_id(own: Stack) -> None:
    client = Client(own)
    body = {"kind": "pipe.case", "params": {"case": "bug"}}
    answer = client.post("/api/v1/jobs", body, Prefer="wait=10", X_Request_ID=GIVEN)
    assert answer.headers["x-request-id"] == GIVEN
    job = answer.json
    assert job["state"] == "failed"
    until = time.monotonic() + 10
    while not any("a secret detail" in str(line) for line in lines(own, GIVEN)):
        assert time.monotonic() < until, own.said()
        time.sleep(0.05)
    by = {str(line["logger"]): line for line in lines(own, GIVEN)}
    assert by["playground.access"]["message"].startswith("POST /api/v1/jobs 200 ")  # type: ignore[attr-defined]
    about = {"job": job["id"], "attempt": 1}
    assert about.items() <= by["playground.jobs.worker"].items()
    assert about.items() <= by["playground.runner"].items()
    said = [line for line in lines(own, GIVEN) if line["logger"] == "playground.runner"]
    assert any("RuntimeError: a secret detail" in str(line["message"]) for line in said)
    # The next job of the same runner has its own.
    other = client.post(
        "/api/v1/jobs", {"kind": "pipe.case", "params": {"case": "print"}}, Prefer="wait=10"
    )
    assert other.json["state"] == "succeeded"
    theirs = lines(own, other.headers["x-request-id"])
    assert any(line["logger"] == "playground.runner" for line in theirs)
    assert all(line.get("job", other.json["id"]) == other.json["id"] for line in theirs)


@pytest.mark.parametrize("given", ["", "short", "a" * 65, "two words", "x;y=zzzzzz", "“quoted”id"])
def test_an_id_that_is_no_plain_word_is_replaced(own: Stack, given: str) -> None:
    client = Client(own)
    answer = client.get("/api/v1/kinds", X_Request_ID=given.encode().decode("latin-1"))
    assert answer.headers["x-request-id"] != given and len(answer.headers["x-request-id"]) == 16


def test_what_goes_wrong_inside_carries_the_id(own: Stack) -> None:
    answer = Client(own).post("/api/v1/jobs", {"kind": "nothing.here", "params": {}})
    assert answer.json["request_id"] == answer.headers["x-request-id"]
    [line] = [
        line
        for line in lines(own, answer.json["request_id"])
        if line["logger"] == "playground.access"
    ]
    assert line["message"].startswith("POST /api/v1/jobs 422 ")  # type: ignore[attr-defined]


def test_a_talkative_job_is_cut_short(own: Stack) -> None:
    """It can neither fill the log nor forge a line of it."""
    client = Client(own)
    answer = client.post(
        "/api/v1/jobs", {"kind": "pipe.case", "params": {"case": "chatter"}}, Prefer="wait=10"
    )
    assert answer.json["state"] == "succeeded", answer.json
    found: list[str] = []
    until = time.monotonic() + 10
    while not found or "left out" not in found[-1]:
        assert time.monotonic() < until, own.said()
        time.sleep(0.05)
        named = lines(own, answer.headers["x-request-id"])
        found = [str(line["message"]) for line in named if line["logger"] == "playground.runner"]
    assert len(found) == 501
    assert "\\x1b[31m" in found[0] and "\x1b" not in found[0]
    assert len(found[1]) < 2_200
