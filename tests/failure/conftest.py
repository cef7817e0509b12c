from __future__ import annotations

import pytest

from tests.playground.client import Client
from tests.stack import Stack


@pytest.fixture
def client(stack: Stack) -> Client:
    return Client(stack)
