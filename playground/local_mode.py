"""Local mode: one owner, no sign-in, so nobody else may get in. ARCHITECTURE: "Local mode".

An ASGI wrapper around everything, pages, API, files and socket, so that one set of rules holds
for all of them. The rules look at the connection and the headers only.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http import cookies
from typing import Any
from urllib.parse import parse_qs, urlencode

from django.conf import settings

from playground import paths, problems

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
COOKIE = "playground_token"
UPLOADS = "/api/v1/uploads"  # files: the one write that isn't JSON
OPEN_PATHS = frozenset({"/healthz"})  # says nothing private; the start script asks it


class LocalMode:
    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = headers_of(scope)
        code = refusal(scope, headers)
        if code is None and settings.LOCAL_TOKEN and scope["path"] not in OPEN_PATHS:
            token = paths.secret(settings.LOCAL_TOKEN_FILE)
            if scope["type"] == "http" and _token_in_address(scope, token):
                await _let_in(scope, send, token)
                return
            if not _has_token(headers, token):
                code = "token_needed"
        if code is None:
            await self.app(scope, receive, send)
        else:
            await refuse(scope, headers, send, code)


def refusal(scope: Scope, headers: dict[str, list[str]]) -> str | None:
    """The code of the problem with this request, None when it may pass."""
    if not _on_loopback(scope):
        return "foreign_host"
    hosts = _hosts()
    if headers.get("host", []) not in [[host] for host in hosts]:
        return "foreign_host"
    if any(name == "forwarded" or name.startswith("x-forwarded-") for name in headers):
        return "forwarded"
    origins = headers.get("origin", [])
    if any(origin not in [f"http://{host}" for host in hosts] for origin in origins):
        return "foreign_origin"
    if scope["type"] == "websocket":
        # Every browser sends Origin with a handshake; what sends none is no browser.
        return None if fetch_site_ok(headers, "GET", socket=True) else "foreign_origin"
    method = scope["method"]
    if not fetch_site_ok(headers, method):
        return "foreign_origin"
    return body_refusal(scope, headers)


def body_refusal(scope: Scope, headers: dict[str, list[str]]) -> str | None:
    """The code of what is wrong with the kind of a write's body."""
    method = scope["method"]
    if method in SAFE or _is_json(headers) or _is_bare_delete(method, headers):
        return None
    if method == "POST" and scope.get("path") == UPLOADS:
        # No form can send the header, and a script of another site must ask first.
        return None if headers.get("x-playground") == ["1"] else "header_needed"
    return "not_json"


def _hosts() -> list[str]:
    named = [f"{host}:{settings.PORT}" for host in settings.LOCAL_HOSTS]
    return named + list(settings.LOCAL_HOSTS) if settings.PORT == 80 else named


def _on_loopback(scope: Scope) -> bool:
    """Whether the connection came in at a loopback address, or through a unix socket."""
    server = scope.get("server")
    if not server or server[1] is None:
        return True
    try:
        return ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return server[0] in ("localhost", "testserver")


def fetch_site_ok(headers: dict[str, list[str]], method: str, *, socket: bool = False) -> bool:
    """Whether the browser calls this our own page's request, or a plain visit to the page.

    `same-site` is another port of this machine: another program, so as foreign as any.
    """
    site = headers.get("sec-fetch-site", ["none"])
    if site in (["same-origin"], ["none"]):
        return True
    visit = headers.get("sec-fetch-mode") == ["navigate"]
    on_top = headers.get("sec-fetch-dest") == ["document"]
    return method in ("GET", "HEAD") and visit and on_top and not socket


def _is_json(headers: dict[str, list[str]]) -> bool:
    kinds = headers.get("content-type", [])
    return len(kinds) == 1 and kinds[0].split(";")[0].strip().lower() == "application/json"


def _is_bare_delete(method: str, headers: dict[str, list[str]]) -> bool:
    """A DELETE with neither a body nor a type for one.

    JSON is asked for so that no form of another site can write: a form sends none, and a script
    must ask first, by a preflight that we refuse. No form sends DELETE, and a script must ask
    first for that as well (Fetch standard, "CORS-safelisted method"), so there the type adds
    nothing. Origin and Sec-Fetch-Site count as ever.
    """
    said = ("content-type", "transfer-encoding")
    empty = headers.get("content-length", ["0"]) == ["0"]
    return method == "DELETE" and empty and not any(name in headers for name in said)


def headers_of(scope: Scope) -> dict[str, list[str]]:
    """All values of each header, names in small letters."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _token_in_address(scope: Scope, token: str) -> bool:
    given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
    return scope["method"] == "GET" and hmac.compare_digest(given.encode(), token.encode())


def _has_token(headers: dict[str, list[str]], token: str) -> bool:
    given = []
    for value in headers.get("authorization", []):
        scheme, _, rest = value.partition(" ")
        if scheme.lower() == "bearer":
            given.append(rest.strip())
    for value in headers.get("cookie", []):
        try:
            jar = cookies.SimpleCookie(value)
        except cookies.CookieError:
            continue
        if COOKIE in jar:
            given.append(jar[COOKIE].value)
    return any(hmac.compare_digest(item.encode(), token.encode()) for item in given)


async def _let_in(scope: Scope, send: Send, token: str) -> None:
    """Moves the token out of the address into a cookie that no script reads."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    query.pop("token", None)
    rest = urlencode(query, doseq=True)
    # The path as the client sent it; a leading "//" would name another host.
    path = "/" + scope.get("raw_path", scope["path"].encode()).decode("latin-1").lstrip("/")
    location = f"{path}?{rest}" if rest else path
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
    sent = [
        (b"location", location.encode("latin-1")),
        (b"set-cookie", cookie.encode()),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": sent})
    await send({"type": "http.response.body", "body": b""})


async def refuse(scope: Scope, headers: dict[str, list[str]], send: Send, code: str) -> None:
    """The problem, as a response or as the answer to a handshake."""
    content = problems.body(
        code,
        lang=language_of(headers),
        instance=scope["path"],
        request_id=secrets.token_hex(8),
    )
    data = json.dumps(content, ensure_ascii=False).encode()
    sent = [
        (b"content-type", problems.CONTENT_TYPE.encode()),
        (b"content-length", str(len(data)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", content["request_id"].encode()),
    ]
    if scope["type"] == "http":
        start, rest = "http.response.start", "http.response.body"
    elif "websocket.http.response" in scope.get("extensions", {}):
        start, rest = "websocket.http.response.start", "websocket.http.response.body"
    else:
        await send({"type": "websocket.close", "code": 4403})
        return
    await send({"type": start, "status": content["status"], "headers": sent})
    await send({"type": rest, "body": data})


def language_of(headers: dict[str, list[str]]) -> str:
    """`zh-hans` or `en`, by our cookie, then by the browser's first language."""
    for value in headers.get("cookie", []):
        if f"{settings.LANGUAGE_COOKIE_NAME}=" in value:
            chosen = value.split(f"{settings.LANGUAGE_COOKIE_NAME}=")[1]
            return "zh-hans" if chosen.startswith("zh") else "en"
    accepted = headers.get("accept-language", ["en"])[0].strip().lower()
    return "zh-hans" if accepted.startswith("zh") else "en"
