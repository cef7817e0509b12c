"""The outermost rule of server mode: which site a request comes from.

Browsers add our cookie to whatever any site asks of us. So a write, and a socket's handshake, must
come from a page of ours: by `Origin`, and by `Sec-Fetch-Site` where the browser sends it. API
writes must be JSON besides, which no form of another site can send without asking first. A socket
without Origin comes from no browser, and shows a token instead. Who may do what is decided further
in, by the account.
"""

from __future__ import annotations

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from playground.local_mode import (
    SAFE,
    App,
    Receive,
    Scope,
    Send,
    body_refusal,
    fetch_site_ok,
    headers_of,
    refuse,
)

API = "/api/"


class ServerMode:
    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = headers_of(scope)
            code = refusal(scope, headers)
            if code is not None:
                await refuse(scope, headers, send, code)
                return
        await self.app(scope, receive, send)


def refusal(scope: Scope, headers: dict[str, list[str]]) -> str | None:
    """The code of the problem with this request, None when it may pass."""
    socket = scope["type"] == "websocket"
    if not socket and scope["method"] in SAFE:
        return None
    hosts = headers.get("host", [])
    origins = headers.get("origin", [])
    if len(hosts) != 1 or not _is_ours(hosts[0]):
        return "foreign_host"
    # Behind a proxy that ends TLS a page without TLS is no page of ours, whatever its host.
    scheme = "https" if settings.BEHIND_PROXY else "http"
    if any(origin != f"{scheme}://{hosts[0]}" for origin in origins):
        return "foreign_origin"
    if socket:
        if not origins and not headers.get("authorization"):
            return "not_signed_in"
        return None if fetch_site_ok(headers, "GET", socket=True) else "foreign_origin"
    if not fetch_site_ok(headers, scope["method"]):
        return "foreign_origin"
    return body_refusal(scope, headers) if scope["path"].startswith(API) else None


def _is_ours(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
