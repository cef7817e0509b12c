"""Rows of jobs as tests need them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.jobs import (
    spool,
    stream,
)
from playground.jobs.models import Attempt, Job

CPU = ["cpu"]


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
