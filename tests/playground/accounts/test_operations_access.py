"""In server mode the figures are for staff; `/metrics` also for whoever has the setting's token."""

from __future__ import annotations

import pytest

from tests.playground.accounts.conftest import METRICS_TOKEN, Person, Script, run_in
from tests.stack import Stack


def status(server: Stack, authorization: str) -> int:
    return Script(server, Authorization=authorization).get("/metrics").status


def test_a_stranger_gets_neither(server: Stack) -> None:
    answer = Script(server).get("/metrics")
    assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert answer.json["code"] == "not_signed_in"
    assert "/accounts/sign-in" in Person(server, "nobody").get("/operations")[1]


def test_the_settings_token_reads_metrics_and_nothing_else(server: Stack) -> None:
    assert status(server, f"Bearer {METRICS_TOKEN}") == 200
    assert status(server, f"Bearer {METRICS_TOKEN}x") == 401
    assert status(server, METRICS_TOKEN) == 401
    scraper = Script(server, Authorization=f"Bearer {METRICS_TOKEN}")
    assert scraper.get("/api/v1/jobs").status == 401


@pytest.mark.parametrize(("name", "allowed"), [("ada", False), ("staff", True)])
def test_signed_in(server: Stack, name: str, allowed: bool) -> None:
    person = Person(server, name)
    assert person.sign_in()[0] == 200
    assert person.get("/metrics")[0] == (200 if allowed else 403)
    code, _, text = person.get("/operations")
    assert code == (200 if allowed else 403)
    assert ("op-queues" in text) == allowed
    # The way there is shown to those who may go.
    assert ('href="/operations"' in person.get("/")[2]) == allowed


@pytest.mark.parametrize(
    ("name", "scope", "expected"),
    [
        ("staff", "read", 403),
        ("staff", "submit", 403),
        ("staff", "admin", 200),
        ("ada", "admin", 403),
    ],
)
def test_by_token(server: Stack, name: str, scope: str, expected: int) -> None:
    text = run_in(
        server,
        "from playground.accounts import tokens; from playground.accounts.models import User\n"
        f"owner = User.objects.get(username={name!r}).pk\n"
        f"print(tokens.make(owner_id=owner, name='t', scopes=[{scope!r}], expires_at=None)[1])",
    ).strip()
    assert status(server, f"Bearer {text}") == expected
