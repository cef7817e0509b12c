"""Ids, spool and stream: order, no doubles, no stale writer, nothing lost while Redis is away."""

from __future__ import annotations

import json
import random
from typing import Any, cast

import pytest

from playground import redis
from playground.jobs import history, ids, spool, stream
from playground.jobs.spool import Entry
from tests.stack import RedisServer

JOB = "01m8q9qpfj682t9yhg36"


def line(attempt: int, seq: int, type_: str = "metric", **data: object) -> Entry:
    return spool.entry(JOB, f"{attempt}-{seq}", type_, stream.rest_of(data or {"step": seq}, 1.5))


def fill(attempt: int, first: int, last: int) -> list[Entry]:
    entries = [line(attempt, seq) for seq in range(first, last + 1)]
    writer = spool.Writer(JOB, attempt)
    writer.append(entries)
    writer.close()
    return entries


def test_job_ids_sort_by_time_and_are_safe() -> None:
    made = [ids.new_job_id() for _ in range(200)]
    assert all(ids.is_job_id(i) for i in made)
    assert len(set(made)) == 200
    assert [i[:9] for i in made] == sorted(i[:9] for i in made)


@pytest.mark.parametrize(
    "text", ["", "u" * 20, "x" * 21, "../../../../etc/pass", "01M8Q9QPFJ682T9YHG36", 3]
)
def test_not_a_job_id(text: object) -> None:
    assert not ids.is_job_id(text)


@pytest.mark.parametrize(
    "text", ["1", "1-", "-1", "01-1", "1-1-1", "a-b", "1-99999999999999999", ""]
)
def test_not_an_event_id(text: str) -> None:
    with pytest.raises(ValueError, match="1-42"):
        ids.event_key(text)


def test_an_event_is_one_line_of_json(pipe: RedisServer) -> None:
    entry = line(1, 7, "log", text='"><img>\u2028\nnext')
    assert json.loads(entry.line) == {
        "id": "1-7",
        "job": JOB,
        "type": "log",
        "t": 1.5,
        "data": {"text": '"><img>\u2028\nnext'},
    }
    assert "\n" not in entry.line


def test_a_runner_line_with_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        stream.rest_of_raw(b'{"type":"metric","t":1,"data":{"loss":NaN}}')


def test_reading_the_spool_after_any_id(pipe: RedisServer) -> None:
    entries = fill(1, 1, 3000) + fill(2, 1, 3000)
    assert spool.file(JOB, 1).stat().st_size > 2 * 64 * 1024  # so that the search really jumps
    for index in random.Random(7).sample(range(6000), 60):
        found = spool.read(JOB, entries[index].id, 5)
        assert [e.id for e in found] == [e.id for e in entries[index + 1 : index + 6]]
    assert spool.last_id(JOB) == "2-3000"


def test_a_torn_last_line_is_left_out(pipe: RedisServer) -> None:
    fill(1, 1, 3)
    with spool.file(JOB, 1).open("ab") as file:
        file.write(line(1, 4).line.encode()[:-9])
    assert [e.id for e in spool.read(JOB, "0-0", 9)] == ["1-1", "1-2", "1-3"]


def test_a_writer_that_was_given_up_writes_into_nothing(pipe: RedisServer) -> None:
    """The lost supervisor wakes up after the reaper has written: file and stream refuse it."""
    client = redis.shared()
    lost, its_stream = spool.Writer(JOB, 1), stream.Writer(JOB, 1, client)
    first = [line(1, 1), line(1, 2)]
    lost.append(first)
    its_stream.send(first, create=True)

    stream.append_outside(JOB, 1, ("state", {"state": "queued", "attempt": 2}))

    late = [line(1, 3)]  # its first write after it wakes
    lost.append(late)
    with pytest.raises(stream.Stale):
        its_stream.send(late)
    lost.close()
    fence = f"1-{2 + spool.FENCE_STEP + 1}"
    assert [e.id for e in spool.read(JOB, "0-0", 9)] == ["1-1", "1-2", fence]
    assert stream.last_id(client, JOB) == fence


def test_nobody_but_a_claim_creates_a_stream(pipe: RedisServer) -> None:
    client = redis.shared()
    writer = stream.Writer(JOB, 1, client)
    writer.send([line(1, 1)])
    assert not client.exists(stream.key(JOB))
    assert writer.behind


def test_the_same_events_twice_are_stale(pipe: RedisServer) -> None:
    writer = stream.Writer(JOB, 1, redis.shared())
    writer.send([line(1, 1)], create=True)
    with pytest.raises(stream.Stale):
        writer.send([line(1, 1)])
    assert redis.shared().xlen(stream.key(JOB)) == 1


def test_recovery_sends_exactly_what_the_stream_lacks(pipe: RedisServer) -> None:
    client = redis.shared()
    entries = fill(1, 1, 1200)
    writer = stream.Writer(JOB, 1, client)
    writer.send(entries[:300], create=True)
    writer.behind = True
    writer.recover()
    assert not writer.behind
    found = cast("Any", client.xrange(stream.key(JOB)))
    assert [i for i, _ in found] == [e.id for e in entries]


def test_recovery_rebuilds_a_stream_that_is_gone(pipe: RedisServer) -> None:
    entries = fill(1, 1, 700)
    writer = stream.Writer(JOB, 1, redis.shared())
    writer.send(entries, create=True)
    redis.shared().flushdb()
    writer.send([line(1, 701)])
    assert writer.behind
    writer.recover()
    assert redis.shared().xlen(stream.key(JOB)) == 700  # 701 was never spooled here


def test_recovery_by_a_stale_attempt_is_refused(pipe: RedisServer) -> None:
    fill(1, 1, 3)
    stream.Writer(JOB, 2, redis.shared()).send([line(2, 1)], create=True)
    with pytest.raises(stream.Stale):
        stream.Writer(JOB, 1, redis.shared()).recover()


async def test_history_falls_back_to_the_spool(pipe: RedisServer) -> None:
    entries = fill(1, 1, 50)
    client = redis.async_client()
    try:
        stream.Writer(JOB, 1, redis.shared()).send(entries, create=True)
        from_stream = await history.read(client, JOB, "1-10", 5)
        redis.shared().xtrim(stream.key(JOB), maxlen=10)
        trimmed = await history.read(client, JOB, "1-10", 5)
        redis.shared().delete(stream.key(JOB))
        gone = await history.read(client, JOB, "1-10", 5)
    finally:
        await client.aclose()
    assert from_stream == trimmed == gone == entries[10:15]


async def test_history_without_a_spool_shows_the_gap(pipe: RedisServer) -> None:
    entries = [line(1, seq) for seq in range(1, 51)]
    client = redis.async_client()
    try:
        stream.Writer(JOB, 1, redis.shared()).send(entries, create=True)
        redis.shared().xtrim(stream.key(JOB), maxlen=10, approximate=False)
        found = await history.read(client, JOB, "1-10", 5)
    finally:
        await client.aclose()
    assert [e.id for e in found] == ["1-41", "1-42", "1-43", "1-44", "1-45"]
    assert history.first_missing("1-10", found)
    assert not history.first_missing("1-40", found)
    assert history.first_missing("0-0", found)


def test_no_gap_at_the_seams() -> None:
    assert not history.first_missing("0-0", [line(1, 1)])
    assert not history.first_missing("1-500", [line(2, 1)])
    assert not history.first_missing("1-500", [line(1, 500 + spool.FENCE_STEP + 1)])
