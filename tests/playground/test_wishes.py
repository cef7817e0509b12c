"""Cancel-After, start_at and class: what a submitter may ask besides the kind and its params."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.playground.client import Answer, Client

JOBS = "/api/v1/jobs"


def ask(client: Client, cancel_after: str = "", **more: object) -> Answer:
    body = {"kind": "pipe.echo", "params": {}, **more}
    headers = {"Cancel-After": cancel_after} if cancel_after else {}
    return client.request("POST", JOBS, body, **headers)


def at(**ahead: float) -> str:
    return (datetime.now(UTC) + timedelta(**ahead)).isoformat()


def pointers(answer: Answer) -> list[str]:
    assert answer.status == 422 and answer.json["code"] == "invalid_request", answer.body
    return [error["pointer"] for error in answer.json["errors"]]


@pytest.mark.parametrize("value", ["0", "-5", "5d", "1.5m", "soon", "9999999h", "m", "１m"])
def test_what_is_no_cancel_after(client: Client, value: str) -> None:
    if not value.isascii():
        value = value.encode().decode("latin-1")
    assert pointers(ask(client, value)) == ["/Cancel-After"]


@pytest.mark.parametrize("value", ["90", "90s", "5m", "2h", " 5M "])
def test_cancel_after(client: Client, value: str) -> None:
    assert ask(client, value).status == 202


@pytest.mark.parametrize(
    "value",
    [
        "tomorrow",
        "2030-01-01",
        "2030-01-01T10:00:00",
        "2030-13-01T10:00:00Z",
        "",
        "2020-01-01T00:00:00Z",
    ],
)
def test_what_is_no_start(client: Client, value: str) -> None:
    assert pointers(ask(client, start_at=value)) == ["/start_at"]


def test_a_start_too_far_ahead(client: Client) -> None:
    assert pointers(ask(client, start_at=at(days=31))) == ["/start_at"]


def test_a_clock_that_is_a_little_late_is_forgiven(client: Client) -> None:
    assert ask(client, start_at=at(seconds=-30)).status == 202


def test_a_deadline_before_the_start(client: Client) -> None:
    assert pointers(ask(client, "10s", start_at=at(minutes=5))) == ["/Cancel-After"]


def test_a_class_that_one_is_not_in(client: Client) -> None:
    assert pointers(ask(client, **{"class": 12345})) == ["/class"]


def test_all_that_is_wrong_is_said_at_once(client: Client) -> None:
    wrong = ask(client, "soon", start_at="later", **{"class": 9})
    assert pointers(wrong) == ["/start_at", "/Cancel-After", "/class"]
