"""Idempotency-Key: a write that its client may send again without fear of doing it twice.

After draft-ietf-httpapi-idempotency-key-header-07. A key belongs to its owner, method and path, for
a day. The row is inserted in the transaction that does the work, so there is never one without the
other. A request that was refused is not remembered: its correction may use the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from compute.core.errors import Problem
from compute.core.texts import Text
from playground import stores
from playground.jobs.models import IdempotencyKey, Job
from playground.problems import ApiProblem

KEPT_H = 24
MAX_CHARACTERS = 200
TRIES = 5
# Whoever waits for a job's end waits ten seconds at most. A row that is unfinished for longer has
# lost its request, not its job.
UNFINISHED_S = 15
KEPT_HEADERS = ("Location", "Preference-Applied")
REPLAYED = "Idempotent-Replayed"
BAD_KEY = Text(
    f"Give 1 to {MAX_CHARACTERS} printable ASCII characters, a UUID for example.",
    f"请给出 1 到 {MAX_CHARACTERS} 个可打印的 ASCII 字符，例如一个 UUID。",
)


@dataclass(frozen=True)
class Ticket:
    """One request with a key: whose it is, what it is for, and digests of key and wishes."""

    owner_id: int
    method: str
    path: str
    key: str
    digest: str

    def rows(self) -> dict[str, str | int]:
        return {
            "owner_id": self.owner_id,
            "method": self.method,
            "path": self.path,
            "key": self.key,
        }


def ticket(request: HttpRequest, owner_id: int) -> Ticket | None:
    """None for a request without the header. Raises the problem for a key that isn't one."""
    raw = request.headers.get("Idempotency-Key")
    if raw is None:
        return None
    key = raw.strip()
    if len(key) > 1 and key[0] == key[-1] == '"':  # the draft writes it as a quoted string
        key = key[1:-1]
    if not (1 <= len(key) <= MAX_CHARACTERS and key.isascii() and key.isprintable()):
        raise ApiProblem("invalid_request", errors=[Problem("/Idempotency-Key", BAD_KEY)])
    name = hashlib.sha256(key.encode()).hexdigest()
    asked = hashlib.sha256(request.headers.get("Cancel-After", "").encode() + b"\n")
    asked.update(request.body)
    return Ticket(owner_id, request.method or "", request.path[:200], name, asked.hexdigest())


def once(
    known: Ticket, work: Callable[[], Job], show: Callable[[Job], HttpResponse]
) -> Job | HttpResponse:
    """The job that `work` makes, remembered with it: both or neither. When the key has been used
    already nothing is done, and the first answer comes back; `show` makes one where it was never
    finished.

    Raises `idempotency_mismatch` where the key was used for something else, and
    `idempotency_in_progress` while its first request is still being answered.
    """
    for _ in range(TRIES):
        try:
            return _first(known, work)
        except IntegrityError:
            row = IdempotencyKey.objects.filter(**known.rows()).first()
        if row is None:
            continue  # its first request has just been refused
        age = timezone.now() - row.created_at
        if age > timedelta(hours=KEPT_H):
            row.delete()
            continue
        return _again(known, row, age, show)
    raise ApiProblem("idempotency_in_progress", headers={"Retry-After": "1"})


@stores.repeated
def _first(known: Ticket, work: Callable[[], Job]) -> Job:
    with transaction.atomic():
        row = IdempotencyKey.objects.create(**known.rows(), digest=known.digest)
        job = work()
        IdempotencyKey.objects.filter(pk=row.pk).update(job_id=job.pk)
    return job


def _again(
    known: Ticket, row: IdempotencyKey, age: timedelta, show: Callable[[Job], HttpResponse]
) -> HttpResponse:
    if row.digest != known.digest:
        raise ApiProblem("idempotency_mismatch")
    if row.status is not None:
        answer = HttpResponse(
            row.content, status=row.status, headers=row.headers, content_type="application/json"
        )
    elif age < timedelta(seconds=UNFINISHED_S):
        raise ApiProblem("idempotency_in_progress", headers={"Retry-After": "1"})
    else:
        job = Job.objects.filter(pk=row.job_id).first()
        if job is None:
            raise ApiProblem("job_not_found")  # it was deleted meanwhile
        answer = show(job)
    answer[REPLAYED] = "true"
    answer["Cache-Control"] = "no-cache"
    return answer


def remember(known: Ticket, answer: HttpResponse) -> None:
    """Keeps the first answer."""
    headers = {name: answer[name] for name in KEPT_HEADERS if name in answer}
    IdempotencyKey.objects.filter(**known.rows()).update(
        status=answer.status_code, headers=headers, content=answer.content.decode()
    )


def old_keys() -> QuerySet[IdempotencyKey]:
    """Rows that are over a day old, which retention removes."""
    return IdempotencyKey.objects.filter(created_at__lt=timezone.now() - timedelta(hours=KEPT_H))
