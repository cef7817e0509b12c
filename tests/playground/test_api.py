"""REST against the running stack: what works."""

from __future__ import annotations

import time

from tests.playground.client import Client, problem


def test_submit_wait_and_read(client: Client) -> None:
    answer = client.post(
        "/api/v1/jobs", {"kind": "pipe.echo", "params": {"text": "héllo 你好"}}, Prefer="wait=10"
    )
    assert (answer.status, answer.headers["preference-applied"]) == (200, "wait=10")
    job = answer.json
    assert answer.headers["location"] == job["urls"]["self"]
    assert (job["state"], job["attempt"], job["reason"]) == ("succeeded", 1, None)
    assert job["result"] == {"text": "héllo 你好"}
    assert job["urls"]["page"] == f"/labs/pipe?run={job['id']}"
    assert job["created_at"] <= job["started_at"] <= job["ended_at"]
    events = client.events(job["id"])
    assert [e["id"] for e in events] == ["1-1", "1-2", "1-3"]
    assert [(e["type"], e["data"].get("state")) for e in events] == [
        ("state", "starting"),
        ("state", "running"),
        ("end", "succeeded"),
    ]
    assert all(e["job"] == job["id"] and abs(e["t"] - time.time()) < 60 for e in events)


def test_defaults_are_filled_in_and_a_job_is_accepted_at_once(client: Client) -> None:
    answer = client.post("/api/v1/jobs", {"kind": "pipe.echo"})
    assert (answer.status, answer.json["params"]) == (202, {"text": "hello"})
    client.until(answer.json["id"])


def test_waiting_too_short_answers_202(client: Client) -> None:
    answer = client.post(
        "/api/v1/jobs",
        {"kind": "pipe.talk", "params": {"events": 100, "wait_ms": 100}},
        Prefer="respond-async, wait=1",
    )
    assert (answer.status, answer.headers["preference-applied"]) == (202, "respond-async, wait=1")
    client.post(f"/api/v1/jobs/{answer.json['id']}/cancel")
    client.until(answer.json["id"], "canceled")


def test_events_by_pages(client: Client) -> None:
    job = client.submit("pipe.talk", wait=10, events=25)
    seen: list[str] = []
    after = "0-0"
    while after:
        page = client.get(f"/api/v1/jobs/{job['id']}/events?after={after}&limit=10").json
        seen += [e["id"] for e in page["items"]]
        after = page["next"]
    assert seen == [f"1-{n}" for n in range(1, 29)]


def test_jobs_by_pages_forwards_and_back(client: Client) -> None:
    made = [client.submit("pipe.echo", text=f"p{n}")["id"] for n in range(5)]
    for job_id in made:
        client.until(job_id)
    newest = made[::-1]
    first = client.get("/api/v1/jobs?kind=pipe.echo&limit=2").json
    assert ([j["id"] for j in first["items"]], first["prev"]) == (newest[:2], None)
    second = client.get(f"/api/v1/jobs?kind=pipe.echo&limit=2&cursor={first['next']}").json
    assert [j["id"] for j in second["items"]] == newest[2:4]
    back = client.get(f"/api/v1/jobs?kind=pipe.echo&limit=2&cursor={second['prev']}").json
    assert [j["id"] for j in back["items"]] == newest[:2]
    assert client.get("/api/v1/jobs?kind=pipe.echo&state=aborted").json["items"] == []


def test_etag(client: Client) -> None:
    job = client.submit("pipe.echo", wait=10)
    first = client.get(job["urls"]["self"])
    again = client.get(job["urls"]["self"], If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    chinese = client.get(
        job["urls"]["self"], If_None_Match='"other"', Accept_Language="zh-CN,zh;q=0.9"
    )
    assert chinese.status == 200


def test_kinds(client: Client) -> None:
    items = {kind["name"]: kind for kind in client.get("/api/v1/kinds").json["items"]}
    assert {"pipe.echo", "pipe.train", "transformer.train"} <= set(items)
    one = client.get("/api/v1/kinds/pipe.train").json
    assert one == items["pipe.train"]
    assert one["params"]["properties"]["lr"]["x-label"] == {
        "en": "Learning rate",
        "zh-hans": "学习率",
    }
    assert one["settable"] == ["lr"]


def test_queue_shows_my_place(client: Client) -> None:
    running = client.submit("pipe.train", steps=1000, wait_ms=50)["id"]
    client.until(running, "running")
    waiting = [client.submit("pipe.train", steps=1)["id"] for _ in range(2)]
    places = [client.job(job_id)["place"] for job_id in waiting]
    queues = {q["name"]: q for q in client.get("/api/v1/queue").json["queues"]}
    for job_id in (*waiting, running):
        client.post(f"/api/v1/jobs/{job_id}/cancel")
    client.until(running, "canceled")
    assert places == [1, 2]
    assert (queues["training"]["busy"], queues["training"]["waiting"]) == (1, 2)
    mine = queues["training"]["mine"]
    assert [(row["id"], row["place"]) for row in mine] == [(waiting[0], 1), (waiting[1], 2)]
    first, second = (row["estimate_s"] for row in mine)  # none where nothing is known yet
    assert first is None or second is None or 0 <= first <= second


def test_delete(client: Client) -> None:
    job = client.submit("pipe.case", wait=10, case="file")
    # Without a body there is no type to give; what another site sends is refused all the same.
    bare = {"Content_Type": "", "Sec_Fetch_Site": "cross-site"}
    problem(client.request("DELETE", job["urls"]["self"], **bare), 403, "foreign_origin")
    assert client.request("DELETE", job["urls"]["self"], Content_Type="").status == 204
    problem(client.get(job["urls"]["self"]), 404, "job_not_found")
    problem(client.get(f"{job['urls']['artifacts']}/sub/plain.txt"), 404, "job_not_found")
    assert not (client.stack.var / "artifacts" / job["id"]).exists()
    assert not (client.stack.var / "spool" / job["id"]).exists()


def test_a_job_reads_what_another_made(client: Client) -> None:
    source = client.submit("pipe.train", wait=10, steps=3, wait_ms=0)
    reader = client.submit("pipe.ref", wait=10, model=source["id"])
    assert reader["result"] == {"files": ["model.bin"]}


def test_nan_never_travels_bare(client: Client) -> None:
    job = client.submit("pipe.case", wait=10, case="nan")
    assert job["result"] == {"loss": {"$num": "NaN"}}  # Client refuses NaN in any JSON
    metric = next(e for e in client.events(job["id"]) if e["type"] == "metric")
    assert metric["data"]["up"] == {"$num": "Infinity"}
    assert metric["data"]["down"] == {"$num": "-Infinity"}


def test_what_a_job_prints_does_not_count_as_events(client: Client) -> None:
    job = client.submit("pipe.case", wait=10, case="print")
    assert list(job["result"]) == ["pid"]


def test_the_openapi_page_is_ours_alone(client: Client) -> None:
    page = client.get("/api/v1/docs")
    assert page.status == 200
    assert b"https://" not in page.body.replace(b"http://www.w3.org", b"")
    assert b"/static/ninja/swagger-ui" in page.body
    schema = client.get("/api/v1/openapi.json").json
    assert {"/api/v1/jobs", "/api/v1/jobs/{job_id}", "/api/v1/kinds"} <= set(schema["paths"])


def test_health(client: Client) -> None:
    status, parts = client.stack.health()
    assert status == 200
    assert set(parts) == {
        "web",
        "database",
        "redis",
        "dispatcher",
        "worker.interactive",
        "worker.training",
    }
    assert all(part["ok"] for part in parts.values())
