"""`/metrics` and `/operations`: the figures are true, named, documented, and for the right eyes."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from playground.operations import figures, page
from tests import mariadb
from tests.playground.client import Client, follow
from tests.stack import ROOT, Stack

DOCS = ROOT / "playground/web/docs"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> Iterator[Any]:
    return text_string_to_metric_families(text)


def samples(client: Client, *, after_s: float = 0.0) -> Samples:
    time.sleep(after_s)
    answer = client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parsed(answer.body.decode())
        for sample in family.samples
    }


def test_every_metric_is_typed_explained_and_in_the_guide(stack: Stack, client: Client) -> None:
    client.submit("pipe.echo", wait=10)
    text = client.get("/metrics").body.decode()
    families = list(parsed(text))
    names = {re.sub(r"_total$", "", family.name) for family in families}
    assert len(names) == len(families) > 20
    for family in families:
        assert family.type in ("gauge", "counter") and family.documentation.endswith(".")
        # Prometheus: base units, no abbreviations of them, and _total for what only grows.
        assert not re.search(r"_(ms|mb|kb|minutes|percent)$", family.name), family.name
        if family.type == "counter":
            assert f"# TYPE {family.name}_total counter" in text
    for language in ("en", "zh-hans"):
        guide = (DOCS / f"operations.{language}.md").read_text(encoding="utf-8")
        told = re.findall(r"^\| `(playground_\w+)`", guide, re.MULTILINE)
        assert sorted(re.sub(r"_total$", "", name) for name in told) == sorted(names)
        for family in families:
            for sample in family.samples:
                row = next(r for r in guide.splitlines() if f"| `{sample.name}` |" in r)
                assert all(f"`{label}`" in row for label in sample.labels), row


@pytest.mark.slow
def test_the_figures_are_what_has_happened(stack: Stack, client: Client) -> None:
    kind = ("kind", "pipe.talk")
    before = samples(client, after_s=figures.KEPT_S)
    jobs = [client.submit("pipe.talk", wait=10, events=30) for _ in range(5)]
    failed = client.submit("pipe.case", wait=10, case="user")
    with client.socket() as socket:
        events, _ = follow(socket, jobs[0]["id"])
        held = client.submit("pipe.train", steps=100_000, wait_ms=20)
        waits = client.submit("pipe.train", steps=1)
        client.until(held["id"], "running")
        now = samples(client, after_s=figures.KEPT_S + figures.SETTLED.total_seconds() + 0.5)
        assert now["playground_sockets", ()] == 1
        assert now["playground_queue_running_jobs", (("queue", "training"),)] == 1
        assert now["playground_queue_waiting_jobs", (("queue", "training"),)] == 1
        assert 5 < now["playground_queue_oldest_seconds", (("queue", "training"),)] < 120
        assert now["playground_queue_slots", (("queue", "interactive"),)] == 2
        assert now["playground_queue_no_op_age_seconds", (("queue", "interactive"),)] < 10
        assert all(v == 1 for (name, _), v in now.items() if name == "playground_part_up")
        busy = [
            value / 2**20
            for (name, labels), value in now.items()
            if name == "playground_runner_resident_bytes" and dict(labels)["busy"] == "true"
        ]
        # An interpreter is not below 5 MB, and a job's limit is 4 GB.
        assert busy and all(5 < value < 4096 for value in busy)
    for job in (held, waits):
        client.control(job["id"], "cancel")

    def grown(name: str, *labels: tuple[str, str]) -> float:
        return now[name, labels] - before.get((name, labels), 0.0)

    assert grown("playground_jobs_ended_total", kind, ("reason", ""), ("state", "succeeded")) == 5
    case = (("kind", "pipe.case"), ("reason", "user_error"), ("state", "failed"))
    assert failed["state"] == "failed" and grown("playground_jobs_ended_total", *case) == 1
    delivered = sum(len(client.events(job["id"])) for job in [*jobs, failed])
    assert grown("playground_events_delivered_total") >= delivered + len(events)
    assert grown("playground_catch_ups_total") >= 7
    # The latencies, against the rows of the last hour as anybody can read them.
    spent = sorted(_seconds(job) for job in _ended(client, "pipe.talk"))
    label = (kind, ("quantile", "0.5"))
    assert now["playground_jobs_ended_last_hour", (kind,)] == len(spent)
    assert now["playground_job_end_seconds", label] == pytest.approx(
        statistics.median_low(spent), abs=1e-4
    )
    first = now["playground_job_first_event_seconds", label]
    assert 0 < first <= now["playground_job_end_seconds", label]


def _ended(client: Client, kind: str) -> list[dict[str, Any]]:
    found = client.get(f"/api/v1/jobs?kind={kind}&limit=100").json["items"]
    return [job for job in found if job["ended_at"]]


def _seconds(job: dict[str, Any]) -> float:
    from datetime import datetime

    moments = (datetime.fromisoformat(job[name]) for name in ("created_at", "ended_at"))
    start, end = moments
    return (end - start).total_seconds()


def test_quantiles_by_nearest_rank() -> None:
    """The worked example of the method: percentiles of 15, 20, 35, 40, 50 (Wikipedia, Percentile,
    "The nearest-rank method": P50 = 35, P100 = 50)."""
    found = figures.quantiles([50, 15, 35, 20, 40])
    assert found == {0.5: 35, 0.95: 50, 0.99: 50}
    assert figures.quantiles(range(1, 101)) == {0.5: 50, 0.95: 95, 0.99: 99}
    assert figures.quantiles([]) == {}


def test_the_page_shows_them_and_nobody_elses_words(stack: Stack, client: Client) -> None:
    job = client.submit("pipe.case", wait=10, case="user")
    mine = client.get("/operations").body.decode()
    assert "That is not possible." in mine and f"?run={job['id']}" in mine
    assert "<meta charset" in mine
    part = client.get("/operations", HX_Request="true").body.decode()
    assert "<html" not in part and f"?run={job['id']}" in part
    chinese = client.get("/operations", Accept_Language="zh-CN").body.decode()
    assert "运行状况" in chinese and "那不可能。" in chinese
    stack.shell(
        f"""
        from playground.accounts.models import User
        from playground.jobs.models import Job
        other = User.objects.create(username="somebody")
        Job.objects.filter(pk="{job["id"]}").update(owner=other)
        """
    )
    time.sleep(page.MAX_AGE_S)
    foreign = client.get("/operations", HX_Request="true").body.decode()
    assert f"?run={job['id']}" not in foreign
    assert "Somebody else" in foreign


def test_the_guides_sql_is_what_the_tests_run() -> None:
    for language in ("en", "zh-hans"):
        guide = (DOCS / f"operations.{language}.md").read_text(encoding="utf-8")
        [block] = re.findall(r"^```sql\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
        assert tuple(block.strip().rstrip(";").split(";\n")) == mariadb.SET_UP
