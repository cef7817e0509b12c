"""Lists of the API: pages by cursor and by `Link` (RFC 8288), filters, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.playground.client import Client, problem
from tests.stack import Stack

JOBS = "/api/v1/jobs"


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url, timeout=30) as opened:
        yield opened


def test_links_walk_the_whole_list_and_back(client: Client, http: httpx.Client) -> None:
    made = [client.submit("pipe.files", wait=10)["id"] for _ in range(3)][::-1]
    whole = [job["id"] for job in http.get(f"{JOBS}?kind=pipe.files&limit=200").json()["items"]]
    assert whole[:3] == made
    pages: list[list[str]] = []
    address = f"{JOBS}?kind=pipe.files&limit=2"
    while True:
        page = http.get(address)
        pages.append([job["id"] for job in page.json()["items"]])
        if "next" not in page.links:
            break
        address = page.links["next"]["url"]
        assert address.startswith(f"{JOBS}?") and "kind=pipe.files" in address
    assert [job_id for found in pages for job_id in found] == whole
    back = http.get(page.links["prev"]["url"])
    assert [job["id"] for job in back.json()["items"]] == pages[-2]


def test_links_of_events_go_on_after_the_last(http: httpx.Client, made: dict[str, Any]) -> None:
    address, ids = f"{made['urls']['events']}?limit=2", []
    while True:
        page = http.get(address)
        ids += [event["id"] for event in page.json()["items"]]
        if "next" not in page.links:
            break
        address = page.links["next"]["url"]
    whole = http.get(f"{made['urls']['events']}?limit=5000").json()["items"]
    assert ids == [event["id"] for event in whole]
    assert whole[-1]["type"] == "end"


@pytest.mark.parametrize("path", [f"{JOBS}?state=paused", "/api/v1/uploads", "/api/v1/kinds"])
def test_one_page_has_no_links(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert "link" not in answer.headers
    assert set(answer.json()) == {"items", "next", "prev"}


def test_jobs_of_a_class(client: Client) -> None:
    said = client.stack.shell(
        """
        from playground.accounts.owner import local_owner
        from playground.classroom.models import Class, Membership
        group = Class.objects.create(name="Year 9")
        Membership.objects.create(group=group, user=local_owner())
        other = Class.objects.create(name="Year 10")
        Membership.objects.create(group=other, user=local_owner())
        print(group.pk, other.pk)
        """
    )
    mine, other = (int(number) for number in said.split())
    try:
        body = {"kind": "pipe.echo", "params": {}, "class": mine}
        job = client.post(JOBS, body, Prefer="wait=10").json
        assert job["class"] == mine
        found = client.get(f"{JOBS}?class={mine}").json["items"]
        assert [row["id"] for row in found] == [job["id"]]
        assert client.get(f"{JOBS}?class={other}").json["items"] == []
        assert client.submit("pipe.echo", wait=10)["class"] is None  # two classes: none is guessed
    finally:
        client.stack.shell(
            "from playground.classroom.models import Class; Class.objects.all().delete()"
        )


@pytest.mark.parametrize("value", ["0", "-1", "x", str(2**63), "1.5"])
def test_what_is_no_class(client: Client, value: str) -> None:
    (found,) = problem(client.get(f"{JOBS}?class={value}"), 422, "invalid_request")["errors"]
    assert found["pointer"] == "/class"
