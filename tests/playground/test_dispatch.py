"""Who starts next, and what is recovered. Real rows, real Redis; no worker."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.jobs import attempts, controls, dispatch, ids, service, spool, states, stream
from playground.jobs.dispatch import Waiting, fair
from playground.jobs.models import Artifact, Attempt, Job
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


def waiting(*owners: int) -> list[Waiting]:
    return [Waiting(f"job{n}", 1, owner) for n, owner in enumerate(owners)]


def test_owners_take_turns() -> None:
    chosen = fair(waiting(1, 1, 1, 1, 2, 3), {}, {}, 4)
    assert [item.owner_id for item in chosen] == [1, 2, 3, 1]


def test_who_holds_fewer_comes_first() -> None:
    chosen = fair(waiting(1, 2), {1: 2}, {}, 1)
    assert [item.owner_id for item in chosen] == [2]


def test_among_equals_the_one_whose_start_is_longest_ago() -> None:
    now = timezone.now()
    last: dict[int, Any] = {1: now, 2: now - timedelta(minutes=5)}
    chosen = fair(waiting(1, 2), {}, last, 1)
    assert [item.owner_id for item in chosen] == [2]


def test_an_owners_own_jobs_keep_their_order() -> None:
    chosen = fair(waiting(1, 1, 1), {}, {}, 3)
    assert [item.id for item in chosen] == ["job0", "job1", "job2"]


def test_starts_are_fair_at_any_prefix() -> None:
    """30 owners with 5 jobs each, one slot: Jain's index (Jain, Chiu, Hawe 1984) of the starts."""
    line = waiting(*(owner for owner in range(30) for _ in range(5)))
    order: list[int] = []
    last: dict[int, Any] = {}
    base = timezone.now()
    while line:
        chosen = fair(line, {}, last, 1)[0]
        line.remove(chosen)
        last[chosen.owner_id] = base + timedelta(seconds=len(order))
        order.append(chosen.owner_id)
    for length in range(30, 151, 30):
        starts = Counter(order[:length])
        counts = [starts[owner] for owner in range(30)]
        assert sum(counts) ** 2 / (30 * sum(c * c for c in counts)) >= 0.95


def test_no_more_than_the_free_slots_are_handed_out(pipe: RedisServer, owner: User) -> None:
    make(owner, state="running", lease_worker="w", lease_expires_at=timezone.now())
    make(owner, state="paused")  # parked: holds no slot
    jobs = [make(owner) for _ in range(3)]
    assert [item.id for item in dispatch.hand_out("training", 2)] == [jobs[0].pk]
    assert dispatch.hand_out("training", 2) == []
    assert [item.id for item in dispatch.hand_out("training", 4)] == [j.pk for j in jobs[1:]]
    assert dispatch.hand_out("interactive", 9) == []


def test_a_message_that_nobody_took_is_sent_again(pipe: RedisServer, owner: User) -> None:
    job = make(owner)
    dispatch.hand_out("training", 1)
    assert dispatch.unclaimed() == []
    late = timezone.now() - timedelta(seconds=dispatch.REPUBLISH_S + 1)
    Job.objects.update(dispatched_at=late)
    assert dispatch.unclaimed() == [("training", job.pk, 1)]
    assert dispatch.unclaimed() == []


# -- what is recovered -------------------------------------------------------------------------


def test_a_lost_worker_costs_one_retry(pipe: RedisServer, owner: User) -> None:
    job = lost(owner)
    assert dispatch.reap() == 1
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
    dispatch.reap()
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
    dispatch.reap()
    job.refresh_from_db()
    newest = "checkpoints/step-000030.safetensors"
    assert job.message.endswith(f"What it saved last is kept: {newest}.")
    assert job.message_zh.endswith(f"它最后保存的检查点还在：{newest}。")
    assert spool.read(job.pk, ids.START, 9)[-1].line.count(newest) == 2


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, cancel_requested_at=timezone.now())
    dispatch.reap()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("canceled", 1)


def test_a_paused_job_is_lost_like_a_running_one(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, state="paused")
    dispatch.reap()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 2)


def test_a_living_lease_is_left_alone(pipe: RedisServer, owner: User) -> None:
    lost(owner, lease_expires_at=timezone.now() + timedelta(seconds=5))
    make(owner, state="paused", lease_expires_at=None)
    assert dispatch.reap() == 0


def test_a_missing_end_is_added_once(pipe: RedisServer, owner: User) -> None:
    job = lost(owner, state="succeeded", result={"loss": 1.5}, lease_expires_at=None)
    Job.objects.update(ended_at=timezone.now() - timedelta(seconds=dispatch.RECONCILE_S + 1))
    assert dispatch.reconcile() == 1
    assert dispatch.reconcile() == 0
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
    dispatch.reap()
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
