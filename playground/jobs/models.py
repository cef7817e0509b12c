"""Rows. A job's row is the truth about its state; its output is in the spool and the stream."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from playground.jobs import states
from playground.jobs.ids import new_job_id


class Job(models.Model):
    id = models.CharField(primary_key=True, max_length=20, default=new_job_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=64)
    queue = models.CharField(max_length=16)
    params = models.JSONField()
    seed = models.BigIntegerField()
    deadline_s = models.PositiveIntegerField()
    # The class on whose share it runs; none: the owner's own.
    group = models.ForeignKey(
        "classroom.Class", models.SET_NULL, related_name="jobs", null=True, blank=True
    )
    request_id = models.CharField(max_length=64, blank=True)  # of the request that submitted it
    start_at = models.DateTimeField(null=True)  # not before
    cancel_at = models.DateTimeField(null=True)  # aborted if it waits then, canceled if it runs
    device = models.CharField(max_length=16, blank=True)  # given with the slot

    state = models.CharField(
        max_length=12, default=states.QUEUED, choices=[(s, s) for s in states.STATES]
    )
    attempt = models.PositiveIntegerField(default=1)
    retried = models.BooleanField(default=False)  # the one retry after a lost worker is spent
    progress = models.JSONField(null=True)
    result = models.JSONField(null=True)
    reason = models.CharField(max_length=24, blank=True)
    message = models.TextField(blank=True)
    message_zh = models.TextField(blank=True)

    created_at = models.DateTimeField(auto_now_add=True)
    dispatched_at = models.DateTimeField(null=True)  # holds a slot while still queued
    started_at = models.DateTimeField(null=True)
    first_event_at = models.DateTimeField(null=True)  # the runner's first word
    ended_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)

    lease_worker = models.CharField(max_length=80, blank=True)  # empty: no slot, no writer
    lease_expires_at = models.DateTimeField(null=True)
    log_closed = models.BooleanField(default=False)  # `end` is in the log and the stream expires
    compacted = models.BooleanField(default=False)  # the log is one file now

    class Meta:
        indexes = (
            # Who waits, and the oldest of each, without a look at the rows themselves.
            models.Index(
                fields=[
                    "queue",
                    "state",
                    "group",
                    "owner",
                    "created_at",
                    "dispatched_at",
                    "start_at",
                ],
                name="job_line",
            ),
            models.Index(fields=["kind", "ended_at"], name="job_kind_ended"),
            models.Index(fields=["cancel_at"], name="job_cancel_at"),
            models.Index(fields=["owner", "-id"], name="job_owner"),
            models.Index(fields=["state", "lease_expires_at"], name="job_lease"),
            models.Index(fields=["log_closed", "ended_at"], name="job_log_closed"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.state}, attempt {self.attempt})"

    @property
    def ended(self) -> bool:
        return self.state in states.TERMINAL


class Attempt(models.Model):
    """One run of a job by one worker. The runner's process group is recorded so that the next
    attempt can end what the last one may have left behind."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    worker = models.CharField(max_length=80)
    host = models.CharField(max_length=120)
    pid = models.PositiveIntegerField(null=True)
    pid_started = models.FloatField(null=True)  # the pid alone may have been given to another
    resume_from = models.PositiveIntegerField(null=True)  # the attempt whose checkpoint it takes
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=24, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["job", "number"], name="attempt_once"),)

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.number}"


class Artifact(models.Model):
    """A file that an attempt made; `name` may hold folders. The file: `artifacts.path`."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="artifacts")
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    type = models.CharField(max_length=100)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["job", "attempt", "name"], name="artifact_once"),
        )

    def __str__(self) -> str:
        return f"{self.job_id}/{self.attempt}/{self.name}"


class Turn(models.Model):
    """A seat in a ring of the deficit round-robin (`playground.jobs.fairness`).

    A row with an owner is that owner's seat in the ring of the class; a row without one is the
    class's own, in the ring of classes. Only who waits has a seat.
    """

    queue = models.CharField(max_length=16)
    group = models.BigIntegerField()  # 0: those without a class
    owner = models.BigIntegerField()  # 0: the class itself
    position = models.BigIntegerField()  # the least is at the head of its ring
    deficit = models.PositiveIntegerField(default=0)  # starts left in the visit that goes on

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["queue", "group", "owner"], name="turn_once"),
        )

    def __str__(self) -> str:
        return f"{self.queue} class {self.group} owner {self.owner} at {self.position}"


class Upload(models.Model):
    """A person's own file, checked before it was kept. Its id is a param of other jobs."""

    id = models.CharField(primary_key=True, max_length=20, default=new_job_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="uploads")
    name = models.CharField(max_length=200)
    form = models.CharField(max_length=16)  # what it was recognised as: text, vectors
    encoding = models.CharField(max_length=20, blank=True)  # as it came; it is kept as UTF-8
    bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    about = models.JSONField(default=dict)  # characters and lines, or words and dimensions
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(fields=["owner", "-id"], name="upload_owner"),)

    def __str__(self) -> str:
        return f"{self.name} {self.id}"


class IdempotencyKey(models.Model):
    """The first answer to a write that its client may send again."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=200)
    key = models.CharField(max_length=64)  # its digest: a database may not tell a from A
    digest = models.CharField(max_length=64)  # of what it asks
    job_id = models.CharField(max_length=20, blank=True)  # what it made
    status = models.PositiveSmallIntegerField(null=True)  # none: the first is still at it
    headers = models.JSONField(default=dict)
    content = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["owner", "method", "path", "key"], name="idempotency_once"
            ),
        )
        indexes = (models.Index(fields=["created_at"], name="idempotency_age"),)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.key[:8]}"
