"""The event stream over HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.playground.client import Client


def stream(
    client: Client, job_id: str, last: str | None = None, stop_after: int | None = None
) -> list[dict[str, Any]]:
    """Events out of the stream until it ends, or until so many have come."""
    connection = http.client.HTTPConnection("127.0.0.1", client.stack.port, timeout=20)
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
    connection.request("GET", f"/api/v1/jobs/{job_id}/events", headers=headers)
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    found: list[dict[str, Any]] = []
    event_id = ""
    for raw in answer:
        line = raw.decode().rstrip("\n")
        if line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("data: "):
            found.append(json.loads(line[6:]))
            assert found[-1]["id"] == event_id
            if len(found) == stop_after:
                break
    connection.close()
    return found


def test_sse_follows_to_the_end_and_resumes(client: Client) -> None:
    job = client.submit("pipe.talk", events=40, wait_ms=20)
    first = stream(client, job["id"], stop_after=12)
    rest = stream(client, job["id"], last=first[-1]["id"])
    assert [e["id"] for e in first + rest] == [f"1-{n}" for n in range(1, 44)]
    assert rest[-1]["type"] == "end"
    over = client.get(
        job["urls"]["events"], Accept="text/event-stream", Last_Event_ID=rest[-1]["id"]
    )
    assert over.status == 204


def test_sse_of_a_job_that_is_over(client: Client) -> None:
    job = client.submit("pipe.talk", wait=10, events=5)
    assert [e["id"] for e in stream(client, job["id"])] == [f"1-{n}" for n in range(1, 9)]
