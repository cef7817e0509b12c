from __future__ import annotations

from typing import Any

import pytest

from playground.accounts.models import User
from tests.playground.client import Client
from tests.stack import Stack


@pytest.fixture
def client(stack: Stack) -> Client:
    return Client(stack)


@pytest.fixture(scope="module")
def made(stack: Stack) -> dict[str, Any]:
    """A finished run of pipe.train with its files."""
    job = Client(stack).submit("pipe.train", wait=10, steps=1, wait_ms=0)
    assert job["state"] == "succeeded"
    return job


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create(username="alice")
