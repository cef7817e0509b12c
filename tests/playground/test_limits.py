"""How often, how many and how much: limits of one owner, with the headers that tell of them.

The form of the headers: draft-ietf-httpapi-ratelimit-headers, structured fields of RFC 9651.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.playground.client import Answer, Client
from tests.stack import Stack

JOBS = "/api/v1/jobs"
PER_MINUTE = 30


@pytest.fixture(scope="module")
def limited() -> Iterator[Client]:
    running = Stack(RATE_SUBMIT=str(PER_MINUTE), RATE_READ="100000", QUEUED_MAX="3", QUOTA_MB="1")
    try:
        running.start()
        yield Client(running)
    finally:
        running.stop()


def standing(answer: Answer) -> tuple[int, int]:
    """(remaining, seconds until full) out of the header."""
    match = re.fullmatch(r'"(?:submit|read)";r=(\d+);t=(\d+)', answer.headers["ratelimit"])
    assert match, answer.headers
    return int(match[1]), int(match[2])


def echo(client: Client, text: str = "x") -> Answer:
    return client.post(JOBS, {"kind": "pipe.echo", "params": {"text": text}}, Prefer="wait=10")


def test_without_limits_there_are_no_headers(client: Client) -> None:
    assert "ratelimit" not in client.get(JOBS).headers


def test_too_many_waiting(limited: Client) -> None:
    busy = limited.submit("pipe.train", steps=1000, wait_ms=100)
    limited.until(busy["id"], "running")
    waiting = [limited.submit("pipe.train", steps=1) for _ in range(3)]
    refused = limited.post(JOBS, {"kind": "pipe.train", "params": {}})
    assert refused.status == 429 and refused.json["code"] == "too_many_waiting"
    assert 1 <= int(refused.headers["retry-after"]) <= 5
    for job in (*waiting, busy):
        limited.post(f"{JOBS}/{job['id']}/cancel")
    limited.until(busy["id"])


def test_the_headers_count_down(limited: Client) -> None:
    first, second = echo(limited), echo(limited)
    assert first.headers["ratelimit-policy"] == f'"submit";q={PER_MINUTE};w=60'
    assert standing(second)[0] <= standing(first)[0]
    assert 0 < standing(second)[1] <= 60
    read = limited.get(JOBS)
    assert read.headers["ratelimit-policy"].startswith('"read";')


def test_over_the_quota_of_bytes(limited: Client) -> None:
    used = {item["resource"]: item for item in limited.get("/api/v1/quota").json["items"]}
    assert used["bytes"]["limit"] == 2**20 and used["waiting_jobs"]["limit"] == 3
    made = limited.submit("pipe.train", wait=10, steps=1, wait_ms=0)
    listed = limited.get(f"{JOBS}/{made['id']}/artifacts").json["items"]
    after = {item["resource"]: item for item in limited.get("/api/v1/quota").json["items"]}
    grown = after["bytes"]["used"] - used["bytes"]["used"]
    assert grown == sum(item["size"] for item in listed) > 0


def test_who_asks_too_often_is_told_when_to_come_back(limited: Client) -> None:
    answers: list[Answer] = []
    while not answers or answers[-1].status != 429:
        assert len(answers) <= 2 * PER_MINUTE
        answers.append(limited.post(f"{JOBS}/{'0' * 20}/cancel"))
    refused = answers[-1]
    assert refused.json["code"] == "too_many_requests"
    assert refused.headers["content-type"] == "application/problem+json"
    assert standing(refused)[0] == 0
    # 60 s ÷ 30 = a new one every 2 s; the jitter adds up to four.
    wait_s = int(refused.headers["retry-after"])
    assert 1 <= wait_s <= 2 + 4
    assert limited.get(JOBS).status == 200  # reading is counted apart
    time.sleep(wait_s)
    assert limited.post(f"{JOBS}/{'0' * 20}/cancel").status == 404


def test_the_jitter_spreads_those_who_were_turned_away(limited: Client) -> None:
    seen = set()
    while len(seen) < 2:
        answer = limited.post(f"{JOBS}/{'0' * 20}/cancel")
        if answer.status == 429:
            seen.add(answer.headers["retry-after"])


def test_without_redis_everybody_passes(limited: Client) -> None:
    while limited.post(f"{JOBS}/{'0' * 20}/cancel").status != 429:
        pass
    limited.stack.redis.stop()
    try:
        assert limited.post(f"{JOBS}/{'0' * 20}/cancel").status == 404
    finally:
        limited.stack.redis.start()
