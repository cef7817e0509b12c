"""Where a job stands in its queue, and how long it may take. Real rows, real Redis; no worker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from playground.accounts.models import User
from playground.jobs import (
    dispatch,
    places,
)
from playground.jobs.models import Job
from tests.playground.rows import CPU, make
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db


# -- places and estimates ------------------------------------------------------------------------


def test_the_place_is_by_turns_and_not_by_age(pipe: RedisServer, owner: User) -> None:
    mine = [make(owner) for _ in range(3)]
    theirs = make(User.objects.create(username="bob"))
    assert places.of([*mine, theirs]) == {
        mine[0].pk: 1,
        theirs.pk: 2,
        mine[1].pk: 3,
        mine[2].pk: 4,
    }
    dispatch.hand_out("training", CPU)
    found = places.of(Job.objects.all())
    assert found == {theirs.pk: 1, mine[1].pk: 2, mine[2].pk: 3}


def test_a_job_whose_time_has_not_come_has_no_place_and_is_not_started(
    pipe: RedisServer, owner: User
) -> None:
    later = make(owner, start_at=timezone.now() + timedelta(hours=1))
    assert places.place(later) is None
    assert dispatch.hand_out("training", CPU) == []
    Job.objects.update(start_at=timezone.now() - timedelta(seconds=1))
    assert [start.id for start in dispatch.hand_out("training", CPU)] == [later.pk]


def ended(owner: User, seconds: float, **values: Any) -> None:
    now = timezone.now()
    make(
        owner,
        state="succeeded",
        started_at=now - timedelta(seconds=seconds),
        ended_at=now,
        **values,
    )


def estimates(owner: User) -> list[float | None]:
    training = next(q for q in places.queues(owner_id=owner.pk) if q["name"] == "training")
    return [row["estimate_s"] for row in training["mine"]]


def test_there_is_no_estimate_without_a_history(pipe: RedisServer, owner: User) -> None:
    running(owner, progress=None)
    make(owner)
    assert estimates(owner) == [None]


def running(owner: User, **values: Any) -> Job:
    now = timezone.now()
    return make(owner, state="running", lease_worker="w", started_at=now, device="cpu", **values)


def test_the_estimate_is_what_runs_and_what_stands_before_it(
    pipe: RedisServer, owner: User
) -> None:
    """One slot. The job that runs says that 7 s are left; each before mine takes 10 s, the median
    of 1, 10 and 100."""
    for seconds in (1, 100, 10):
        ended(owner, seconds)
    running(owner, progress={"done": 3, "total": 10, "eta_s": 7.0})
    for _ in range(3):
        make(owner)
    assert estimates(owner) == [7.0, 17.0, 27.0]
    Job.objects.filter(state="running").update(state="paused")
    assert estimates(owner) == [None] * 3  # nobody knows when a pause ends


def test_a_free_slot_means_now(pipe: RedisServer, owner: User) -> None:
    make(owner)
    assert estimates(owner) == [0.0]


def test_work_spreads_over_the_slots() -> None:
    assert places.poured([0.0], 5.0) == 5.0
    assert places.poured([4.0, 0.0], 2.0) == 2.0
    assert places.poured([0.0, 4.0], 6.0) == 5.0  # 4 s on the first, then 1 s on each
    assert places.poured([3.0, 3.0, 3.0], 0.0) == 3.0
