"""Tokens: shown once, kept as a digest, limited in scope and time, revoked at once."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.playground.accounts.conftest import Person, Script, run_in
from tests.stack import Stack

JOBS = "/api/v1/jobs"
TOKENS = "/api/v1/tokens"
ECHO = {"kind": "pipe.echo", "params": {}}


def make(page: Script, *scopes: str, **more: object) -> dict[str, Any]:
    answer = page.post(TOKENS, {"name": "mine", "scopes": list(scopes), **more})
    assert answer.status == 201, answer.body
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json
    return found


def script(page: Script, token: dict[str, Any]) -> Script:
    return Script(page.stack, Authorization=f"Bearer {token['token']}")


def test_it_is_shown_once_and_kept_as_a_digest(server: Stack, ada_page: Script) -> None:
    made = make(ada_page, "read")
    assert made["token"].startswith(made["prefix"]) and len(made["prefix"]) < 12
    listed = next(row for row in ada_page.get(TOKENS).json["items"] if row["id"] == made["id"])
    assert "token" not in listed and listed["prefix"] == made["prefix"]
    dump = run_in(
        server,
        "from playground.accounts.models import Token; import json; "
        f"rows = [t.__dict__ for t in Token.objects.filter(pk={made['id']})]; "
        "print(json.dumps(rows, default=str))",
    )
    assert made["token"] not in dump
    assert hashlib.sha256(made["token"].encode()).hexdigest() in dump


@pytest.mark.parametrize(
    ("scope", "reads", "submits", "makes"),
    [("read", 200, 403, 403), ("submit", 200, 202, 403), ("admin", 200, 202, 201)],
)
def test_scopes(ada_page: Script, scope: str, reads: int, submits: int, makes: int) -> None:
    mine = script(ada_page, make(ada_page, scope))
    assert mine.get(JOBS).status == reads
    submitted = mine.post(JOBS, ECHO)
    assert submitted.status == submits
    if submits == 403:
        assert submitted.json["code"] == "scope_needed"
        assert '"submit"' in submitted.json["detail"]
    assert mine.post(TOKENS, {"name": "more", "scopes": ["read"]}).status == makes


def test_revoked_it_is_worth_nothing(ada_page: Script) -> None:
    made = make(ada_page, "read")
    mine = script(ada_page, made)
    assert mine.get(JOBS).status == 200
    assert ada_page.request("DELETE", f"{TOKENS}/{made['id']}").status == 204
    assert mine.get(JOBS).status == 401
    assert ada_page.request("DELETE", f"{TOKENS}/{made['id']}").status == 404


def test_a_token_may_revoke_itself_and_no_other(ada_page: Script) -> None:
    one, other = make(ada_page, "read"), make(ada_page, "read")
    assert script(ada_page, one).request("DELETE", f"{TOKENS}/{other['id']}").status == 403
    assert script(ada_page, one).request("DELETE", f"{TOKENS}/{one['id']}").status == 204


def test_nobody_revokes_somebody_elses(ada_page: Script, bob_page: Script) -> None:
    made = make(ada_page, "read")
    assert bob_page.request("DELETE", f"{TOKENS}/{made['id']}").status == 404
    assert script(ada_page, made).get(JOBS).status == 200


def test_it_expires(server: Stack, ada_page: Script) -> None:
    made = make(ada_page, "read", expires_in_days=1)
    assert script(ada_page, made).get(JOBS).status == 200
    run_in(
        server,
        "from playground.accounts.models import Token; from django.utils import timezone; "
        f"Token.objects.filter(pk={made['id']}).update(expires_at=timezone.now())",
    )
    assert script(ada_page, made).get(JOBS).status == 401


def test_it_ends_on_the_day_that_was_asked_for(ada_page: Script) -> None:
    day = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    made = make(ada_page, "read", expires_at=day.isoformat())
    assert datetime.fromisoformat(made["expires_at"]) == day
    both = {"name": "x", "expires_at": day.isoformat(), "expires_in_days": 3}
    assert ada_page.post(TOKENS, both).json["errors"][0]["pointer"] == "/expires_at"


@pytest.mark.parametrize(
    "shown",
    ["Bearer", "Bearer x", "Bearer pg_00000000_" + "A" * 32, "Basic YTpi", "pg_1", "Bearer " + "é"],
)
def test_what_is_no_token(ada_page: Script, shown: str) -> None:
    """Even beside a good cookie: whoever shows a token is judged by it."""
    assert ada_page.get(JOBS, Authorization=shown).status == 401


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x", "scopes": []}, "/scopes"),
        ({"name": "x", "scopes": ["root"]}, "/scopes"),
        ({"name": "x", "expires_in_days": 0}, "/expires_in_days"),
        ({"name": "x", "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "x", "expires_at": "2999-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "x", "expires_at": "2030-01-01T00:00:00"}, "/expires_at"),
        ({"name": "x" * 81}, "/name"),
        ({"name": "x", "colour": "red"}, "/colour"),
    ],
)
def test_bad_wishes(ada_page: Script, body: dict[str, object], pointer: str) -> None:
    refused = ada_page.post(TOKENS, body)
    assert refused.status == 422
    assert [error["pointer"] for error in refused.json["errors"]] == [pointer]


def test_the_page_makes_one_and_revokes_it(ada: Person) -> None:
    import re

    status, _, page = ada.post("/accounts/tokens", name="from the page", scope="submit", days="30")
    assert status == 200
    found = re.search(r"<code>(pg_[0-9a-f]{8}_[\w-]{32})</code>", page)
    assert found is not None
    mine = Script(ada.stack, Authorization=f"Bearer {found[1]}")
    assert mine.post(JOBS, ECHO).status == 202
    assert found[1] not in ada.get("/accounts/tokens")[2]
    listed = mine.get(TOKENS).json["items"]
    token_id = next(row["id"] for row in listed if row["name"] == "from the page")
    # The form's own page has the token for the form; the address takes only writes.
    assert ada.get(f"/accounts/tokens/{token_id}/revoke")[0] == 405


def test_two_tokens_of_one_person_share_the_persons_work(ada_page: Script) -> None:
    one, other = (script(ada_page, make(ada_page, "submit")) for _ in range(2))
    job = one.submit("pipe.echo", wait=10)
    assert other.job(job["id"])["state"] == "succeeded"
