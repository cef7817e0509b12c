"""Sockets and who may have them: foreign pages, refused handshakes, rights withdrawn."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.playground.accounts.conftest import (
    PASSWORD,
    SECRET,
    Person,
    Script,
    manage,
    page_script,
    run_in,
)
from tests.stack import Stack

CLOSED_WITHIN_S = 5.0  # the promise; asserted at three times that


@pytest.fixture(scope="module")
def server() -> Iterator[Stack]:
    running = Stack(SERVER_MODE="1", SECRET_KEY=SECRET, ALLOWED_HOSTS="127.0.0.1")
    try:
        running.start()
        for name in ("ada", "bob", "eve", "fay"):
            manage(running, "add_user", name, "--password", PASSWORD)
        yield running
    finally:
        running.stop()


def person(server: Stack, name: str) -> Person:
    found = Person(server, name)
    assert found.sign_in()[0] == 200
    return found


def socket(server: Stack, origin: str | None, **headers: str) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{server.port}/ws/v1",
        origin=Origin(origin) if origin else None,
        additional_headers=headers,
        open_timeout=10,
    )


def page_socket(someone: Person) -> ClientConnection:
    return socket(someone.stack, someone.stack.url, Cookie=someone.cookies)


def token(page: Script, scope: str = "read") -> dict[str, str]:
    made: dict[str, str] = page.post("/api/v1/tokens", {"name": "socket", "scopes": [scope]}).json
    return made


def close_code(opened: ClientConnection) -> tuple[int, float]:
    """The code that it is closed with, and after how long."""
    started = time.monotonic()
    try:
        while True:
            opened.recv(timeout=3 * CLOSED_WITHIN_S)
    except ConnectionClosed as closed:
        assert closed.rcvd is not None
        return closed.rcvd.code, time.monotonic() - started


def test_a_page_of_ours_may(server: Stack) -> None:
    with page_socket(person(server, "ada")) as opened:
        assert '"welcome"' in str(opened.recv(timeout=5))


@pytest.mark.parametrize("origin", ["https://elsewhere.test", "null", "http://127.0.0.1:1"])
def test_a_foreign_page_may_not_even_with_the_cookie(server: Stack, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        socket(server, origin, Cookie=person(server, "ada").cookies)
    assert refused.value.response.status_code == 403


def test_without_an_origin_only_a_token_counts(server: Stack) -> None:
    someone = person(server, "ada")
    with pytest.raises(InvalidStatus) as refused:
        socket(server, None, Cookie=someone.cookies)
    assert refused.value.response.status_code == 401
    made = token(page_script(someone))
    with socket(server, None, Authorization=f"Bearer {made['token']}") as opened:
        assert '"welcome"' in str(opened.recv(timeout=5))


def test_nobody_is_told_so_by_a_code(server: Stack) -> None:
    with socket(server, server.url) as opened:
        assert close_code(opened)[0] == 4401
    with socket(server, None, Authorization="Bearer nonsense") as opened:
        assert close_code(opened)[0] == 4401


def test_a_thousand_refused_handshakes_leak_nothing(server: Stack) -> None:
    from redis import Redis

    web = psutil.Process(server.parts["web"].pid)
    client = Redis.from_url(server.redis.url)

    def held() -> tuple[int, int]:
        return web.num_fds(), len(client.client_list())

    cookies = person(server, "ada").cookies
    with page_socket(person(server, "ada")) as kept:
        kept.recv(timeout=5)
        before = held()
        for number in range(1000):
            if number % 3 == 0:  # a page of ours where nobody is signed in: told by a code
                with socket(server, server.url) as opened:
                    assert close_code(opened)[0] == 4401
                continue
            origin = "https://elsewhere.test" if number % 3 == 1 else None
            with pytest.raises(InvalidStatus):
                socket(server, origin, Cookie=cookies)
        until = time.monotonic() + 10
        while any(abs(a - b) > 2 for a, b in zip(held(), before, strict=True)):
            assert time.monotonic() < until, (held(), before)
            time.sleep(0.1)
        kept.ping().wait(5)
    client.close()


def test_sign_out_closes(server: Stack) -> None:
    someone, other = person(server, "ada"), person(server, "ada")
    with page_socket(someone) as opened, page_socket(other) as others:
        opened.recv(timeout=5)
        someone.sign_out()
        code, took = close_code(opened)
        assert code == 4401 and took < 3 * CLOSED_WITHIN_S
        others.recv(timeout=5)
        others.ping().wait(5)  # another browser of the same person stays


def test_a_disabled_person_is_out_by_every_way(server: Stack) -> None:
    someone = person(server, "bob")
    page = page_script(someone)
    made = token(page, "submit")
    script = Script(server, Authorization=f"Bearer {made['token']}")
    with (
        page_socket(someone) as by_cookie,
        socket(server, None, Authorization=f"Bearer {made['token']}") as by_token,
    ):
        run_in(
            server,
            "from playground.accounts.models import User; "
            "User.objects.filter(username='bob').update(is_active=False)",
        )
        assert close_code(by_cookie)[0] == close_code(by_token)[0] == 4401
    assert page.get("/api/v1/jobs").status == script.get("/api/v1/jobs").status == 401


def test_a_revoked_token_closes_sockets_and_streams(server: Stack) -> None:
    page = page_script(person(server, "ada"))
    made = token(page, "submit")
    script = Script(server, Authorization=f"Bearer {made['token']}")
    job = script.submit("pipe.train", steps=3000, wait_ms=100)
    import http.client

    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=3 * CLOSED_WITHIN_S)
    stream.request(
        "GET",
        f"/api/v1/jobs/{job['id']}/events",
        headers={**script.always, "Accept": "text/event-stream"},
    )
    answer = stream.getresponse()
    assert answer.status == 200
    with socket(server, None, Authorization=f"Bearer {made['token']}") as opened:
        opened.recv(timeout=5)
        assert page.request("DELETE", f"/api/v1/tokens/{made['id']}").status == 204
        assert close_code(opened)[0] == 4401
    started = time.monotonic()
    while answer.read1(65536):
        assert time.monotonic() - started < 3 * CLOSED_WITHIN_S
    stream.close()
    page.post(f"/api/v1/jobs/{job['id']}/cancel")


def test_leaving_a_class_closes_and_one_may_come_back(server: Stack) -> None:
    someone = person(server, "fay")
    run_in(
        server,
        "from playground.accounts.models import User; "
        "from playground.classroom.models import Class; "
        "Class.objects.create(name='5b').members.add(User.objects.get(username='fay'))",
    )
    with page_socket(someone) as opened:
        opened.recv(timeout=5)
        run_in(
            server,
            "from playground.classroom.models import Membership; "
            "Membership.objects.filter(user__username='fay').delete()",
        )
        assert close_code(opened)[0] == 4403
    with page_socket(someone) as again:
        assert '"welcome"' in str(again.recv(timeout=5))


def test_a_deleted_person_is_out(server: Stack) -> None:
    someone = person(server, "eve")
    with page_socket(someone) as opened:
        opened.recv(timeout=5)
        run_in(
            server,
            "from playground.accounts.models import User; "
            "User.objects.filter(username='eve').delete()",
        )
        assert close_code(opened)[0] == 4401
