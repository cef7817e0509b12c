"""Writes asked for by people: submit, control, cancel, delete."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from compute.core import kinds
from playground import redis
from playground.jobs import artifacts, controls, outcomes, quota, refs, spool, states, stream
from playground.jobs.asked import NOTHING_MORE, Asked
from playground.jobs.ids import new_job_id
from playground.jobs.models import Job
from playground.jobs.outcomes import Outcome

log = logging.getLogger(__name__)
NUDGE = "nudge"  # a list: the dispatcher blocks on it and wakes at once


class NotAllowed(Exception):
    """The kind has no such control."""

    def __init__(self, action: str, allowed: list[str]) -> None:
        self.action, self.allowed = action, allowed
        super().__init__(f"{action} is not one of {allowed}")


class NotEnded(Exception):
    """Only a job that has ended can be deleted."""


def submit(
    *,
    owner_id: int,
    kind: str,
    params: Mapping[str, Any],
    wishes: Asked = NOTHING_MORE,
    request_id: str = "",
) -> Job:
    """Validates and queues a job. Raises UnknownKind, InvalidParams or QuotaExceeded; queues
    nothing then."""
    redis.check_room()
    declared = kinds.get(kind)
    valid = kinds.validate(kind, dict(params))
    checked = valid.model_dump(mode="json")
    refs.check(owner_id=owner_id, kind=declared, params=valid)
    quota.check(owner_id=owner_id)
    job_id = new_job_id()
    job = Job.objects.create(
        id=job_id,
        owner_id=owner_id,
        kind=kind,
        queue=declared.queue,
        params=checked,
        seed=_seed(checked, job_id),
        deadline_s=declared.deadline_s,
        group_id=wishes.group_id,
        start_at=wishes.start_at,
        cancel_at=wishes.cancel_at,
        request_id=request_id,
    )
    transaction.on_commit(nudge)
    return job


def nudge() -> None:
    """Wakes the dispatcher. Without Redis its own tick finds the row."""
    try:
        redis.shared().lpush(NUDGE, "1")
    except redis.RedisError as error:
        log.warning("could not wake the dispatcher: %s", error)


def control(*, job: Job, action: str, values: Mapping[str, Any] | None = None) -> Job:
    """Sends `cancel`, `pause`, `resume`, `step` or `set` to a job that a worker holds.

    Raises `NotAllowed` when the kind has no such control, `IllegalMove` when the job's state has
    no use for it, InvalidParams for bad `values`.
    """
    if action == "cancel":
        return cancel(job=job)
    declared = kinds.get(job.kind)
    if action not in declared.controls:
        raise NotAllowed(action, sorted(declared.controls))
    message: dict[str, Any] = {"action": action}
    if action == "set":
        params = kinds.validate(job.kind, job.params)
        kinds.validate_set(declared, params, values)
        message["values"] = dict(values or {})
    if job.state not in states.HELD:
        raise states.IllegalMove(to=action, expected=states.HELD, got=job.state)
    if not job.lease_worker:
        return _unpark(job=job, message=message)
    controls.send(worker=job.lease_worker, job_id=job.pk, attempt=job.attempt, control=message)
    return job


def cancel(*, job: Job) -> Job:
    """Asks for the end. Cancelling twice, or after the end, changes nothing."""
    if job.ended:
        return job
    now = timezone.now()
    rows = Job.objects.filter(pk=job.pk)
    ended = {"ended_at": now, "cancel_requested_at": now, "dispatched_at": None}
    if rows.filter(state=states.QUEUED).update(**outcomes.aborted().row(), **ended):
        states.check(states.QUEUED, states.ABORTED)
        job.refresh_from_db()
        close_log(job)
        return job
    parked = rows.filter(state=states.PAUSED, lease_worker="")
    if parked.update(**outcomes.canceled().row(), **ended):
        states.check(states.PAUSED, states.CANCELED)
        job.refresh_from_db()
        close_log(job)
        return job
    # The flag comes first: should the message be lost, the supervisor reads the flag at its next
    # heartbeat.
    rows.filter(state__in=states.HELD, cancel_requested_at=None).update(cancel_requested_at=now)
    job.refresh_from_db()
    if job.lease_worker and not job.ended:
        try:
            controls.send(
                worker=job.lease_worker,
                job_id=job.pk,
                attempt=job.attempt,
                control={"action": "cancel"},
            )
        except redis.RedisError as error:
            log.warning("job %s: its supervisor reads the cancel from the row: %s", job.pk, error)
    return job


def delete(*, job: Job) -> None:
    """Removes a job that has ended: row, files, log and stream. Raises `NotEnded`."""
    if not Job.objects.filter(pk=job.pk, state__in=states.TERMINAL).delete()[0]:
        raise NotEnded(job.state)
    artifacts.delete(job.pk)
    spool.delete(job.pk)
    try:
        stream.delete(job.pk)
    except redis.RedisError as error:
        log.warning("job %s: its stream is left to expire: %s", job.pk, error)


def close_log(job: Job) -> None:
    """Writes the `end` that a terminal row without a supervisor still lacks, and lets the stream
    expire. Safe to repeat; without Redis the dispatcher does it later."""
    try:
        if not _log_has_end(job.pk):
            end = Outcome(job.state, job.reason, job.message, job.message_zh, job.result)
            stream.append_outside(job.pk, job.attempt, ("end", end.end_data()))
        client = redis.shared()
        stream.resend(client, job.pk, stream.last_id(client, job.pk))
        stream.expire(client, job.pk)
    except redis.RedisError as error:
        log.warning("job %s: its log is closed later: %s", job.pk, error)
        return
    Job.objects.filter(pk=job.pk).update(log_closed=True)
    job.log_closed = True


def _log_has_end(job_id: str) -> bool:
    last = spool.last(job_id)
    return last is not None and last.type == "end"


def _unpark(*, job: Job, message: dict[str, Any]) -> Job:
    """A paused job that gave its slot back goes to the queue again with the next attempt.

    Only `resume` does that: the others need a runner. The one retry after a lost worker is not
    spent by it.
    """
    if message["action"] != "resume":
        raise states.IllegalMove(
            to=message["action"], expected=["paused with a slot"], got="paused without a slot"
        )
    states.check(job.state, states.QUEUED, attempt_before=job.attempt, attempt_to=job.attempt + 1)
    moved = Job.objects.filter(
        pk=job.pk, state=states.PAUSED, attempt=job.attempt, lease_worker=""
    ).update(state=states.QUEUED, attempt=job.attempt + 1, dispatched_at=None)
    before = job.attempt
    job.refresh_from_db()
    if moved:
        announce_requeue(job, before)
        nudge()
    return job


def announce_requeue(job: Job, before: int) -> None:
    """Tells readers that attempt `before` is over and the job waits again."""
    data = {"state": states.QUEUED, "attempt": job.attempt}
    try:
        stream.append_outside(job.pk, before, ("state", data))
    except redis.RedisError as error:
        log.warning("job %s: the stream learns of the new attempt later: %s", job.pk, error)


def _seed(params: Mapping[str, Any], job_id: str) -> int:
    """The param `seed` if the kind has one, else 31 bits of the id: the same in each attempt."""
    value = params.get("seed")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digest = hashlib.sha256(json.dumps([job_id]).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def live_sets(job_id: str) -> list[dict[str, Any]]:
    """`spec["replay"]`: the data of each `set` that took effect in earlier attempts, so that a
    resume from before it applies it again at its step."""
    found = []
    for entry in spool.read_all(job_id):
        if entry.type == "control":
            data = json.loads(entry.line)["data"]
            if data.get("action") == "set" and not data.get("replayed"):
                found.append(data)
    return found
