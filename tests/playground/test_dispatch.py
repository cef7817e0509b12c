"""Who starts next, and the loop that starts it. Real rows, real Redis; no worker."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from playground.accounts.models import User
from playground.classroom.models import Class
from playground.jobs import (
    controls,
    dispatch,
)
from playground.jobs.models import Job, Turn
from tests.playground.rows import CPU, make
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db


# -- who starts next ---------------------------------------------------------------------------


def test_no_more_than_the_free_slots_are_handed_out(pipe: RedisServer, owner: User) -> None:
    make(owner, state="running", lease_worker="w", lease_expires_at=timezone.now(), device="cpu")
    make(owner, state="paused")  # parked: holds no slot
    jobs = [make(owner) for _ in range(3)]
    assert [item.id for item in dispatch.hand_out("training", CPU * 2)] == [jobs[0].pk]
    assert dispatch.hand_out("training", CPU * 2) == []
    assert [item.id for item in dispatch.hand_out("training", CPU * 4)] == [j.pk for j in jobs[1:]]
    assert dispatch.hand_out("interactive", CPU * 9) == []


def test_each_slot_has_its_device_until_it_is_free_again(pipe: RedisServer, owner: User) -> None:
    jobs = [make(owner) for _ in range(4)]
    devices = ["cuda:0", "cuda:1"]
    given = dispatch.hand_out("training", devices)
    assert [(start.id, start.device) for start in given] == [
        (jobs[0].pk, "cuda:0"),
        (jobs[1].pk, "cuda:1"),
    ]
    assert dispatch.hand_out("training", devices) == []
    Job.objects.filter(pk=jobs[0].pk).update(state="succeeded")
    assert [start.device for start in dispatch.hand_out("training", devices)] == ["cuda:0"]
    assert Job.objects.get(pk=jobs[2].pk).device == "cuda:0"


def test_a_device_that_is_no_longer_listed_takes_up_a_slot_while_it_is_held(
    pipe: RedisServer, owner: User
) -> None:
    assert dispatch.free_devices(["cuda:1", "cuda:2"], ["cuda:0"]) == ["cuda:1"]
    assert dispatch.free_devices(["cpu"], ["cuda:0", "cuda:1"]) == []


def start_all(order: list[int], *, slots: int = 1) -> None:
    """Hands out until nothing waits, one job ending after another; collects the owners."""
    while given := dispatch.hand_out("training", CPU * slots):
        for start in given:
            order.append(Job.objects.get(pk=start.id).owner_id)
            Job.objects.filter(pk=start.id).update(state="succeeded")


def test_thirty_students_with_five_jobs_each_start_in_turns(pipe: RedisServer) -> None:
    """While all have work, the starts of any two differ by at most 1. So Jain's index of the
    starts (Jain, Chiu and Hawe 1984) is 1 after each round and at least 0.95 from the second round
    on. Within the first, where some have one start and some two, no order reaches that."""
    rng = random.Random(30)
    students = [User.objects.create(username=f"s{n}") for n in range(30)]
    line = [student for student in students for _ in range(5)]
    rng.shuffle(line)
    for student in line:
        make(student)
    order: list[int] = []
    start_all(order)
    assert len(order) == 150
    starts: Counter[int] = Counter()
    for number, owner_id in enumerate(order, 1):
        starts[owner_id] += 1
        counts = [starts[student.pk] for student in students]
        assert max(counts) - min(counts) <= 1
        jain = sum(counts) ** 2 / (30 * sum(count**2 for count in counts))
        if number % 30 == 0:
            assert jain == 1
        if number >= 60:
            assert jain >= 0.95


def test_one_student_with_fifty_jobs_hides_nobody(pipe: RedisServer, owner: User) -> None:
    for _ in range(50):
        make(owner)
    dispatch.hand_out("training", CPU)
    bob = User.objects.create(username="bob")
    job = make(bob)
    order: list[str] = []
    for _ in range(2):
        Job.objects.filter(dispatched_at__isnull=False).update(state="succeeded")
        order += [start.id for start in dispatch.hand_out("training", CPU)]
    assert job.pk in order


def test_classes_share_the_slots_by_weight(pipe: RedisServer) -> None:
    light, heavy = (Class.objects.create(name=f"w{w}", weight=w) for w in (1, 3))
    students = [User.objects.create(username=f"s{n}") for n in range(4)]
    for number, student in enumerate(students):
        for _ in range(12):
            make(student, group=light if number % 2 else heavy)
    order: list[int | None] = []
    while len(order) < 24:
        given = dispatch.hand_out("training", CPU)
        order += Job.objects.filter(pk=given[0].id).values_list("group", flat=True)
        Job.objects.filter(pk=given[0].id).update(state="succeeded")
    for first in range(0, 24, 4):
        assert Counter(order[first : first + 4]) == {light.pk: 1, heavy.pk: 3}


def test_turns_outlive_the_dispatcher_and_end_with_the_line(pipe: RedisServer, owner: User) -> None:
    bob = User.objects.create(username="bob")
    for student in (owner, owner, bob):
        make(student)
    order: list[int] = []
    dispatch.hand_out("training", CPU)
    seats = Turn.objects.filter(queue="training").exclude(owner=0).order_by("position")
    assert list(seats.values_list("owner", flat=True)) == [bob.pk, owner.pk]
    Job.objects.filter(dispatched_at__isnull=False).update(state="succeeded")
    start_all(order)
    assert order == [bob.pk, owner.pk]
    assert not Turn.objects.filter(group__gte=0).exists()


# -- the loop itself ---------------------------------------------------------------------------


def test_controls_arrive_in_order(pipe: RedisServer) -> None:
    got: list[tuple[str, int, dict[str, Any]]] = []
    listener = controls.Listener("w1", lambda *item: got.append(item))
    controls.send(worker="w1", job_id="a", attempt=1, control={"action": "pause"})
    listener.start()
    controls.send(worker="w1", job_id="a", attempt=1, control={"action": "resume"})
    until = time.monotonic() + 5
    while len(got) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    listener.stop()
    assert got == [("a", 1, {"action": "pause"}), ("a", 1, {"action": "resume"})]


def test_one_dispatcher_holds_the_lock_and_gives_it_back(pipe: RedisServer) -> None:
    stopping = threading.Event()
    first = dispatch.Dispatcher(lambda *_: None, stopping.is_set)
    second = dispatch.Dispatcher(lambda *_: None, stopping.is_set)
    assert first._hold()
    assert not second._hold()
    assert first._hold()
    first._release()
    assert second._hold()
    for one in (first, second):
        one._client.close()
