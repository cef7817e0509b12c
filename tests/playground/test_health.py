"""What `/healthz` says: signs of life, no-op jobs, queues that stand still."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.jobs import health, states
from playground.jobs.models import Attempt, Job
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


def test_trouble_shows_and_a_no_op_is_remembered(pipe: RedisServer) -> None:
    for part in health.PARTS:
        health.beat(part, how="done" if "." in part else "")
    assert all(part["ok"] for part in health.report().values())
    health.beat("worker.training", trouble=health.WEDGED, how="wedged")
    found = health.report()["worker.training"]
    assert (found["ok"], found["detail"], found["runners"]) == (False, health.WEDGED, "wedged")
    assert 0 <= found["no_op_age_s"] < 5


def test_a_queue_that_does_not_move(pipe: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same job is the oldest all along, a slot is free, and nothing has started meanwhile."""
    monkeypatch.setattr(health, "STUCK_S", 0.2)
    owner = User.objects.create(username="a")
    common = {"owner": owner, "queue": "training", "params": {}, "seed": 1, "deadline_s": 9}
    later = timezone.now() + timedelta(hours=1)
    Job.objects.create(kind="x.y", start_at=later, **common)
    assert not health.stuck("training")
    job = Job.objects.create(kind="x.y", **common)
    assert not health.stuck("training")  # seen for the first time
    time.sleep(0.3)
    assert health.stuck("training")
    assert not health.stuck("interactive")
    attempt = Attempt.objects.create(job=job, number=1, worker="w", host="h")
    assert not health.stuck("training")  # something has just started
    Attempt.objects.filter(pk=attempt.pk).update(started_at=timezone.now() - timedelta(minutes=1))
    assert health.stuck("training")
    running = {"state": states.RUNNING, "lease_worker": "w", "lease_expires_at": later}
    for _ in range(settings.SLOTS["training"]):
        Job.objects.create(kind="x.y", **running, **common)
    assert not health.stuck("training")  # it waits for a slot, as it should
