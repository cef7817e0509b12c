"""What is pruned and what is kept: real rows, real files, real Redis."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.jobs import artifacts, ids, retention, spool, stream
from playground.jobs.models import Artifact, IdempotencyKey, Job, Upload
from tests.playground import kinds as _registered
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db
assert _registered


@pytest.fixture
def owner() -> User:
    return User.objects.create(username="alice")


@pytest.fixture(autouse=True)
def rooms(pipe: RedisServer, settings: Any, tmp_path: Path) -> Iterator[Path]:
    settings.UPLOADS_DIR = tmp_path / "uploads"
    settings.KEEP_INTERACTIVE_H = 24
    settings.KEEP_TRAINING_DAYS = 0
    yield tmp_path


def make(owner: User, hours: float, kind: str = "pipe.echo", **values: Any) -> Job:
    """A job that ended so many hours ago, with a file of 1,000 bytes, a log and a stream."""
    defaults: dict[str, Any] = {
        "kind": kind,
        "queue": "training" if kind == "pipe.train" else "interactive",
        "params": {},
        "seed": 1,
        "deadline_s": 60,
        "state": "succeeded",
        "log_closed": True,
        "ended_at": timezone.now() - timedelta(hours=hours),
    }
    job = Job.objects.create(owner=owner, **{**defaults, **values})
    (artifacts.make_attempt_folder(job.pk, 1) / "a.bin").write_bytes(b"x" * 1000)
    Artifact.objects.create(job=job, attempt=1, name="a.bin", type="x/y", size=1000)
    stream.append_outside(job.pk, 1, ("end", {}))
    return job


def everything(rooms: Path) -> Any:
    """All that a dry run could have touched."""
    files = {str(path): path.stat().st_mtime_ns for path in rooms.rglob("*")}
    rows = [list(model.objects.values()) for model in (Job, Artifact, IdempotencyKey, Upload)]
    return files, rows, sorted(redis.shared().scan_iter("*"))


def prune(*options: str) -> str:
    out = StringIO()
    call_command("prune", *options, stdout=out)
    return out.getvalue()


def age(path: Path) -> None:
    old = time.time() - retention.SETTLED_S - 60
    os.utime(path, (old, old))


def test_old_interactive_jobs_go_with_all_they_made(owner: User) -> None:
    old, young = make(owner, 25), make(owner, 23)
    assert [job for job, _ in retention.find().jobs] == [old]
    prune("--yes")
    assert list(Job.objects.all()) == [young]
    assert not artifacts.job_folder(old.pk).exists() and not spool.folder(old.pk).exists()
    assert artifacts.size(young.pk, 1, "a.bin") == 1000
    assert list(redis.shared().scan_iter("ev:*")) == [stream.key(young.pk)]


def test_training_is_kept_unless_a_time_is_set(owner: User, settings: Any) -> None:
    job = make(owner, 24 * 40, "pipe.train")
    assert retention.find().jobs == []
    settings.KEEP_TRAINING_DAYS = 30
    assert [job for job, _ in retention.find().jobs] == [job]
    settings.KEEP_TRAINING_DAYS = 41
    assert retention.find().jobs == []


@pytest.mark.parametrize("state", ["queued", "starting", "running", "paused"])
def test_a_job_that_has_not_ended_is_never_touched(owner: User, state: str) -> None:
    make(owner, 1000, state=state)
    assert retention.find().jobs == []
    prune("--yes")
    assert Job.objects.count() == 1


def test_a_job_whose_log_is_still_open_is_left_alone(owner: User) -> None:
    make(owner, 1000, log_closed=False)
    assert retention.find().jobs == []


def test_what_a_kept_job_names_is_kept_and_what_that_names(owner: User, settings: Any) -> None:
    """`pipe.ref` names a run; old refs to an old run go with it, one young ref keeps it."""
    settings.KEEP_TRAINING_DAYS = 1
    run, other = make(owner, 100, "pipe.train"), make(owner, 100, "pipe.train")
    old = make(owner, 90, "pipe.ref", params={"model": other.pk})
    young = make(owner, 1, "pipe.ref", params={"model": run.pk})
    assert {job.pk for job, _ in retention.find().jobs} == {other.pk, old.pk}
    Job.objects.filter(pk=young.pk).update(params={"model": old.pk})
    assert {job.pk for job, _ in retention.find().jobs} == {run.pk}  # old stays, so other does


def test_old_idempotency_keys_go(owner: User) -> None:
    for key, hours in (("old", 25), ("young", 23)):
        row = IdempotencyKey.objects.create(
            owner=owner, method="POST", path="/", key=key, digest="0"
        )
        moment = timezone.now() - timedelta(hours=hours)
        IdempotencyKey.objects.filter(pk=row.pk).update(created_at=moment)
    assert retention.find().keys == 1
    assert "1 idempotency keys" in prune("--yes")
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["young"]


@pytest.mark.parametrize("room", ["artifacts", "spool", "uploads"])
def test_folders_without_a_row_are_found_once_they_have_settled(
    rooms: Path, owner: User, room: str
) -> None:
    kept = make(owner, 1)
    folder = rooms / room / ids.new_job_id()
    folder.mkdir(parents=True)
    (folder / "left").write_bytes(b"x" * 300)
    assert retention.find().leftovers == []  # its row may be on its way
    age(folder)
    age(artifacts.job_folder(kept.pk))
    (found,) = retention.find().leftovers
    assert (found.what, found.name, found.bytes) == (room, folder.name, 300)
    prune("--yes")
    assert not folder.exists()
    assert artifacts.job_folder(kept.pk).exists()


def test_an_uploads_folder_is_known_by_its_row_and_foreign_names_are_left(
    rooms: Path, owner: User
) -> None:
    row = Upload.objects.create(owner=owner, name="a.txt", form="text", bytes=1, sha256="0")
    for name in (row.pk, "incoming", "notes"):
        folder = rooms / "uploads" / name
        folder.mkdir(parents=True)
        age(folder)
    assert retention.find().leftovers == []


def test_a_stream_without_a_row_is_found(owner: User) -> None:
    make(owner, 1)
    name = ids.new_job_id()
    redis.shared().xadd(stream.key(name), {"type": "end", "line": "{}"})
    (found,) = retention.find().leftovers
    assert (found.what, found.name) == ("stream", name)
    assert found.bytes > 0
    prune("--yes")
    assert not redis.shared().exists(stream.key(name))


def test_a_dry_run_says_everything_and_removes_nothing(rooms: Path, owner: User) -> None:
    job = make(owner, 100)
    folder = rooms / "spool" / ids.new_job_id()
    folder.mkdir()
    (folder / "1.jsonl").write_bytes(b"x" * 2048)
    age(folder)
    before = everything(rooms)
    said = prune()
    assert everything(rooms) == before
    assert job.pk in said and f"{folder.name}  spool  2 KB" in said
    assert "This would remove 2 jobs and leftovers" in said and "--yes" in said
    assert "Removed: 2 jobs and leftovers" in prune("--yes")
    assert prune() == "There is nothing to remove.\n"


def test_the_dispatcher_prunes_hourly_and_a_few_at_a_time(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for _ in range(3):
        make(owner, 100)
    pruning = retention.Hourly()
    assert [pruning.tick() for _ in range(3)] == [2, 1, 0]
    make(owner, 100)
    assert pruning.tick() == 0  # in an hour
    pruning._next -= retention.EVERY_S
    assert pruning.tick() == 1
