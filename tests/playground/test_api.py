"""REST against the running stack: the happy path, and every way to fail in one shape."""

from __future__ import annotations

import hashlib
import http.client
import json
import time
from typing import Any

import pytest

from playground.problems import PROBLEMS
from tests.playground.client import Answer, Client

NO_JOB = "0123456789abcdefghjk"


def problem(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """Asserts the one shape; returns the body."""
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    found: dict[str, Any] = answer.json
    assert set(found) == {
        "type",
        "title",
        "status",
        "detail",
        "instance",
        "code",
        "errors",
        "request_id",
    }
    assert (found["status"], found["code"], found["type"]) == (status, code, f"/problems/{code}")
    assert found["title"]
    assert found["detail"]
    assert "{" not in found["detail"]
    assert all(set(e) <= {"pointer", "detail", "nearest"} and e["detail"] for e in found["errors"])
    assert PROBLEMS[code].status == status
    return found


# -- the happy path ----------------------------------------------------------------------------


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
    assert (answer.status, answer.headers["preference-applied"]) == (202, "wait=1")
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
    assert queues["training"]["mine"] == [
        {"id": waiting[0], "place": 1},
        {"id": waiting[1], "place": 2},
    ]


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


# -- artifacts ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(stack: Any) -> dict[str, Any]:
    job = Client(stack).submit("pipe.train", wait=10, steps=1, wait_ms=0)
    assert job["state"] == "succeeded"
    return job


CONTENT = bytes(range(256)) * 4


def test_artifacts_are_listed(client: Client, made: dict[str, Any]) -> None:
    items = client.get(made["urls"]["artifacts"]).json["items"]
    assert [(i["name"], i["size"]) for i in items] == [("model.bin", 1024)]
    assert items[0]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert client.get(items[0]["url"]).body == CONTENT


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=10-19", (10, 20)),
        ("bytes=1000-", (1000, 1024)),
        ("bytes=-24", (1000, 1024)),
        ("bytes=-9999", (0, 1024)),
        ("bytes=1000-9999", (1000, 1024)),
    ],
)
def test_range(client: Client, made: dict[str, Any], asked: str, span: tuple[int, int]) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/model.bin", Range=asked)
    start, end = span
    assert (answer.status, answer.body) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/1024"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_range_outside(client: Client, made: dict[str, Any], asked: str) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/model.bin", Range=asked)
    problem(answer, 416, "range_not_satisfiable")
    assert answer.headers["content-range"] == "bytes */1024"


@pytest.mark.parametrize("asked", ["bytes=5-2", "bytes=-", "lines=1-2", "bytes=0-1,4-5", "bytes=x"])
def test_a_range_that_is_none_gives_the_whole_file(
    client: Client, made: dict[str, Any], asked: str
) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/model.bin", Range=asked)
    assert (answer.status, answer.body) == (200, CONTENT)


def test_conditional_and_head(client: Client, made: dict[str, Any]) -> None:
    url = f"{made['urls']['artifacts']}/model.bin"
    etag = client.get(url).headers["etag"]
    assert client.get(url, If_None_Match=etag).status == 304
    assert client.get(url, Range="bytes=0-9", If_Range='"other"').status == 200
    assert client.get(url, Range="bytes=0-9", If_Range=etag).status == 206
    head = client.request("HEAD", url)
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "1024")


def test_a_page_in_an_artifact_is_not_served_as_a_page(client: Client) -> None:
    job = client.submit("pipe.case", wait=10, case="file")
    page = client.get(f"{job['urls']['artifacts']}/page.html")
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["x-content-type-options"] == "nosniff"
    text = client.get(f"{job['urls']['artifacts']}/sub/plain.txt")
    assert (text.headers["content-type"], text.body) == ("text/plain", b"0123456789")


@pytest.mark.parametrize(
    "name",
    [
        "../1/model.bin",
        "..%2f..%2f..%2fplayground.sqlite3",
        "%2e%2e/%2e%2e/secret-key",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "model.bin%00",
        "sub/../model.bin",
        ".",
        "",
        "model.bin/",
    ],
)
def test_no_way_out_of_the_folder(client: Client, made: dict[str, Any], name: str) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/{name}")
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"


# -- server-sent events ------------------------------------------------------------------------


def stream(
    client: Client, job_id: str, last: str | None = None, stop_after: int | None = None
) -> list[dict[str, Any]]:
    """Events out of the stream until it ends, or until so many have come."""
    connection = http.client.HTTPConnection("127.0.0.1", client.stack.port, timeout=20)
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
    connection.request("GET", f"/api/v1/jobs/{job_id}/events", headers=headers)
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    found: list[dict[str, Any]] = []
    event_id = ""
    for raw in answer:
        line = raw.decode().rstrip("\n")
        if line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("data: "):
            found.append(json.loads(line[6:]))
            assert found[-1]["id"] == event_id
            if len(found) == stop_after:
                break
    connection.close()
    return found


def test_sse_follows_to_the_end_and_resumes(client: Client) -> None:
    job = client.submit("pipe.talk", events=40, wait_ms=20)
    first = stream(client, job["id"], stop_after=12)
    rest = stream(client, job["id"], last=first[-1]["id"])
    assert [e["id"] for e in first + rest] == [f"1-{n}" for n in range(1, 44)]
    assert rest[-1]["type"] == "end"
    over = client.get(
        job["urls"]["events"], Accept="text/event-stream", Last_Event_ID=rest[-1]["id"]
    )
    assert over.status == 204


def test_sse_of_a_job_that_is_over(client: Client) -> None:
    job = client.submit("pipe.talk", wait=10, events=5)
    assert [e["id"] for e in stream(client, job["id"])] == [f"1-{n}" for n in range(1, 9)]


# -- every way to fail -------------------------------------------------------------------------

JOBS = "/api/v1/jobs"
FAILURES: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/api/v1/nothing", {}, 404, "not_found"),
    ("GET", "/api/nothing", {}, 404, "not_found"),
    ("GET", "/api/", {}, 404, "not_found"),
    ("GET", f"{JOBS}/{NO_JOB}", {}, 404, "job_not_found"),
    ("GET", f"{JOBS}/..%2f..", {}, 404, "not_found"),
    ("GET", f"{JOBS}/{NO_JOB}/events", {}, 404, "job_not_found"),
    ("GET", f"{JOBS}/{NO_JOB}/artifacts", {}, 404, "job_not_found"),
    ("GET", f"{JOBS}/{NO_JOB}/artifacts/x", {}, 404, "job_not_found"),
    ("POST", f"{JOBS}/{NO_JOB}/cancel", {"body": {}}, 404, "job_not_found"),
    ("POST", f"{JOBS}/{NO_JOB}/control", {"body": {"action": "pause"}}, 404, "job_not_found"),
    ("DELETE", f"{JOBS}/{NO_JOB}", {}, 404, "job_not_found"),
    ("GET", "/api/v1/kinds/pipe.ecko", {}, 404, "kind_not_found"),
    ("PUT", JOBS, {"body": {}}, 405, "method_not_allowed"),
    ("POST", "/api/v1/kinds", {"body": {}}, 405, "method_not_allowed"),
    ("POST", JOBS, {"raw": b"{"}, 400, "invalid_json"),
    ("POST", JOBS, {"raw": b"\xff"}, 400, "invalid_json"),
    ("POST", JOBS, {"raw": b""}, 422, "invalid_request"),
    ("POST", JOBS, {"body": []}, 422, "invalid_request"),
    ("POST", JOBS, {"body": {"params": {}}}, 422, "invalid_request"),
    ("POST", JOBS, {"body": {"kind": "pipe.echo", "more": 1}}, 422, "invalid_request"),
    ("POST", JOBS, {"body": {"kind": "pipe.echo", "params": []}}, 422, "invalid_request"),
    ("POST", JOBS, {"body": {"kind": "pipe.ecko"}}, 422, "unknown_kind"),
    ("POST", JOBS, {"body": {"kind": "pipe.echo", "params": {"tex": 1}}}, 422, "invalid_params"),
    ("POST", JOBS, {"raw": b"x", "Content_Type": "text/plain"}, 415, "not_json"),
    ("POST", JOBS, {"raw": b"[" * 1_100_000}, 413, "too_large"),
    ("GET", f"{JOBS}?cursor=x", {}, 422, "invalid_request"),
    ("GET", f"{JOBS}?limit=0", {}, 422, "invalid_request"),
    ("GET", f"{JOBS}?limit=many", {}, 422, "invalid_request"),
    ("GET", f"{JOBS}?state=nope", {}, 422, "invalid_request"),
    ("GET", f"{JOBS}?kind=nope", {}, 422, "invalid_request"),
]


@pytest.mark.parametrize(("method", "path", "sent", "status", "code"), FAILURES)
def test_every_failure_has_one_shape(
    client: Client, method: str, path: str, sent: dict[str, Any], status: int, code: str
) -> None:
    problem(client.request(method, path, **sent), status, code)


def test_failures_of_a_job_that_exists(client: Client, made: dict[str, Any]) -> None:
    base = made["urls"]["self"]
    problem(client.get(f"{base}/artifacts/none.bin"), 404, "artifact_not_found")
    problem(client.get(f"{base}/events?after=x"), 422, "invalid_request")
    problem(client.get(f"{base}/events", Accept="image/png"), 406, "not_acceptable")
    found = problem(client.control(made["id"], "pause"), 409, "illegal_state")
    assert found["detail"] == (
        "The job is succeeded; pause has a use only while it is starting, running or paused."
    )
    problem(client.post(f"{base}/control", {"action": "fly"}), 422, "invalid_request")
    echo = client.submit("pipe.echo", wait=10)
    problem(client.control(echo["id"], "pause"), 409, "control_not_offered")
    running = client.submit("pipe.talk", events=100, wait_ms=50)
    client.until(running["id"], "running")
    problem(client.request("DELETE", running["urls"]["self"]), 409, "not_ended")
    client.post(f"{running['urls']['self']}/cancel")


def test_invalid_params_point_into_the_body_in_the_readers_language(client: Client) -> None:
    body = {"kind": "pipe.train", "params": {"steps": 0, "lr": "fast", "stepz": 3}}
    english = problem(client.post(JOBS, body), 422, "invalid_params")
    chinese = problem(client.post(JOBS, body, Accept_Language="zh-CN"), 422, "invalid_params")
    pointers = {e["pointer"] for e in english["errors"]}
    assert pointers == {"/params/steps", "/params/lr", "/params/stepz"}
    assert {e["pointer"] for e in chinese["errors"]} == pointers
    assert chinese["title"] == "参数无效"
    assert all(any("\u4e00" <= c <= "\u9fff" for c in e["detail"]) for e in chinese["errors"])
    near = next(e for e in english["errors"] if e["pointer"] == "/params/stepz")
    assert near["nearest"] == ["steps"]


def test_a_refused_combination_names_the_nearest(client: Client) -> None:
    answer = client.post(JOBS, {"kind": "pipe.case", "params": {"case": "refused"}})
    found = problem(answer, 422, "invalid_params")
    assert found["errors"] == [
        {"pointer": "/params/case", "detail": "That case is refused.", "nearest": ["nan"]}
    ]


def newest(client: Client) -> str:
    """The id of the job that was submitted last. An earlier test's may still be ending."""
    (job,) = client.get(f"{JOBS}?limit=1").json["items"]
    return str(job["id"])


@pytest.mark.parametrize("kind", ["pipe.ref", "transformer.trace", "transformer.generate"])
@pytest.mark.parametrize("model", [NO_JOB, "nope", "../../etc", "/etc", "minilm", NO_JOB.upper()])
def test_a_reference_to_a_run_that_is_none(client: Client, kind: str, model: str) -> None:
    before = newest(client)
    answer = client.post(JOBS, {"kind": kind, "params": {"model": model}})
    (found,) = problem(answer, 422, "invalid_params")["errors"]
    assert found["pointer"] == "/params/model" and f'"{model}"' in found["detail"]
    assert newest(client) == before  # nothing was queued


def test_a_reference_to_a_run_of_another_kind(client: Client, made: dict[str, Any]) -> None:
    body = {"kind": "transformer.trace", "params": {"model": made["id"]}}
    (found,) = problem(client.post(JOBS, body), 422, "invalid_params")["errors"]
    assert found["pointer"] == "/params/model"
    assert "run of pipe.train; this takes one of transformer.train" in found["detail"]
    (found,) = client.post(JOBS, body, Accept_Language="zh-CN").json["errors"]
    assert "这里要用 transformer.train" in found["detail"]


def test_a_reference_to_a_run_without_files(client: Client) -> None:
    job = client.submit("pipe.train", steps=500, wait_ms=20, save_every=1000)
    ref = {"kind": "pipe.ref", "params": {"model": job["id"]}}
    (found,) = problem(client.post(JOBS, ref), 422, "invalid_params")["errors"]
    assert found["detail"] == "That run has not made any files yet."
    client.post(f"{JOBS}/{job['id']}/cancel")
    client.until(job["id"], "canceled", "aborted")
    (found,) = problem(client.post(JOBS, ref), 422, "invalid_params")["errors"]
    assert found["detail"] == "That run ended without making any files."


def test_a_text_that_the_model_cannot_read_is_refused_before_it_is_queued(client: Client) -> None:
    tiny = {"layers": 1, "heads": 1, "d_model": 16, "block": 8, "steps": 5, "batch": 2}
    run = client.submit("transformer.train", **tiny, data="text", text="abcdefgh " * 20)
    client.until(run["id"], "succeeded", timeout_s=60)
    for kind, params, pointer in [
        ("trace", {"text": "abZ"}, "/params/text"),
        ("trace", {"text": "abcdefgh a"}, "/params/text"),
        ("generate", {"prompt": "Z"}, "/params/prompt"),
        ("check", {"text": "Z", "tensor": "logits", "index": [0, 0]}, "/params/text"),
    ]:
        body = {"kind": f"transformer.{kind}", "params": {"model": run["id"], **params}}
        (found,) = problem(client.post(JOBS, body), 422, "invalid_params")["errors"]
        assert found["pointer"] == pointer
    done = client.submit("transformer.trace", wait=10, model=run["id"], text="abc")
    client.until(done["id"], "succeeded", timeout_s=60)
    (found,) = problem(
        client.post(JOBS, {"kind": "transformer.trace", "params": {"model": done["id"]}}),
        422,
        "invalid_params",
    )["errors"]
    assert "run of transformer.trace" in found["detail"]


@pytest.mark.parametrize(
    ("query", "pointer", "nearest"),
    [
        ("state=nope", "/state", None),
        ("state=runing", "/state", ["running"]),
        ("kind=pipe.ecko", "/kind", ["pipe.echo"]),
    ],
)
def test_a_filter_that_is_none_names_the_choices(
    client: Client, query: str, pointer: str, nearest: list[str] | None
) -> None:
    (found,) = problem(client.get(f"{JOBS}?{query}"), 422, "invalid_request")["errors"]
    assert found["pointer"] == pointer and f'"{query.partition("=")[2]}"' in found["detail"]
    words = "queued, starting, running" if pointer == "/state" else "pipe.echo"
    assert words in found["detail"]
    assert nearest is None or found["nearest"][0] == nearest[0]


@pytest.mark.parametrize(
    ("method", "path", "body", "english", "chinese"),
    [
        ("POST", JOBS, [], "Give a JSON object", "JSON 对象"),
        ("POST", JOBS, {"kind": "pipe.echo", "params": []}, "Give a JSON object", "JSON 对象"),
        ("POST", JOBS, {"kind": 3}, "Give text.", "请填文本。"),
        ("POST", JOBS, {"kind": "x" * 65}, "at most 64 characters", "最多 64 个字符"),
        ("GET", f"{JOBS}?limit=0", None, "Give at least 1.", "不能小于 1。"),
        ("GET", f"{JOBS}?limit=999", None, "Give at most 200.", "不能大于 200。"),
        ("GET", f"{JOBS}?limit=many", None, "Give a whole number.", "请填整数。"),
        (
            "POST",
            f"{JOBS}/{NO_JOB}/control",
            {"action": "fly"},
            "one of these: cancel, pause, resume, step, set.",
            "cancel, pause, resume, step, set。",
        ),
    ],
)
def test_the_envelope_speaks_plainly_in_both_languages(
    client: Client, method: str, path: str, body: Any, english: str, chinese: str
) -> None:
    for lang, words in (("en", english), ("zh-CN", chinese)):
        answer = client.request(method, path, body, Accept_Language=lang)
        (found,) = problem(answer, 422, "invalid_request")["errors"]
        assert words in found["detail"] and "nput should" not in found["detail"]


def test_a_bad_live_value_is_refused_before_it_is_sent(client: Client) -> None:
    job = client.submit("pipe.train", steps=500, wait_ms=20)
    client.until(job["id"], "running")
    found = problem(client.control(job["id"], "set", lr=99), 422, "invalid_params")
    assert found["errors"][0]["pointer"] == "/values/lr"
    problem(client.control(job["id"], "set", steps=3), 422, "invalid_params")
    client.post(f"/api/v1/jobs/{job['id']}/cancel")
    client.until(job["id"], "canceled")


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
