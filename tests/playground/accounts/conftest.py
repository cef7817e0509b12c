"""A playground in server mode, with a few people."""

from __future__ import annotations

import http.cookiejar
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest

from tests.playground.client import Answer, Client
from tests.stack import ROOT, Stack

PASSWORD = "a-good-long-one"
METRICS_TOKEN = "for-the-scraper-0123456789"
SECRET = "only-for-this-test-0123456789-abcdefghijklmnopqrst"


class Person:
    """Somebody with a browser: cookies, forms, and our own Origin on every write."""

    def __init__(self, stack: Stack, name: str) -> None:
        self.stack, self.name = stack, name
        self.jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    @property
    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)

    def get(self, path: str) -> tuple[int, str, str]:
        """(status, address in the end, text)."""
        return self._open(urllib.request.Request(f"{self.stack.url}{path}"))

    def post(self, path: str, **fields: str) -> tuple[int, str, str]:
        _, _, page = self.get("/accounts/sign-in" if path == "/accounts/sign-out" else path)
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        if found is None:  # signed in already: any page with a form has one
            found = re.search(
                r'name="csrfmiddlewaretoken" value="([^"]+)"', self.get("/accounts/tokens")[2]
            )
        assert found is not None
        data = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": found[1]}).encode()
        headers = {"Origin": self.stack.url}
        return self._open(urllib.request.Request(f"{self.stack.url}{path}", data, headers))

    def _open(self, request: urllib.request.Request) -> tuple[int, str, str]:
        try:
            with self._opener.open(request, timeout=30) as answer:
                return answer.status, answer.url, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.url, error.read().decode()

    def sign_in(self, password: str = PASSWORD, **more: str) -> tuple[int, str, str]:
        return self.post("/accounts/sign-in", username=self.name, password=password, **more)

    def sign_out(self) -> None:
        assert self.post("/accounts/sign-out")[0] == 200


class Script(Client):
    """A client with a token in every request, or with whatever `Authorization` or `Cookie`."""

    def __init__(self, stack: Stack, **always: str) -> None:
        super().__init__(stack)
        self.always = always

    def request(self, method: str, path: str, *args: object, **headers: object) -> Answer:
        return super().request(method, path, *args, **{**self.always, **headers})  # type: ignore[arg-type]


def manage(stack: Stack, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=stack.env,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def run_in(stack: Stack, code: str) -> str:
    """Runs lines of Python with this stack's Django."""
    return manage(stack, "shell", "--verbosity", "0", "-c", code)


@pytest.fixture(scope="package")
def server() -> Iterator[Stack]:
    running = Stack(
        SERVER_MODE="1",
        SECRET_KEY=SECRET,
        ALLOWED_HOSTS="127.0.0.1",
        METRICS_TOKEN=METRICS_TOKEN,
        RATE_SUBMIT="100000",
        RATE_READ="1000000",
    )
    try:
        running.start()
        for name in ("ada", "bob", "eve"):
            manage(running, "add_user", name, "--password", PASSWORD)
        manage(running, "add_user", "staff", "--password", PASSWORD, "--staff")
        yield running
    finally:
        running.stop()


@pytest.fixture
def ada(server: Stack) -> Person:
    person = Person(server, "ada")
    assert person.sign_in()[0] == 200
    return person


def page_script(person: Person) -> Script:
    """What a page of ours asks with: its cookies, from its own origin."""
    return Script(person.stack, Cookie=person.cookies, Origin=person.stack.url)


@pytest.fixture
def ada_page(ada: Person) -> Script:
    return page_script(ada)


@pytest.fixture
def bob_page(server: Stack) -> Script:
    person = Person(server, "bob")
    assert person.sign_in()[0] == 200
    return page_script(person)
