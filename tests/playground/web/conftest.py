from __future__ import annotations

from collections.abc import Iterator

import pytest

from playground.web import catalogues
from tests.playground.web.browser import plain_settings


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """The catalogues as they are in the tree now, not as they were compiled last."""
    catalogues.compile_all()


@pytest.fixture
def plain_static() -> Iterator[None]:
    """Pages render without collectstatic."""
    with plain_settings():
        yield
