"""Every way to fail at the API, in one shape."""

from __future__ import annotations

from typing import Any

import pytest

from tests.playground.client import Client, problem

NO_JOB = "0123456789abcdefghjk"
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
