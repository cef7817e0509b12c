"""The socket against the running stack, and the hub's bookkeeping by itself."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from playground.jobs import spool, stream
from playground.jobs.follow import follow as follow_in_process
from playground.jobs.hub import QUEUE_EVENTS, Hub, Reader
from playground.jobs.socket import BURST, CLOSE_CODES, ERRORS, TOPICS
from playground.jobs.spool import Entry
from tests.playground.client import Client, follow, hear, say
from tests.stack import RedisServer

JOB = "01m8q9qpfj682t9yhg36"
NO_JOB = "0123456789abcdefghjk"


def numbers(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def test_a_job_from_its_submission_to_its_end(client: Client) -> None:
    with client.socket() as socket:
        job = client.submit("pipe.talk", events=30, wait_ms=5)
        events, others = follow(socket, job["id"])
        assert numbers(events) == [f"1-{n}" for n in range(1, 34)]
        assert others[0]["op"] == "snapshot"
        assert others[0]["job"]["id"] == job["id"]
        last = hear(socket)
        assert (last["op"], last["job"]["state"]) == ("snapshot", "succeeded")
        assert last["job"]["result"] == {"events": 30}
    assert events == client.events(job["id"])  # the same everywhere


def test_one_who_comes_late_sees_everything(client: Client) -> None:
    job = client.submit("pipe.talk", events=60, wait_ms=10)
    client.until(job["id"], "running")
    while len(client.events(job["id"])) < 20:
        pass
    with client.socket() as socket:
        events, _ = follow(socket, job["id"])
    assert numbers(events) == [f"1-{n}" for n in range(1, 64)]


def test_resuming_after_an_event(client: Client) -> None:
    job = client.submit("pipe.talk", wait=10, events=20)
    with client.socket() as socket:
        events, _ = follow(socket, job["id"], after="1-15")
    assert numbers(events) == [f"1-{n}" for n in range(16, 24)]


def test_breaking_off_anywhere_loses_and_doubles_nothing(client: Client) -> None:
    job = client.submit("pipe.talk", events=400, wait_ms=2)
    seen: list[str] = []
    while not seen or seen[-1] != "1-403":
        with client.socket() as socket:
            say(socket, op="sub", topic=f"job:{job['id']}", after=seen[-1] if seen else None)
            heard = 0
            while heard < 3 and (not seen or seen[-1] != "1-403"):
                message = hear(socket)
                if message["op"] == "ev":
                    seen += numbers(message["events"])
                    heard += 1
    assert seen == [f"1-{n}" for n in range(1, 404)]


def test_many_topics_and_readers_share_one_read(client: Client) -> None:
    jobs = [client.submit("pipe.talk", events=50, wait_ms=5)["id"] for _ in range(4)]
    found: dict[tuple[int, str], list[str]] = {}

    def read(reader: int) -> None:
        with client.socket() as socket:
            for job_id in jobs:
                say(socket, op="sub", topic=f"job:{job_id}", after=None)
            open_ = set(jobs)
            while open_:
                message = hear(socket, 20)
                if message["op"] == "ev":
                    job_id = message["topic"].removeprefix("job:")
                    found.setdefault((reader, job_id), []).extend(numbers(message["events"]))
                    if message["events"][-1]["type"] == "end":
                        open_.discard(job_id)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    expected = [f"1-{n}" for n in range(1, 54)]
    assert found == {(reader, job): expected for reader in range(5) for job in jobs}


def test_before_the_claim_a_snapshot_then_everything(client: Client) -> None:
    blocker = client.submit("pipe.train", steps=1000, wait_ms=20)
    client.until(blocker["id"], "running")
    waiting = client.submit("pipe.train", steps=3, wait_ms=0)
    with client.socket() as socket:
        say(socket, op="sub", topic=f"job:{waiting['id']}", after=None)
        first = hear(socket)
        assert (first["op"], first["job"]["state"], first["job"]["place"]) == (
            "snapshot",
            "queued",
            1,
        )
        client.post(f"/api/v1/jobs/{blocker['id']}/cancel")
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] != "end":
            message = hear(socket, 20)
            events += message["events"] if message["op"] == "ev" else []
    assert events[0]["data"] == {"state": "starting", "attempt": 1}


def test_an_abort_reaches_those_who_wait(client: Client) -> None:
    blocker = client.submit("pipe.train", steps=1000, wait_ms=20)
    client.until(blocker["id"], "running")
    waiting = client.submit("pipe.train", steps=3)
    with client.socket() as socket:
        say(socket, op="sub", topic=f"job:{waiting['id']}", after=None)
        assert hear(socket)["job"]["state"] == "queued"
        client.post(f"/api/v1/jobs/{waiting['id']}/cancel")
        message = hear(socket)
        assert [e["type"] for e in message["events"]] == ["end"]
        assert hear(socket)["job"]["state"] == "aborted"
    client.post(f"/api/v1/jobs/{blocker['id']}/cancel")


def test_after_the_stream_has_expired_the_spool_answers(client: Client) -> None:
    import redis

    job = client.submit("pipe.talk", wait=10, events=10)
    before = client.events(job["id"])
    with redis.Redis.from_url(client.stack.redis.url, socket_timeout=5) as store:
        assert store.delete(f"ev:{job['id']}") == 1
    assert client.events(job["id"]) == before
    with client.socket() as socket:
        events, _ = follow(socket, job["id"])
    assert events == before


def test_messages_that_are_none(client: Client) -> None:
    with client.socket() as socket:
        for sent, code in [
            ("nonsense", "bad_message"),
            ("[1]", "bad_message"),
            ('{"op":"dance"}', "bad_message"),
            ('{"op":"sub"}', "bad_topic"),
            ('{"op":"sub","topic":"jobs"}', "bad_topic"),
            (f'{{"op":"sub","topic":"job:{NO_JOB}","after":"x"}}', "bad_cursor"),
            (f'{{"op":"sub","topic":"job:{NO_JOB}"}}', "no_such_topic"),
            ('{"op":"sub","topic":"job:../x"}', "no_such_topic"),
        ]:
            socket.send(sent)
            answer = hear(socket)
            assert (answer["op"], answer["code"]) == ("error", code)
            assert answer["detail"]
        say(socket, op="ping")
        assert hear(socket) == {"op": "pong"}  # and none of them closed it


def test_errors_in_the_readers_language(client: Client) -> None:
    headers = {"Accept-Language": "zh-CN,zh;q=0.9"}
    with client.socket(additional_headers=headers) as socket:
        socket.send("?")
        assert hear(socket)["detail"] == ERRORS["bad_message"].zh


def test_topics_are_limited_and_given_back(client: Client) -> None:
    jobs = [client.submit("pipe.echo", text=str(n))["id"] for n in range(TOPICS + 1)]
    for job_id in jobs:
        client.until(job_id)
    with client.socket() as socket:
        for job_id in jobs:  # each ends at once and frees its place
            follow(socket, job_id)
    with client.socket() as socket:
        say(socket, op="unsub", topic=f"job:{jobs[0]}")
        say(socket, op="ping")
        assert hear(socket) == {"op": "pong"}


def closed_with(socket: Any, timeout_s: float = 5) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            socket.recv(timeout=timeout_s)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def test_too_large_a_frame(client: Client) -> None:
    with client.socket() as socket:
        with contextlib.suppress(ConnectionClosed):
            socket.send("x" * 70_000)
        assert closed_with(socket) == 1009


def test_too_many_messages(client: Client) -> None:
    with client.socket() as socket:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(int(BURST) + 40):
                say(socket, op="ping")
        assert closed_with(socket) == 4429


def test_another_address(client: Client) -> None:
    url = f"ws://127.0.0.1:{client.stack.port}/ws/v2"
    with connect(url, origin=Origin(client.stack.url)) as socket:
        assert closed_with(socket) == 4404


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_a_foreign_origin_is_turned_away_at_the_handshake(client: Client, origin: str) -> None:
    url = f"ws://127.0.0.1:{client.stack.port}/ws/v1"
    with pytest.raises(InvalidStatus) as refused, connect(url, origin=Origin(origin)):
        pass
    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body)["code"] == "foreign_origin"


def test_close_codes_have_words() -> None:
    assert all(text.en and text.zh for text in CLOSE_CODES.values())


# -- the hub -----------------------------------------------------------------------------------


def entry(seq: int, type_: str = "metric") -> Entry:
    return spool.entry(JOB, f"1-{seq}", type_, stream.rest_of({"step": seq}, 1.0))


def put(first: int, last: int, type_: str = "metric") -> None:
    """As a supervisor does: spool, then stream, and again if Redis had gone away."""
    from playground import redis

    entries = [entry(seq, type_) for seq in range(first, last + 1)]
    writer = spool.Writer(JOB, 1)
    writer.append(entries)
    writer.close()
    its_stream = stream.Writer(JOB, 1, redis.shared())
    its_stream.send(entries, create=first == 1)
    if its_stream.behind:
        its_stream.recover()


async def test_a_reader_drops_what_it_has(pipe: RedisServer) -> None:
    reader = Reader(JOB, "1-5")
    reader.push([entry(n) for n in range(3, 8)])
    reader.push([entry(7), entry(8)])
    assert [e.id for e in reader.take()] == ["1-6", "1-7", "1-8"]
    assert reader.cursor == "1-8"


async def test_an_overflowing_reader_loses_its_queue_not_its_place(pipe: RedisServer) -> None:
    reader = Reader(JOB, "1-5")
    reader.push([entry(n) for n in range(6, 8 + QUEUE_EVENTS)])
    assert reader.overflowed
    assert reader.take() == []
    assert reader.cursor == "1-5"


async def test_a_slow_reader_lags_and_still_gets_everything(pipe: RedisServer) -> None:
    hub = Hub()
    total = 3 * QUEUE_EVENTS
    seen: list[str] = []
    lagged = 0
    try:
        async with contextlib.aclosing(follow_in_process(hub, JOB, "0-0", idle_s=0.05)) as news:
            async for item in news:
                if item.what == "idle":
                    import asyncio

                    for first in range(1, total, 1000):
                        await asyncio.to_thread(put, first, first + 999)
                    await asyncio.to_thread(put, total + 1, total + 1, "end")
                    while not any(r.overflowed for t in hub._topics.values() for r in t.readers):
                        await asyncio.sleep(0.01)  # the hub has read on; this reader has not
                elif item.what == "lag":
                    lagged += 1
                seen += [e.id for e in item.entries]
    finally:
        await hub.close()
    assert lagged >= 1
    assert seen == [f"1-{n}" for n in range(1, total + 2)]


async def test_the_hub_survives_a_restart_of_redis(pipe: RedisServer) -> None:
    import asyncio

    hub = Hub()
    seen: list[str] = []
    await asyncio.to_thread(put, 1, 3)

    async def read() -> None:
        async with contextlib.aclosing(follow_in_process(hub, JOB, "0-0")) as news:
            async for item in news:
                seen.extend(e.id for e in item.entries)

    try:
        reading = asyncio.create_task(read())
        while len(seen) < 3:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(pipe.stop)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(pipe.start)
        await asyncio.to_thread(put, 4, 5)
        await asyncio.to_thread(put, 6, 6, "end")
        await asyncio.wait_for(reading, 10)
    finally:
        await hub.close()
    assert seen == [f"1-{n}" for n in range(1, 7)]
