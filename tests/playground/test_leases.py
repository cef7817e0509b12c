"""Deadlines, what is recovered, claims and leases. Real rows, real Redis; no worker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.jobs import (
    attempts,
    dispatch,
    ids,
    recover,
    service,
    spool,
    states,
    stream,
)
from playground.jobs.models import Artifact, Attempt, Job
from playground.jobs.outcomes import Outcome
from tests.playground.rows import CPU, lost, make
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db


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
