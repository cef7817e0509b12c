"""What `/healthz` says when Redis is half there."""

from __future__ import annotations

import pytest

from playground import redis
from playground.jobs import health
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db


def test_each_part_by_its_sign_of_life(pipe: RedisServer) -> None:
    for part in health.PARTS[:2]:
        health.beat(part)
    found = health.report()
    assert [name for name, part in found.items() if not part["ok"]] == [health.PARTS[2]]


def test_a_socket_that_has_vanished_shows(pipe: RedisServer) -> None:
    """Connections that are open go on without it; a part that starts now would not find it."""
    for part in health.PARTS:
        health.beat(part)
    elsewhere = pipe.socket.with_suffix(".away")
    pipe.socket.rename(elsewhere)
    try:
        assert redis.shared().ping()
        found = health.report()
    finally:
        elsewhere.rename(pipe.socket)
    assert not found["redis"]["ok"] and str(pipe.socket) in found["redis"]["detail"]
    assert health.report()["redis"]["ok"]
