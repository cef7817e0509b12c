"""A small HTTP and WebSocket client for tests against a running stack."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from playground.problem_codes import PROBLEMS
from tests.stack import Stack

ENDED = {"succeeded", "failed", "canceled", "aborted"}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        def refuse(name: str) -> Any:
            raise AssertionError(f"{name} in JSON: {self.body[:200]!r}")

        return json.loads(self.body, parse_constant=refuse)


class Client:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def request(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        if method not in ("GET", "HEAD"):
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.stack.port, timeout=30)
        try:
            connection.request(method, path, data, {k: v for k, v in sent.items() if v})
            answer = connection.getresponse()
            names = {k.lower(): v for k, v in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: Any) -> Answer:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: Any) -> Answer:
        return self.request("POST", path, {} if body is None else body, **headers)

    def submit(self, kind: str, wait: int = 0, **params: Any) -> dict[str, Any]:
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        answer = self.post("/api/v1/jobs", {"kind": kind, "params": params}, **headers)
        assert answer.status in (200, 202), answer.body
        job: dict[str, Any] = answer.json
        return job

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/v1/jobs/{job_id}").json
        return found

    def until(self, job_id: str, *states: str, timeout_s: float = 20) -> dict[str, Any]:
        """The job, once it is in one of `states` (any end if none is named)."""
        wanted = set(states) or ENDED
        until = time.monotonic() + timeout_s
        while (job := self.job(job_id))["state"] not in wanted:
            assert time.monotonic() < until, f"{job} never became {wanted}\n{self.stack.said()}"
            assert job["state"] not in ENDED, job
            time.sleep(0.02)
        return job

    def events(self, job_id: str, after: str = "0-0", limit: int = 5000) -> list[dict[str, Any]]:
        answer = self.get(f"/api/v1/jobs/{job_id}/events?after={after}&limit={limit}")
        items: list[dict[str, Any]] = answer.json["items"]
        return items

    def control(self, job_id: str, action: str, **values: Any) -> Answer:
        body = {"action": action, **({"values": values} if values else {})}
        return self.post(f"/api/v1/jobs/{job_id}/control", body)

    @contextmanager
    def socket(self, **options: Any) -> Iterator[ClientConnection]:
        url = f"ws://127.0.0.1:{self.stack.port}/ws/v1"
        with connect(url, origin=Origin(self.stack.url), **options) as opened:
            welcome = json.loads(opened.recv(timeout=5))
            assert welcome["op"] == "welcome"
            yield opened


def say(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps(message))


def hear(socket: ClientConnection, timeout_s: float = 10) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(socket.recv(timeout=timeout_s))
    return message


def follow(
    socket: ClientConnection, job_id: str, after: str | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Subscribes and reads until the end: (events, all other messages)."""
    topic = f"job:{job_id}"
    say(socket, op="sub", topic=topic, after=after)
    events: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    while not events or events[-1]["type"] != "end":
        message = hear(socket, 30)
        if message["op"] == "ev" and message["topic"] == topic:
            events += message["events"]
        else:
            others.append(message)
    return events, others


def problem(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """Asserts the one shape; returns the body."""
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    found: dict[str, Any] = answer.json
    problem_shape(found)
    assert (found["status"], found["code"]) == (status, code)
    assert "{" not in found["detail"]
    return found


def problem_shape(found: dict[str, Any]) -> None:
    """Asserts that this is a problem, in the one shape that all of them have."""
    names = "type title status detail instance code errors request_id"
    assert set(found) == set(names.split())
    assert found["type"] == f"/problems/{found['code']}"
    assert PROBLEMS[found["code"]].status == found["status"]
    assert found["title"]
    assert found["detail"]
    assert all(set(e) <= {"pointer", "detail", "nearest"} and e["detail"] for e in found["errors"])
