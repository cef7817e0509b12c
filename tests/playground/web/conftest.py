from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playground.web import catalogues, messages, modules
from tests.playground.web.browser import PLAIN


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """The catalogues as they are in the tree now, not as they were compiled last."""
    catalogues.compile_all()


@pytest.fixture
def plain_static(settings: Any, tmp_path: Path) -> Iterator[None]:
    """Static addresses without hashes, so that pages render without collectstatic."""
    settings.STORAGES = PLAIN
    settings.STATIC_ROOT = tmp_path
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cached in (modules._import_map, modules._preloads, messages.script, messages.digest):
        cached.cache_clear()
