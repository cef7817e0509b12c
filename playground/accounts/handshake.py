"""Who stands behind a socket: found once, at its handshake."""

from __future__ import annotations

from collections.abc import Mapping
from http import cookies

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from playground.accounts.owner import Actor, current_actor


def actor_of(headers: Mapping[str, list[str]]) -> Actor:
    """By token or by session, never by the address. Raises `NotSignedIn` or `ScopeNeeded`."""
    if not settings.SERVER_MODE:
        return current_actor(None)
    request = HttpRequest()
    shown = headers.get("authorization", [])
    if shown:
        request.META["HTTP_AUTHORIZATION"] = shown[0]
    else:
        request.session = SessionStore(_session_key(headers))
        request.user = get_user(request)
    return current_actor(request)


def _session_key(headers: Mapping[str, list[str]]) -> str | None:
    for value in headers.get("cookie", []):
        try:
            jar = cookies.SimpleCookie(value)
        except cookies.CookieError:
            continue
        if settings.SESSION_COOKIE_NAME in jar:
            return jar[settings.SESSION_COOKIE_NAME].value
    return None
