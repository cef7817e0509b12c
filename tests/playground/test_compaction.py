"""A log reads the same before, while and after it becomes one file, wherever that is cut off."""

from __future__ import annotations

import os
import random
import threading
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from playground import redis
from playground.accounts.models import User
from playground.jobs import compaction, history, logfile, service, spool, stream
from playground.jobs.models import Job
from tests.playground import kinds as _registered
from tests.stack import RedisServer

pytestmark = pytest.mark.django_db
assert _registered
PER_ATTEMPT = 400


@pytest.fixture(autouse=True)
def small_blocks(pipe: RedisServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.COMPACT_AFTER_S = 60
    monkeypatch.setattr(logfile, "BLOCK_BYTES", 4096)


@pytest.fixture
def job() -> Job:
    return make()


def make(**values: Any) -> Job:
    """An ended job with two attempts, a fence between them, and a torn line."""
    defaults: dict[str, Any] = {
        "kind": "pipe.talk",
        "queue": "interactive",
        "params": {},
        "seed": 1,
        "deadline_s": 60,
        "attempt": 2,
        "state": "succeeded",
        "log_closed": True,
        "ended_at": timezone.now() - timedelta(seconds=61),
    }
    owner, _ = User.objects.get_or_create(username="alice")
    job = Job.objects.create(owner=owner, **{**defaults, **values})
    for attempt in (1, 2):
        writer = spool.Writer(job.pk, attempt)
        writer.append(
            spool.entry(job.pk, f"{attempt}-{n}", "log", stream.rest_of({"text": f"π {n}\r\n"}, n))
            for n in range(1, PER_ATTEMPT + 1)
        )
        writer.close()
        type_ = "end" if attempt == 2 else "state"
        spool.append_outside(job.pk, attempt, [(type_, stream.rest_of({"n": attempt}, 1))])
    with spool.file(job.pk, 1).open("ab") as file:
        file.write(b'{"id":"1-9000000","job":"torn')
    return job


def lines_of_files(job: Job) -> bytes:
    """The log as its files hold it, torn lines left out; read without the code under test."""
    files = sorted(spool.folder(job.pk).glob("*.jsonl"), key=lambda path: int(path.stem))
    assert len(files) == 2
    return b"".join(
        line
        for path in files
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"}\n")
    )


def read(job: Job, after: str = "0-0") -> bytes:
    return b"".join(f"{entry.line}\n".encode() for entry in spool.read_all(job.pk, after))


def work(job: Job) -> None:
    for _ in compaction.compact(job):
        pass


def is_one_file(job: Job, whole: bytes) -> None:
    assert [path.name for path in spool.folder(job.pk).iterdir()] == ["log.zip"]
    assert Job.objects.get(pk=job.pk).compacted
    with zipfile.ZipFile(spool.compacted(job.pk)) as log:
        assert log.testzip() is None
        assert len(log.namelist()) > 10
        assert b"".join(log.read(name) for name in log.namelist()) == whole
    assert read(job) == whole


def test_it_is_the_same_log_byte_for_byte(job: Job) -> None:
    whole, size = lines_of_files(job), sum(p.stat().st_size for p in spool.folder(job.pk).iterdir())
    assert whole.count(b"\n") == 2 * PER_ATTEMPT + 2
    assert read(job) == whole
    work(job)
    is_one_file(job, whole)
    assert spool.compacted(job.pk).stat().st_size < size / 3
    assert spool.last(job.pk) is not None and service._log_has_end(job.pk)


def test_reading_after_any_id(job: Job) -> None:
    everything = list(spool.read_all(job.pk))
    work(job)
    chance = random.Random(3)
    for index in [0, len(everything) - 1, *chance.sample(range(len(everything)), 40)]:
        limit = chance.choice([1, 7, 500, 5000])
        found = spool.read(job.pk, everything[index].id, limit)
        assert found == everything[index + 1 :][:limit]
    assert spool.read(job.pk, "3-1", 5) == []


def test_a_page_from_the_middle_does_not_read_the_whole(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(job)
    opened: list[str] = []
    read_block = zipfile.ZipFile.read

    def counted(self: zipfile.ZipFile, name: str) -> bytes:
        opened.append(name)
        return read_block(self, name)

    monkeypatch.setattr(zipfile.ZipFile, "read", counted)
    assert [entry.id for entry in spool.read(job.pk, "2-100", 2)] == ["2-101", "2-102"]
    assert 1 <= len(opened) <= 2


class Killed(BaseException):
    pass


STEPS: tuple[tuple[Any, str], ...] = (
    (zipfile.ZipFile, "writestr"),
    (os, "fsync"),
    (Path, "replace"),
    (Path, "unlink"),
    (QuerySet, "update"),
)


def kill_at(number: int, patch: pytest.MonkeyPatch) -> None:
    """The process dies before (even) or after (odd) its n-th step that changes anything."""
    left = [number]

    def dying(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **values: Any) -> Any:
            left[0] -= 1
            if left[0] == -1:
                raise Killed
            found = step(*args, **values)
            left[0] -= 1
            if left[0] == -1:
                raise Killed
            return found

        return run

    for place, name in STEPS:
        patch.setattr(place, name, dying(getattr(place, name)))


def test_killed_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each: the log is whole, and the next try, by another process, ends in one file."""
    kills = 0
    for number in range(1000):
        job = make()
        whole = lines_of_files(job)
        with monkeypatch.context() as patch:
            kill_at(number, patch)
            try:
                work(job)
                died = False
            except Killed:
                died = True
        assert read(job) == whole
        if not died:
            break
        kills += 1
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            work(Job.objects.get(pk=job.pk))
        is_one_file(job, whole)
        job.delete()
    assert kills > 2 * (10 + 2 + 1 + 2 + 1)  # blocks, syncs, the name, two files, the row


def test_readers_meanwhile_see_one_log(job: Job) -> None:
    everything = [entry.id for entry in spool.read_all(job.pk)]
    stop = threading.Event()
    wrong: list[str] = []
    rounds = [0, 0, 0]

    def keep_reading(number: int, page: int) -> None:
        while not stop.is_set() or not rounds[number]:
            found: list[str] = []
            while more := spool.read(job.pk, found[-1] if found else "0-0", page):
                found += [entry.id for entry in more]
            if found != everything:
                wrong.append(f"{len(found)} of {len(everything)}")
            rounds[number] += 1

    readers = [
        threading.Thread(target=keep_reading, args=(number, page))
        for number, page in enumerate((97, 500, 5000))
    ]
    for reader in readers:
        reader.start()
    try:
        work(job)
    finally:
        stop.set()
        for reader in readers:
            reader.join(60)
    assert not wrong
    assert all(rounds)


def test_a_reader_that_had_begun_goes_on_in_the_one_file(job: Job) -> None:
    """The second attempt's file is gone by the time that the reader comes to it."""
    everything = [entry.id for entry in spool.read_all(job.pk)]
    reading = spool.read_all(job.pk)
    found = [next(reading).id for _ in range(10)]
    work(job)
    assert found + [entry.id for entry in reading] == everything


def test_only_what_has_ended_long_enough_ago(job: Job) -> None:
    young = make(ended_at=timezone.now())
    running = make(state="running", ended_at=None, log_closed=False)
    compactor = compaction.Compactor()
    for _ in range(400):
        compactor.tick(portion_s=0)  # a block at a time
        if Job.objects.get(pk=job.pk).compacted:
            break
    assert spool.compacted(job.pk).exists()
    compactor.tick(portion_s=10)
    assert not spool.compacted(young.pk).exists()
    assert not spool.compacted(running.pk).exists()
    assert set(Job.objects.filter(compacted=True)) == {job}


def test_a_stream_that_forgot_its_end_gets_it_and_then_expires(job: Job) -> None:
    client = redis.shared()
    entries = list(spool.read_all(job.pk))
    stream.Writer(job.pk, 1, client).send(entries[:-1], create=True)
    assert client.ttl(stream.key(job.pk)) == -1
    work(job)
    assert stream.last_id(client, job.pk) == entries[-1].id
    assert 0 < cast("int", client.ttl(stream.key(job.pk))) <= 3600


async def test_a_stream_without_its_last_second_is_read_on_from_disk(pipe: RedisServer) -> None:
    """Redis was killed and has forgotten what it had shown: the reader's cursor stays true."""
    job_id = "01m8q9qpfj682t9yhg36"
    entries = [
        spool.entry(job_id, f"1-{n}", "log", stream.rest_of({"n": n}, 1.0)) for n in range(1, 51)
    ]
    writer = spool.Writer(job_id, 1)
    writer.append(entries)
    writer.close()
    stream.Writer(job_id, 1, redis.shared()).send(entries[:30], create=True)
    client = redis.async_client()
    try:
        assert await history.read(client, job_id, "0-0", 500) == entries
        assert await history.read(client, job_id, "1-40", 500) == entries[40:]
    finally:
        await client.aclose()
