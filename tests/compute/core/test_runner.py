"""The runner as a real process: events, failures, streams, warm reuse."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.compute.core.harness import ROOT, RunnerProcess, environment, is_type, of_type


def run_case(runner: RunnerProcess, case: str, dir: Path, **more: Any) -> list[dict[str, Any]]:
    runner.spec("test.case", {"case": case}, dir, **more)
    return runner.to_end()


def test_a_job_from_ready_to_end(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.count", {"steps": 3}, tmp_path / "new" / "folder", attempt=2)
    events = runner.to_end()
    assert [e["type"] for e in events] == ["state", "metric", "metric", "metric", "end"]
    assert events[0]["data"] == {"state": "running", "attempt": 2}
    assert [m["step"] for m in of_type(events, "metric")] == [0, 1, 2]
    assert events[-1]["data"] == {
        "state": "succeeded",
        "reason": None,
        "message": None,
        "message_zh": None,
        "result": {"steps": 3, "lr": 0.5},
    }
    assert all(abs(e["t"] - time.time()) < 60 and set(e) == {"type", "t", "data"} for e in events)
    runner.close_stdin()
    assert runner.wait() == 0
    assert runner.next() is None and runner.stderr == b""
    assert [r["data"]["jobs"] for r in runner.ready] == [0, 1]
    assert all(10 < r["data"]["rss_mb"] < 2000 for r in runner.ready)


def test_prints_cannot_reach_the_event_lines_and_stdin_is_the_runners_own(
    runner: RunnerProcess, tmp_path: Path
) -> None:
    events = run_case(runner, "prints", tmp_path)
    assert [e["type"] for e in events] == ["state", "end"]
    assert events[-1]["data"]["result"] == {"read": ""}
    runner.close_stdin()
    assert runner.wait() == 0
    assert runner.stderr.decode().splitlines() == [
        '{"type":"end","data":{"state":"forged"}}',
        "raw bytes on fd 1",
        "from a child",
    ]


def test_awkward_numbers_and_texts_arrive_whole(runner: RunnerProcess, tmp_path: Path) -> None:
    events = run_case(runner, "metrics", tmp_path)  # RunnerProcess.next refuses a bare NaN
    assert of_type(events, "metric") == [
        {
            "step": 0,
            "loss": {"$num": "NaN"},
            "up": {"$num": "Infinity"},
            "down": {"$num": "-Infinity"},
            "np": 0.5,
        }
    ]
    assert [log["text"] for log in of_type(events, "log")] == [
        "one\u2028two\u2029three\u0085four\nfive",
        "half \ufffd a pair",
        "词元 <img src=x onerror=alert(1)>",
    ]
    assert events[-1]["data"]["result"] == {"value": 3}


def test_a_long_log_is_cut_and_the_job_goes_on(runner: RunnerProcess, tmp_path: Path) -> None:
    events = run_case(runner, "long_log", tmp_path)
    (log,) = of_type(events, "log")
    assert len(log["text"]) == 2000 and log["text"].endswith("…")
    assert events[-1]["data"]["state"] == "succeeded"


@pytest.mark.parametrize(
    ("case", "reason", "says"),
    [
        ("user_error", "user_error", "Pick a longer text."),
        ("diverges", "diverged", "The loss is NaN at step 3."),
        ("memory", "out_of_memory", "ran out of memory"),
        ("torch_memory", "out_of_memory", "ran out of memory"),
        ("bug", "internal", "(KeyError)"),
        ("sys_exits", "internal", "(SystemExit)"),
        ("interrupted", "internal", "(KeyboardInterrupt)"),
        ("big_event", "internal", "(PayloadTooLarge)"),
        ("big_result", "internal", "(PayloadTooLarge)"),
        ("forges_end", "internal", "(ValueError)"),
        ("undeclared_frame", "internal", "(ValueError)"),
    ],
)
def test_a_failure_ends_once_with_its_reason(
    warm: RunnerProcess, tmp_path: Path, case: str, reason: str, says: str
) -> None:
    events = run_case(warm, case, tmp_path)
    error, end = events[-2:]
    assert [e["type"] for e in events].count("end") == 1
    assert error["type"] == "error" and error["data"]["reason"] == reason
    assert end["data"]["state"] == "failed" and end["data"]["reason"] == reason
    assert end["data"]["result"] is None
    assert says in end["data"]["message"] == error["data"]["message"]
    assert any("\u4e00" <= c <= "\u9fff" for c in end["data"]["message_zh"])
    logs = of_type(events, "log")  # the traceback is there, for those who look for it
    assert len(logs) == (reason in ("internal", "out_of_memory"))
    assert all(told["level"] == "debug" and "Traceback" in told["text"] for told in logs)
    assert "secret detail" not in end["data"]["message"]


@pytest.fixture(scope="module")
def warm_process() -> Any:
    runner = RunnerProcess("--warm", "numpy,torch")
    yield runner
    runner.close()


@pytest.fixture
def warm(warm_process: RunnerProcess) -> RunnerProcess:
    return warm_process


def test_params_are_refused_after_the_first_event(warm: RunnerProcess, tmp_path: Path) -> None:
    warm.spec("test.count", {"steps": 0, "stpes": 3}, tmp_path / "never")
    events = warm.to_end()
    assert [e["type"] for e in events] == ["state", "error", "end"]
    problems = events[1]["data"]["problems"]
    assert [p["pointer"] for p in problems] == ["/steps", "/stpes"]
    assert problems[1]["nearest"] == ["steps"] and "步数" in problems[0]["text"]["zh-hans"]
    assert events[2]["data"]["reason"] == "invalid_input"
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "test.cuont"}, 'Did you mean "test.count"?'),
        ({"kind": None}, "kind is missing"),
        ({"dir": 3}, "dir has the wrong type"),
        ({"seed": "x"}, "seed has the wrong type"),
        ({"seed": True}, "seed has the wrong type"),
        ({"device": "abacus"}, 'There is no device "abacus"'),
    ],
)
def test_a_bad_spec_ends_too(
    warm: RunnerProcess, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    spec = {"job": "j", "kind": "test.count", "params": {}, "dir": str(tmp_path), **change}
    warm.send({"spec": spec})
    end = warm.to_end()[-1]["data"]
    assert end["state"] == "failed" and says in end["message"]


@pytest.mark.parametrize(
    "line", [b"no json", b"[]", b'{"other": 1}', b"\xff\xfe", b"[" * 100_000, b'{"spec": []}']
)
def test_an_unreadable_line_ends_as_a_refused_spec(
    warm: RunnerProcess, tmp_path: Path, line: bytes
) -> None:
    warm.send(line)
    assert warm.to_end()[-1]["data"]["reason"] == "invalid_input"
    warm.send(b"")  # an empty line is nothing
    assert run_case(warm, "looks", tmp_path)[-1]["data"]["state"] == "succeeded"


def test_a_spec_of_a_megabyte_of_text_is_read(warm: RunnerProcess, tmp_path: Path) -> None:
    warm.spec("test.form", {"prompt": "词" * 400_000}, tmp_path)
    end = warm.to_end()[-1]["data"]
    assert end["reason"] == "invalid_input" and len(end["message"]) < 200


def test_a_job_that_exits_leaves_an_end_of_output_and_no_end_event(
    runner: RunnerProcess, tmp_path: Path
) -> None:
    runner.spec("test.case", {"case": "exits"}, tmp_path)
    first = runner.next()
    assert first is not None and first["type"] == "state"
    assert runner.next() is None
    assert runner.wait() == 3


def test_artifacts_carry_size_type_and_hash(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.count", {"steps": 50, "wait_ms": 20}, tmp_path)
    runner.control("pause")
    events = runner.until(is_type("state", state="paused"))
    (artifact,) = of_type(events, "artifact")
    content = (tmp_path / "checkpoint.txt").read_bytes()
    assert artifact == {
        "name": "checkpoint.txt",
        "type": "text/plain",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def test_one_process_serves_many_jobs_alike(warm: RunnerProcess, tmp_path: Path) -> None:
    before = warm.ready[-1]["data"]["jobs"] if warm.ready else 0
    draws = [
        run_case(warm, "draws", tmp_path, seed=seed, threads=1)[-1]["data"]["result"]
        for seed in (5, 6, 5)
    ]
    assert draws[0] == draws[2]
    assert all(draws[0][name] != draws[1][name] for name in ("python", "numpy", "torch"))
    assert draws[0]["threads"] == 1
    run_case(warm, "litters", tmp_path)
    looked = run_case(warm, "looks", tmp_path)[-1]["data"]["result"]
    assert looked["left"] is None and looked["cwd"] != "/"
    warm.spec("test.count", {"steps": 1}, tmp_path)
    warm.to_end()
    assert warm.ready[-1]["data"]["jobs"] >= before + 5


def test_seeds_are_those_of_the_libraries(warm: RunnerProcess, tmp_path: Path) -> None:
    drawn = run_case(warm, "draws", tmp_path, seed=11)[-1]["data"]["result"]
    assert drawn["python"] == random.Random(11).random()
    assert drawn["numpy"] == np.random.RandomState(11).rand()
    generator = torch.Generator().manual_seed(11)
    assert drawn["torch"] == float(torch.rand(1, dtype=torch.float64, generator=generator))


def test_only_named_inputs_are_read(warm: RunnerProcess, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "note.txt").write_text("kept")
    warm.spec("test.ref", {"model": "j9"}, tmp_path / "a", inputs={"model": str(model)})
    assert warm.to_end()[-1]["data"]["result"] == {"text": "kept"}
    # A path as the param itself is for notebooks; a request must not read the disk with it.
    warm.spec("test.ref", {"model": str(model)}, tmp_path / "b")
    end = warm.to_end()[-1]["data"]
    assert end["state"] == "failed" and end["reason"] == "user_error"


def test_the_first_event_comes_before_heavy_imports(runner: RunnerProcess, tmp_path: Path) -> None:
    """Here the import itself fails, and `running` has been said already."""
    runner.spec("test.broken", {}, tmp_path)
    events = runner.to_end()
    assert events[0]["type"] == "state" and events[0]["data"]["state"] == "running"
    assert "(ModuleNotFoundError)" in events[-1]["data"]["message"]


def test_a_ping_is_a_job_that_does_nothing(runner: RunnerProcess, tmp_path: Path) -> None:
    """Answered between jobs, by the thread that runs them: one that hangs there doesn't answer."""
    runner.send({"ping": "a"})
    answer = runner.next()
    assert answer is not None
    assert (answer["type"], answer["data"]) == ("pong", {"ping": "a"})
    runner.spec("test.count", {"steps": 2}, tmp_path)
    runner.send({"ping": "b"})
    events = runner.to_end()
    assert "pong" not in [event["type"] for event in events]
    while (answer := runner.next()) is not None and answer["type"] == "ready":
        pass
    assert answer is not None and answer["data"] == {"ping": "b"}


def test_lines_on_stderr_are_named_when_asked(
    start: Callable[..., RunnerProcess], tmp_path: Path
) -> None:
    runner = start("--name-jobs")
    run_case(runner, "prints", tmp_path)
    runner.close_stdin()
    assert runner.wait() == 0
    lines = runner.stderr.decode().splitlines()
    assert (lines[0], lines[-1]) == ("\x01j1", "\x01")
    assert "raw bytes on fd 1" in lines[1:-1]


def test_output_closed_ends_the_process(runner: RunnerProcess, tmp_path: Path) -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "compute.core.runner"],
        stdin=subprocess.PIPE,
        stdout=write,
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )
    try:
        os.close(write)
        os.read(read, 1000)  # ready
        os.close(read)
        assert process.stdin is not None
        spec = {"job": "j", "kind": "test.count", "params": {}, "dir": str(tmp_path)}
        process.stdin.write(json.dumps({"spec": spec}).encode() + b"\n")
        process.stdin.flush()
        assert process.wait(30) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
