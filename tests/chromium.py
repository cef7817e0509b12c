"""Which Chromium the tests drive, and how."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# No network of its own: look-ups and updates fail noisily on a closed machine and slow every start.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--disable-gpu",
)


def executable() -> str | None:
    """`CHROMIUM`, then an installed Chrome or Chromium; None leaves it to Playwright's own."""
    if named := os.environ.get("CHROMIUM"):
        if not Path(named).exists():
            raise RuntimeError(f"CHROMIUM is {named}, which does not exist.")
        return named
    for name in NAMES:
        if found := shutil.which(name):
            return found
    return next((path for path in MAC if Path(path).exists()), None)


def launch_options() -> dict[str, Any]:
    """Keyword arguments for Playwright's `chromium.launch`."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    options: dict[str, Any] = {"args": [*QUIET, *(["--no-sandbox"] if root else [])]}
    if path := executable():
        options["executable_path"] = path
    return options


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser. Fixtures hold it for a module at most: as long as it is open, Playwright
    keeps an event loop running in this thread, and no asyncio test can run beside it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        yield browser
        browser.close()
