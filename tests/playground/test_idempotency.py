"""Idempotency-Key: the same request again is the same job, whatever happened in between."""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.http import HttpResponse

from tests.playground.client import Answer, Client

JOBS = "/api/v1/jobs"


def ask(client: Client, key: str, text: str = "hello", **headers: str) -> Answer:
    body = {"kind": "pipe.echo", "params": {"text": text}}
    return client.post(JOBS, body, Idempotency_Key=key, **headers)


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())


def test_the_same_request_gets_the_first_answer(client: Client, key: str) -> None:
    first, second = ask(client, key), ask(client, key)
    assert (first.status, second.status) == (202, 202)
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert second.body == first.body
    assert second.headers["location"] == first.headers["location"]
    client.until(first.json["id"])
    assert ask(client, key).body == first.body  # the first answer, though the job has ended since


def test_a_waited_for_answer_is_replayed_with_its_result(client: Client, key: str) -> None:
    first = ask(client, key, Prefer="wait=10")
    assert first.status == 200 and first.json["result"] == {"text": "hello"}
    again = ask(client, key, Prefer="wait=10")
    assert again.status == 200 and again.body == first.body
    assert again.headers["preference-applied"] == "wait=10"


def test_another_body_is_refused(client: Client, key: str) -> None:
    ask(client, key)
    for changed in (ask(client, key, "other"), ask(client, key, Cancel_After="5m")):
        assert changed.status == 422
        assert changed.json["code"] == "idempotency_mismatch"


def test_while_the_first_is_being_answered(client: Client, key: str) -> None:
    body = {"kind": "pipe.talk", "params": {"events": 40, "wait_ms": 50}}
    answers: list[Answer] = []

    def first() -> None:
        answers.append(client.post(JOBS, body, Idempotency_Key=key, Prefer="wait=10"))

    thread = threading.Thread(target=first)
    thread.start()
    time.sleep(0.7)
    meanwhile = client.post(JOBS, body, Idempotency_Key=key)
    thread.join()
    assert meanwhile.status == 409
    assert meanwhile.json["code"] == "idempotency_in_progress"
    assert meanwhile.headers["retry-after"] == "1"
    assert client.post(JOBS, body, Idempotency_Key=key).body == answers[0].body


def test_a_client_that_left_while_it_waited_finds_its_job(client: Client, key: str) -> None:
    """The connection is cut in mid-wait; the key still leads to the one job."""
    import http.client
    import json

    body = {"kind": "pipe.talk", "params": {"events": 20, "wait_ms": 50}}
    headers = {"Content-Type": "application/json", "Idempotency-Key": key, "Prefer": "wait=10"}
    gone = http.client.HTTPConnection("127.0.0.1", client.stack.port, timeout=10)
    gone.request("POST", JOBS, json.dumps(body), headers)
    time.sleep(0.5)
    gone.close()
    until = time.monotonic() + 30
    while (again := client.post(JOBS, body, Idempotency_Key=key)).status == 409:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert again.headers["idempotent-replayed"] == "true"
    assert client.until(again.json["id"])["state"] == "succeeded"


def test_the_answer_outlives_its_job(client: Client, key: str) -> None:
    first = ask(client, key, Prefer="wait=10")
    assert client.request("DELETE", f"{JOBS}/{first.json['id']}").status == 204
    again = ask(client, key, Prefer="wait=10")
    assert (again.status, again.body) == (200, first.body)


def test_fifty_at_once_make_one_job(client: Client, key: str) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: ask(client, key, "at once"), range(50)))
    taken = [answer for answer in answers if answer.status == 202]
    rest = {answer.json["code"] for answer in answers if answer.status != 202}
    assert rest <= {"idempotency_in_progress"}
    assert len({answer.json["id"] for answer in taken}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in taken) == 1


def test_a_refused_request_may_be_corrected_under_its_key(client: Client, key: str) -> None:
    refused = client.post(JOBS, {"kind": "pipe.ecko", "params": {}}, Idempotency_Key=key)
    assert refused.status == 422 and refused.json["code"] == "unknown_kind"
    assert ask(client, key).status == 202


def test_a_start_that_is_over_by_now_is_no_reason_to_refuse_a_replay(
    client: Client, key: str
) -> None:
    from datetime import UTC, datetime, timedelta

    start = (datetime.now(UTC) - timedelta(seconds=58)).isoformat()  # a minute is forgiven
    body = {"kind": "pipe.echo", "params": {}, "start_at": start}
    first = client.post(JOBS, body, Idempotency_Key=key)
    assert first.status == 202
    time.sleep(2.5)
    assert client.post(JOBS, body).status == 422
    assert client.post(JOBS, body, Idempotency_Key=key).body == first.body


@pytest.mark.parametrize("bad", ["", '""', "x" * 201, "snowman-\xe9", "tab\there"])
def test_what_is_no_key(client: Client, bad: str) -> None:
    refused = client.post(JOBS, {"kind": "pipe.echo", "params": {}}, Idempotency_Key=bad or " ")
    assert refused.status == 422
    assert refused.json["errors"][0]["pointer"] == "/Idempotency-Key"


def test_a_quoted_key_is_the_same_key(client: Client, key: str) -> None:
    assert ask(client, f'"{key}"').json["id"] == ask(client, key).json["id"]


@pytest.mark.django_db
class TestRows:
    """What time does to a key."""

    def once(self, known: Any, made: list[str]) -> Any:
        from playground.jobs import idempotency
        from playground.jobs.models import Job

        def work() -> Job:
            job = Job.objects.create(
                owner_id=known.owner_id,
                kind="pipe.echo",
                queue="interactive",
                params={},
                seed=1,
                deadline_s=1,
            )
            made.append(job.pk)
            return job

        return idempotency.once(known, work, lambda job: HttpResponse(job.pk))

    @pytest.fixture
    def known(self, db: None) -> Any:
        from playground.accounts.owner import local_owner
        from playground.jobs.idempotency import Ticket

        return Ticket(local_owner().pk, "POST", JOBS, "a" * 64, "d" * 64)

    def age(self, **ago: float) -> None:
        from datetime import timedelta

        from django.utils import timezone

        from playground.jobs.models import IdempotencyKey

        IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(**ago))

    def test_after_a_day_the_key_is_free(self, known: Any) -> None:
        from playground.jobs import idempotency

        made: list[str] = []
        self.once(known, made)
        self.age(hours=24, seconds=1)
        assert idempotency.old_keys().count() == 1
        self.once(known, made)
        assert len(made) == 2
        assert not idempotency.old_keys().exists()

    def test_an_answer_that_was_never_finished_locks_nothing(self, known: Any) -> None:
        from playground.jobs import idempotency
        from playground.problems import ApiProblem

        made: list[str] = []
        self.once(known, made)  # and its process is killed here
        with pytest.raises(ApiProblem) as early:
            self.once(known, made)
        assert early.value.code == "idempotency_in_progress"
        self.age(seconds=idempotency.UNFINISHED_S + 1)
        answer = self.once(known, made)
        assert [answer.content.decode()] == made
        assert answer["Idempotent-Replayed"] == "true"

    def test_work_that_fails_leaves_no_key(self, known: Any) -> None:
        from playground.jobs import idempotency
        from playground.jobs.models import IdempotencyKey

        def fails() -> Any:
            raise ValueError

        with pytest.raises(ValueError):
            idempotency.once(known, fails, lambda job: HttpResponse(job.pk))
        assert not IdempotencyKey.objects.exists()
