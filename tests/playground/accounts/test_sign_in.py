"""Server mode: who may come in, how, and whose is what."""

from __future__ import annotations

import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.playground.accounts.conftest import PASSWORD, Person, Script
from tests.stack import Stack

JOBS = "/api/v1/jobs"
ECHO = {"kind": "pipe.echo", "params": {}}


def test_pages_ask_for_a_sign_in_and_come_back(server: Stack) -> None:
    person = Person(server, "ada")
    status, address, _ = person.get("/labs/transformer?step=3")
    assert status == 200 and "/accounts/sign-in?next=" in address
    status, address, page = person.sign_in(next="/labs/transformer?step=3")
    assert (status, address) == (200, f"{server.url}/labs/transformer?step=3")
    assert ">ada</a>" in page


@pytest.mark.parametrize("path", ["/", "/docs/", "/healthz", "/api/v1/docs", "/accounts/sign-in"])
def test_what_is_open(server: Stack, path: str) -> None:
    assert Person(server, "nobody").get(path)[:2] == (200, f"{server.url}{path}")


def test_next_never_leads_away(server: Stack) -> None:
    person = Person(server, "ada")
    for away in ("https://elsewhere.test/", "//elsewhere.test/", "javascript:alert(1)"):
        assert person.sign_in(next=away)[1] == f"{server.url}/"
        person.sign_out()


def test_a_wrong_password(server: Stack) -> None:
    status, _, page = Person(server, "bob").sign_in("wrong")
    assert status == 422 and 'role="alert"' in page


def test_guessing_is_slowed_down(server: Stack) -> None:
    person = Person(server, "guessed")
    seen = [person.sign_in(f"wrong {number}")[0] for number in range(12)]
    assert seen[:10] == [422] * 10 and seen[10:] == [429] * 2
    assert Person(server, "ada").sign_in()[0] == 200  # others come in meanwhile


def test_an_empty_password_does_not_start_the_count_again(server: Stack) -> None:
    person = Person(server, "guessed too")
    seen = []
    for number in range(12):
        seen.append(person.sign_in(f"wrong {number}")[0])
        person.sign_in("")
    assert seen == [422] * 10 + [429] * 2


def test_guesses_at_the_same_time_count_each(server: Stack) -> None:
    """Each is counted before its password is looked at."""
    with ThreadPoolExecutor(30) as threads:
        people = [Person(server, "guessed at once") for _ in range(30)]
        seen = Counter(threads.map(lambda person: person.sign_in("wrong")[0], people))
    assert seen == {422: 10, 429: 20}


def test_administration_has_no_sign_in_of_its_own(server: Stack) -> None:
    """It would be a way around the limit."""
    nobody = Person(server, "nobody")
    for path in ("/admin/", "/admin/login/?next=/admin/"):
        assert nobody.get(path)[1] == f"{server.url}/accounts/sign-in?next=/admin/"
    staff = Person(server, "staff")
    assert staff.sign_in(next="/admin/")[1] == f"{server.url}/admin/"


def test_a_form_sent_after_the_session_ended(server: Stack) -> None:
    """Its address has no page to come back to."""
    for path in ("/accounts/sign-out", "/accounts/tokens/1/revoke"):
        person = Person(server, "ada")
        person.sign_in()
        person.get("/accounts/tokens")
        for cookie in [cookie for cookie in person.jar if cookie.name == "sessionid"]:
            person.jar.clear(cookie.domain, cookie.path, cookie.name)
        status, address, _ = person.post(path)
        assert (status, address) == (200, f"{server.url}/accounts/sign-in")


def test_pages_go_by_the_session_alone(ada: Person) -> None:
    """Whatever a proxy or a script adds."""
    request = urllib.request.Request(
        f"{ada.stack.url}/accounts/tokens", headers={"Authorization": "Basic YTpi"}
    )
    assert ada._open(request)[0] == 200


def test_a_form_of_another_site_signs_nobody_out(ada: Person) -> None:
    foreign = urllib.request.Request(
        f"{ada.stack.url}/accounts/sign-out", b"", {"Origin": "https://elsewhere.test"}
    )
    assert ada._open(foreign)[0] == 403
    assert ada.get("/accounts/tokens")[1].endswith("/accounts/tokens")


def test_every_route_asks_who_is_there(server: Stack) -> None:
    """Walked by the OpenAPI document, so a new route is asked too."""
    nobody = Script(server)
    paths = nobody.get("/api/v1/openapi.json").json["paths"]
    open_paths = {"/api/v1/kinds", "/api/v1/kinds/{name}"}
    asked = 0
    for path, methods in paths.items():
        for method in methods:
            filled = path.replace("{name}", "pipe.echo").replace("{token_id}", "1")
            filled = filled.replace("{job_id}", "0" * 20).replace("{upload_id}", "0" * 20)
            body = ECHO if path == JOBS else {"name": "x", "action": "cancel"}
            if path.endswith("/control"):
                body = {"action": "cancel"}
            elif path.endswith("/tokens"):
                body = {"name": "x"}
            more = {"X_Playground": "1"} if path.endswith("/uploads") else {}
            answer = nobody.request(
                method.upper(), filled, None if method in ("get", "head") else body, **more
            )
            if path in open_paths:
                assert answer.status == 200
                continue
            assert answer.status == 401, (method, path, answer.body)
            if method != "head":
                assert answer.json["code"] == "not_signed_in"
                assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["www-authenticate"] == "Bearer"
            asked += 1
    assert asked >= 15


def test_what_is_somebody_elses_does_not_exist(ada_page: Script, bob_page: Script) -> None:
    job = ada_page.submit("pipe.train", wait=10, steps=1, wait_ms=0)
    own = f"{JOBS}/{job['id']}"
    for path in (own, f"{own}/events", f"{own}/artifacts", f"{own}/artifacts/model.bin"):
        assert ada_page.get(path).status == 200
        assert bob_page.get(path).status == 404
    for method, path in (("POST", f"{own}/cancel"), ("DELETE", own)):
        assert bob_page.request(method, path).status == 404
    assert job["id"] not in [row["id"] for row in bob_page.get(JOBS).json["items"]]


def test_a_write_from_another_site_is_refused_despite_the_cookie(ada_page: Script) -> None:
    for headers in ({"Origin": "https://elsewhere.test"}, {"Sec_Fetch_Site": "cross-site"}):
        refused = ada_page.post(JOBS, ECHO, **headers)
        assert refused.status == 403 and refused.json["code"] == "foreign_origin"
    typed = ada_page.request("POST", JOBS, raw=b"{}", Content_Type="text/plain")
    assert typed.status == 415
    assert ada_page.post(JOBS, ECHO).status == 202


def test_a_changed_password_signs_the_others_out(server: Stack) -> None:
    here, there = Person(server, "eve"), Person(server, "eve")
    here.sign_in()
    there.sign_in()
    new = "another-long-one"
    try:
        status, _, _ = here.post(
            "/accounts/password", old_password=PASSWORD, new_password1=new, new_password2=new
        )
        assert status == 200
        assert here.get("/accounts/tokens")[1].endswith("/accounts/tokens")
        assert "/sign-in" in there.get("/accounts/tokens")[1]
    finally:
        here.post(
            "/accounts/password",
            old_password=new,
            new_password1=PASSWORD,
            new_password2=PASSWORD,
        )


def test_administration_is_for_staff(server: Stack, ada: Person) -> None:
    staff = Person(server, "staff")
    staff.sign_in()
    for path in ("/admin/", "/admin/classroom/class/add/", "/admin/accounts/token/"):
        status, address, _ = staff.get(path)
        assert (status, address) == (200, f"{server.url}{path}")
        assert ada.get(path)[0] == 403
