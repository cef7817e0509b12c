"""Who starts next, and what is recovered. Real rows, real Redis; no worker."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.classroom.models import Class
from playground.jobs import (
    attempts,
    controls,
    dispatch,
    ids,
    places,
    recover,
    service,
    spool,
    states,
    stream,
)
from playground.jobs.models import Artifact, Attempt, Job, Turn
from playground.jobs.outcomes import Outcome
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return User.objects.create(username="alice")


def make(owner: User, **values: Any) -> Job:
    defaults: dict[str, Any] = {
        "kind": "pipe.train",
        "queue": "training",
        "params": {},
        "seed": 1,
        "deadline_s": 60,
    }
    return Job.objects.create(owner=owner, **{**defaults, **values})


def lost(owner: User, **values: Any) -> Job:
    """A job whose worker stopped renewing a moment ago, with two events in its log."""
    defaults: dict[str, Any] = {
        "state": "running",
        "lease_worker": "training@gone:1:x",
        "lease_expires_at": timezone.now() - timedelta(seconds=1),
    }
    job = make(owner, **{**defaults, **values})
    Attempt.objects.create(job=job, number=job.attempt, worker="x", host="elsewhere")
    entries = [
        spool.entry(job.pk, f"{job.attempt}-{n}", "metric", stream.rest_of({"step": n}))
        for n in (1, 2)
    ]
    writer = spool.Writer(job.pk, job.attempt)
    writer.append(entries)
    writer.close()
    stream.Writer(job.pk, job.attempt, redis.shared()).send(entries[:1], create=True)
    return job


# -- who starts next ---------------------------------------------------------------------------


CPU = ["cpu"]


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


# -- deadlines that come with the submission -----------------------------------------------------


def test_a_queued_job_past_its_deadline_is_aborted_in_words(pipe: RedisServer, owner: User) -> None:
    at = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    job = make(owner, cancel_at=at)
    make(owner, cancel_at=timezone.now() + timedelta(hours=1))
    assert recover.expire() == 1
    assert recover.expire() == 0
    job.refresh_from_db()
    assert (job.state, job.log_closed) == ("aborted", True)
    assert "had not started by 2026-03-01 12:30:00 UTC, the deadline that you set" in job.message
    assert "2026-03-01 12:30:00 UTC" in job.message_zh
    assert spool.read(job.pk, ids.START, 9)[-1].type == "end"


def test_a_parked_job_past_its_deadline_is_canceled(pipe: RedisServer, owner: User) -> None:
    job = make(owner, state="paused", cancel_at=timezone.now() - timedelta(seconds=1))
    assert recover.expire() == 1
    job.refresh_from_db()
    assert (job.state, job.cancel_requested_at) == ("canceled", None)
    assert "the deadline that you set" in job.message


def test_a_lost_job_past_its_deadline_is_not_tried_again(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, cancel_at=timezone.now() - timedelta(seconds=1))
    recover.reap()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("canceled", 1)


def test_a_message_that_nobody_took_is_sent_again(pipe: RedisServer, owner: User) -> None:
    job = make(owner)
    dispatch.hand_out("training", CPU)
    assert recover.unclaimed() == []
    late = timezone.now() - timedelta(seconds=recover.REPUBLISH_S + 1)
    Job.objects.update(dispatched_at=late)
    assert recover.unclaimed() == [("training", job.pk, 1)]
    assert recover.unclaimed() == []


# -- what is recovered -------------------------------------------------------------------------


def test_a_lost_worker_costs_one_retry(pipe: RedisServer, owner: User) -> None:
    job = lost(owner)
    assert recover.reap() == 1
    job.refresh_from_db()
    assert (job.state, job.attempt, job.retried) == ("queued", 2, True)
    assert (job.lease_worker, job.dispatched_at) == ("", None)
    entries = spool.read(job.pk, ids.START, 9)
    assert [e.type for e in entries] == ["metric", "metric", "state"]
    # The stream has caught up with what the lost worker had only spooled.
    found = cast("Any", redis.shared().xrange(stream.key(job.pk)))
    assert [i for i, _ in found] == [e.id for e in entries]


def test_a_second_loss_fails_it(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, attempt=2, retried=True)
    recover.reap()
    job.refresh_from_db()
    assert (job.state, job.reason, job.log_closed) == ("failed", "worker_lost", True)
    assert job.message == "The process that ran the job ended unexpectedly."
    assert job.message
    assert job.message_zh
    assert spool.read(job.pk, ids.START, 9)[-1].type == "end"
    assert cast("int", redis.shared().ttl(stream.key(job.pk))) > 0


def test_a_second_loss_names_the_checkpoint_that_is_kept(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, attempt=2, retried=True)
    for attempt, step in ((1, 10), (1, 20), (2, 30)):
        name = f"checkpoints/step-{step:06d}.safetensors"
        Artifact.objects.create(job=job, attempt=attempt, name=name, type="x/y", size=1)
    recover.reap()
    job.refresh_from_db()
    newest = "checkpoints/step-000030.safetensors"
    assert job.message.endswith(f"What it saved last is kept: {newest}.")
    assert job.message_zh.endswith(f"它最后保存的检查点还在：{newest}。")
    assert spool.read(job.pk, ids.START, 9)[-1].line.count(newest) == 2


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, cancel_requested_at=timezone.now())
    recover.reap()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("canceled", 1)


def test_a_paused_job_is_lost_like_a_running_one(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, state="paused")
    recover.reap()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 2)


def test_a_living_lease_is_left_alone(pipe: RedisServer, owner: User) -> None:
    lost(owner, lease_expires_at=timezone.now() + timedelta(seconds=5))
    make(owner, state="paused", lease_expires_at=None)
    assert recover.reap() == 0


def test_a_missing_end_is_added_once(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, state="succeeded", result={"loss": 1.5}, lease_expires_at=None)
    Job.objects.update(ended_at=timezone.now() - timedelta(seconds=recover.RECONCILE_S + 1))
    assert recover.reconcile() == 1
    assert recover.reconcile() == 0
    entries = spool.read(job.pk, ids.START, 9)
    assert [e.type for e in entries] == ["metric", "metric", "end"]
    assert '"result":{"loss":1.5}' in entries[-1].line
    service.close_log(job)
    assert len(spool.read(job.pk, ids.START, 9)) == 3


# -- claims and leases -------------------------------------------------------------------------


def test_a_message_that_comes_twice_starts_one_attempt(pipe: RedisServer, owner: User) -> None:
    job = make(owner)
    leases = [attempts.claim(job_id=job.pk, attempt=1, worker=f"w{n}") for n in range(5)]
    assert [lease is not None for lease in leases] == [True, False, False, False, False]
    assert Attempt.objects.count() == 1
    assert attempts.claim(job_id=ids.new_job_id(), attempt=1, worker="w") is None


def test_every_write_of_a_stale_attempt_is_refused(pipe: RedisServer, owner: User) -> None:
    job = make(owner)
    lease = attempts.claim(job_id=job.pk, attempt=1, worker="w1")
    assert lease is not None
    lease.move(states.RUNNING)
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    recover.reap()
    before = Job.objects.values().get()
    made = attempts.Made("a.bin", "x/y", 1, "0" * 64)
    for write in (
        lease.renew,
        lambda: lease.move(states.PAUSED),
        lambda: lease.register([made]),
        lambda: lease.finish(Outcome("succeeded")),
        lease.park,
        lease.requeue,
    ):
        with pytest.raises(attempts.LeaseLost):
            write()
        lease.state = states.RUNNING
    assert Job.objects.values().get() == before
    assert not job.artifacts.exists()


def test_a_stale_worker_of_the_same_attempt_is_refused(pipe: RedisServer, owner: User) -> None:
    job = make(owner)
    lease = attempts.claim(job_id=job.pk, attempt=1, worker="w1")
    assert lease is not None
    Job.objects.update(lease_worker="w2")
    with pytest.raises(attempts.LeaseLost):
        lease.renew()


def test_a_second_attempt_ends_what_the_first_left_running(pipe: RedisServer, owner: User) -> None:
    import subprocess

    import psutil

    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        job = make(owner, attempt=2)
        started = psutil.Process(left.pid).create_time()
        rows = {"job": job, "worker": "x", "host": attempts.HOST}
        Attempt.objects.create(number=1, pid=left.pid, pid_started=started, **rows)
        other_job = make(owner, attempt=2)
        rows["job"] = other_job  # its pid has been given to another process since
        Attempt.objects.create(number=1, pid=other.pid, pid_started=1.0, **rows)
        assert attempts.claim(job_id=job.pk, attempt=2, worker="w")
        assert attempts.claim(job_id=other_job.pk, attempt=2, worker="w")
        assert left.wait(5) == -9
        assert other.poll() is None
    finally:
        left.kill()
        other.kill()
        left.wait()
        other.wait()


# -- cancel and delete by row ------------------------------------------------------------------


def test_cancelling_a_queued_job_aborts_it_and_closes_its_log(
    pipe: RedisServer, owner: User
) -> None:
    job = make(owner)
    service.cancel(job=job)
    assert (job.state, job.log_closed) == ("aborted", True)
    entries = spool.read(job.pk, ids.START, 9)
    assert [(e.id, e.type) for e in entries] == [("1-1", "end")]
    service.cancel(job=job)
    assert len(spool.read(job.pk, ids.START, 9)) == 1


def test_a_parked_job_is_cancelled_by_its_row(pipe: RedisServer, owner: User) -> None:
    job = make(owner, state="paused")
    assert service.cancel(job=job).state == "canceled"


def test_a_parked_job_takes_nothing_but_resume(pipe: RedisServer, owner: User) -> None:
    job = make(owner, kind="pipe.train", state="paused", params={"steps": 5})
    with pytest.raises(states.IllegalMove, match="paused without a slot"):
        service._unpark(job=job, message={"action": "step"})
    service._unpark(job=job, message={"action": "resume"})
    assert (job.state, job.attempt, job.retried) == ("queued", 2, False)


def test_only_an_ended_job_can_be_deleted(pipe: RedisServer, owner: User) -> None:
    job = make(owner)
    with pytest.raises(service.NotEnded):
        service.delete(job=job)
    service.cancel(job=job)
    service.delete(job=job)
    assert not Job.objects.exists()
    assert not spool.folder(job.pk).exists()
    assert not redis.shared().exists(stream.key(job.pk))


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
