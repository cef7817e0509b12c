"""A headless Chromium, and pages that fail a test on any error the page meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from tests.chromium import chromium
from tests.stack import Stack

CSP_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@dataclass
class Watch:
    """What went wrong on a page while a test looked at it."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def heard(self, message: ConsoleMessage) -> None:
        # A refused form (422) is an answer like any other; Chromium logs it all the same.
        if message.type == "error" and "status of 422" not in message.text:
            self.errors.append(message.text)

    def check(self) -> None:
        """No script error, no error in the console, nothing that the security policy refused."""
        assert self.errors == []
        assert self.page.evaluate("window.violations ?? []") == []


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, stack: Stack) -> Iterator[OpenPage]:
    """Opens a path of the running playground, waits until its script is ready, watches errors."""
    contexts: list[Any] = []
    watches: list[Watch] = []

    def opened(
        path: str, *, width: int = 1440, height: int = 900, script: bool = True, **options: Any
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.add_init_script(CSP_WATCH)
        contexts.append(context)
        page = context.new_page()
        watch = Watch(page)
        watches.append(watch)
        page.on("pageerror", lambda error: watch.errors.append(str(error)))
        page.on("console", watch.heard)
        page.goto(stack.url + path)
        if script:  # a page without one of its own is ready when it is loaded
            page.wait_for_function("() => document.documentElement.dataset.ready === 'true'")
        return page

    yield opened
    for watch in watches:
        watch.check()
    for context in contexts:
        context.close()
