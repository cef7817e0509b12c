from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.playground.web.browser import plain_settings


@pytest.fixture
def plain_static() -> Iterator[None]:
    """Pages render without collectstatic."""
    with plain_settings():
        yield
