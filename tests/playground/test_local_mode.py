"""Who is let in: the rules one by one, and a few of them through the real server."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from playground import paths
from playground.local_mode import LocalMode, refusal
from tests.playground.client import Client

HOME = "127.0.0.1:8000"


@pytest.fixture(autouse=True)
def port(settings: Any) -> None:
    settings.PORT = 8000
    settings.LOCAL_TOKEN = False


def check(
    method: str = "GET", *, type_: str = "http", server: Any = ("127.0.0.1", 8000), **headers: Any
) -> str | None:
    found = {"host": [HOME]}
    for name, value in headers.items():
        if value is None:
            found.pop(name)
        else:
            found[name.replace("_", "-")] = value if isinstance(value, list) else [value]
    return refusal({"type": type_, "method": method, "server": server}, found)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_our_hosts(host: str) -> None:
    assert check(host=host) is None
    assert check(host=host, origin=f"http://{host}") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8000",
        "127.0.0.1",
        "127.0.0.1:9000",
        "localhost.evil.example:8000",
        "127.0.0.1:8000.evil.example",
        "",
        None,
        ["127.0.0.1:8000", "evil.example"],
    ],
)
def test_other_hosts(host: Any) -> None:
    """A name that resolves to loopback (DNS rebinding) is refused by its name."""
    assert check(host=host) == "foreign_host"


@pytest.mark.parametrize("server", [("192.168.1.5", 8000), ("0.0.0.0", 8000), ("fd00::1", 8000)])
def test_a_connection_from_outside(server: tuple[str, int]) -> None:
    assert check(server=server) == "foreign_host"


@pytest.mark.parametrize("server", [("::1", 8000), ("/run/web.sock", None), None])
def test_a_connection_from_inside(server: Any) -> None:
    assert check(server=server) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:8000",
        "http://127.0.0.1:9000",
        "http://127.0.0.1:8000/",
        ["http://127.0.0.1:8000", "http://evil.example"],
    ],
)
def test_foreign_origins(origin: Any) -> None:
    assert check(origin=origin) == "foreign_origin"
    assert check(type_="websocket", origin=origin) == "foreign_origin"


@pytest.mark.parametrize(
    ("site", "method", "mode", "dest", "allowed"),
    [
        ("same-origin", "POST", "cors", "empty", True),
        ("none", "GET", "navigate", "document", True),
        ("cross-site", "GET", "navigate", "document", True),  # a plain link to a page
        ("cross-site", "GET", "navigate", "iframe", False),
        ("cross-site", "POST", "navigate", "document", False),  # a form of another site
        ("cross-site", "GET", "no-cors", "image", False),
        ("cross-site", "GET", "cors", "empty", False),
        ("cross-site", "GET", "no-cors", "script", False),
        ("same-site", "GET", "cors", "empty", False),  # another port of this machine
        ("same-site", "GET", "navigate", "document", True),
        ("nonsense", "GET", "cors", "empty", False),
    ],
)
def test_what_the_browser_says_of_the_site(
    site: str, method: str, mode: str, dest: str, allowed: bool
) -> None:
    code = check(
        method,
        sec_fetch_site=site,
        sec_fetch_mode=mode,
        sec_fetch_dest=dest,
        content_type="application/json",
    )
    assert code == (None if allowed else "foreign_origin")


def test_a_socket_is_never_a_visit() -> None:
    said = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert check(type_="websocket", sec_fetch_site="cross-site", **said) == "foreign_origin"
    assert check(type_="websocket", sec_fetch_site="same-origin") is None


@pytest.mark.parametrize("name", ["forwarded", "x_forwarded_for", "x_forwarded_host"])
def test_forwarded_requests(name: str) -> None:
    assert check(**{name: "1.2.3.4"}) == "forwarded"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        ["text/plain", "application/json"],
    ],
)
def test_writes_that_are_not_json(method: str, kind: Any) -> None:
    given = {"content_length": "2"} if kind is None else {"content_type": kind}
    assert check(method, **given) == "not_json"
    assert check(method, content_type="application/json; charset=utf-8") is None


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_a_delete_without_a_body_needs_no_type(method: str) -> None:
    allowed = None if method == "DELETE" else "not_json"
    assert check(method) == allowed
    assert check(method, content_length="0") == allowed
    assert check(method, content_length="1") == "not_json"
    assert check(method, content_length=["0", "1"]) == "not_json"
    assert check(method, transfer_encoding="chunked") == "not_json"


def test_a_delete_of_another_site_is_refused() -> None:
    assert check("DELETE", origin="http://evil.example") == "foreign_origin"
    assert check("DELETE", origin="null") == "foreign_origin"
    assert check("DELETE", sec_fetch_site="cross-site") == "foreign_origin"
    assert check("DELETE", sec_fetch_site="same-site") == "foreign_origin"
    assert check("OPTIONS", origin="http://evil.example") == "foreign_origin"  # its preflight
    assert check("DELETE", origin="http://127.0.0.1:8000", sec_fetch_site="same-origin") is None


# -- the token ---------------------------------------------------------------------------------


async def ask(scope: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Through the wrapper; 200 means that it let the request pass."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    base = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "server": ("127.0.0.1", 8000),
    }
    headers = [(b"host", HOME.encode()), *scope.pop("headers", [])]
    await LocalMode(app)({**base, **scope, "headers": headers}, receive, send)
    names = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], names, sent[1]["body"]


async def test_with_a_token_only_those_who_have_it(settings: Any, tmp_path: Any) -> None:
    settings.LOCAL_TOKEN, settings.LOCAL_TOKEN_FILE = True, tmp_path / "token"
    token = paths.secret(settings.LOCAL_TOKEN_FILE)
    status, _, body = await ask({"headers": [(b"accept-language", b"zh-CN")]})
    assert (status, json.loads(body)["code"]) == (401, "token_needed")
    assert json.loads(body)["title"] == "需要令牌"

    query = f"token={token}&run=a%20b".encode()
    status, headers, _ = await ask({"path": "/labs/x", "query_string": query})
    assert (status, headers["location"]) == (303, "/labs/x?run=a+b")
    cookie = headers["set-cookie"].split(";")[0].encode()
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]

    assert (await ask({"headers": [(b"cookie", b"a=b; " + cookie)]}))[0] == 200
    bearer = f"Bearer {token}".encode()
    assert (await ask({"headers": [(b"authorization", bearer)]}))[0] == 200
    assert (await ask({"query_string": b"token=wrong"}))[0] == 401
    assert (await ask({"headers": [(b"authorization", b"Bearer wrong")]}))[0] == 401
    assert (await ask({"path": "/healthz"}))[0] == 200


async def test_the_way_in_never_leads_elsewhere(settings: Any, tmp_path: Any) -> None:
    settings.LOCAL_TOKEN, settings.LOCAL_TOKEN_FILE = True, tmp_path / "token"
    token = paths.secret(settings.LOCAL_TOKEN_FILE)
    scope = {
        "path": "//evil.example/x",
        "raw_path": b"//evil.example/x",
        "query_string": f"token={token}".encode(),
    }
    assert (await ask(scope))[1]["location"] == "/evil.example/x"


# -- through the real server -------------------------------------------------------------------


def test_every_door_has_the_rules(client: Client) -> None:
    port = client.stack.port
    for path in ("/", "/api/v1/kinds", "/static/css/base.css", "/healthz", "/labs/transformer"):
        answer = client.get(path, Host="evil.example")
        assert (answer.status, answer.json["code"]) == (403, "foreign_host"), path
        answer = client.get(path, X_Forwarded_For="1.2.3.4")
        assert (answer.status, answer.json["code"]) == (403, "forwarded"), path
    answer = client.post("/api/v1/jobs", {"kind": "pipe.echo"}, Origin="http://evil.example")
    assert (answer.status, answer.json["code"]) == (403, "foreign_origin")
    job = client.post("/api/v1/jobs", {"kind": "pipe.echo"}, Origin=f"http://localhost:{port}")
    assert job.status == 202
    client.until(job.json["id"])


def test_a_script_of_another_site_gets_nothing(client: Client) -> None:
    answer = client.get(
        "/api/v1/jobs",
        Sec_Fetch_Site="cross-site",
        Sec_Fetch_Mode="no-cors",
        Sec_Fetch_Dest="script",
    )
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_no_host_at_all(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.stack.port, timeout=5)
    connection.putrequest("GET", "/", skip_host=True)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status in (400, 403)
    connection.close()
