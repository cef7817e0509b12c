"""Server mode's outermost rule, by itself: which `Origin` is a page of ours."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from playground.local_mode import headers_of
from playground.server_mode import refusal

HOST = "play.example.org"


def asked(kind: str, **headers: str) -> str | None:
    sent = {"host": HOST, "content-type": "application/json", **headers}
    scope: dict[str, Any] = {
        "type": kind,
        "method": "POST",
        "path": "/api/v1/jobs" if kind == "http" else "/ws/v1",
        "headers": [(n.replace("_", "-").encode(), v.encode()) for n, v in sent.items()],
    }
    return refusal(scope, headers_of(scope))


@pytest.fixture(params=["http", "websocket"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", [HOST])
    return str(request.param)


@pytest.mark.parametrize("proxy", [False, True])
def test_the_scheme_counts(kind: str, proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 6454, 4: an origin is scheme, host and port together."""
    monkeypatch.setattr(settings, "BEHIND_PROXY", proxy)
    ours, other = ("https", "http") if proxy else ("http", "https")
    assert asked(kind, origin=f"{ours}://{HOST}") is None
    assert asked(kind, origin=f"{other}://{HOST}") == "foreign_origin"


@pytest.mark.parametrize(
    "origin",
    ["null", "", f"http://{HOST}:8080", f"http://{HOST}.elsewhere.test", f"http://x.{HOST}"],
)
def test_any_other_is_foreign(kind: str, origin: str) -> None:
    assert asked(kind, origin=origin) == "foreign_origin"


def test_the_browser_is_heard(kind: str) -> None:
    ours = f"http://{HOST}"
    assert asked(kind, origin=ours, sec_fetch_site="same-origin") is None
    for site in ("cross-site", "same-site"):
        assert asked(kind, origin=ours, sec_fetch_site=site) == "foreign_origin"


def test_a_host_that_is_not_ours(kind: str) -> None:
    assert asked(kind, host="elsewhere.test", origin="http://elsewhere.test") == "foreign_host"
