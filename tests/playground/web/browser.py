"""A Chromium page whose requests are answered in this process: no server, but real views."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from django.contrib.staticfiles import finders
from django.test import Client, override_settings
from playwright.sync_api import Page, Route

from compute.core import kinds
from playground.web import messages, modules

ORIGIN = "http://localhost:8000"
PLAIN = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
CARRIED = ("content-security-policy", "content-type", "cache-control")


@contextmanager
def plain_settings(**more: Any) -> Iterator[None]:
    """Static addresses without hashes, so that pages render without collectstatic."""
    with (
        TemporaryDirectory() as folder,
        override_settings(STORAGES=PLAIN, STATIC_ROOT=folder, **more),
    ):
        _forget()
        yield
    _forget()


def _forget() -> None:
    for cached in (modules._import_map, modules._preloads, messages.script, messages.digest):
        cached.cache_clear()


def answer(route: Route) -> None:
    """Answers a request of the page from views, static files and the kinds' schemas."""
    address = urlsplit(route.request.url)
    if address.path.startswith("/static/"):
        file = finders.find(address.path.removeprefix("/static/"))
        if not file:
            route.fulfill(status=404)
            return
        kind = mimetypes.guess_type(address.path)[0] or "application/octet-stream"
        route.fulfill(body=Path(file).read_bytes(), content_type=kind)
        return
    if address.path.startswith("/api/v1/kinds/"):
        route.fulfill(json=kinds.json_schema(kinds.get(address.path.rpartition("/")[2])))
        return
    if address.path == "/api/v1/uploads":
        route.fulfill(json={"items": [], "next": None, "prev": None})
        return
    response = Client().get(f"{address.path}?{address.query}")
    headers = {name: response.headers[name] for name in CARRIED if name in response.headers}
    cookie = response.cookies.output(header="").strip()
    if cookie:
        headers["set-cookie"] = cookie
    route.fulfill(status=response.status_code, headers=headers, body=response.content)


@contextmanager
def page_of(browser: Any, **options: Any) -> Iterator[Page]:
    """A page in a context of its own. Leaving fails on script errors and policy violations."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, **options)
    page: Page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"{error}"))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.route(f"{ORIGIN}/**", answer)
    yield page
    context.close()
    assert wrong == [], wrong
