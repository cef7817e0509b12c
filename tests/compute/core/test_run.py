"""compute.core.run: a job in a notebook's own process."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from compute.core import (
    Canceled,
    ComputeError,
    Diverged,
    InvalidParams,
    Run,
    UnknownKind,
    UserError,
    run,
)
from compute.core.context import Context
from compute.core.controls import ControlBox
from compute.core.devices import choose_device, cores
from compute.core.kinds import get, validate
from tests.compute.core.harness import RunnerProcess, of_type


def test_it_returns_events_result_and_folder(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    done = run("test.count", {"steps": 3}, dir=tmp_path / "x", on_event=seen.append)
    assert isinstance(done, Run) and done.events == seen
    assert done.result == {"steps": 3, "lr": 0.5} and done.dir == tmp_path / "x"
    assert [e["id"] for e in done.events] == [f"1-{n}" for n in range(1, 6)]
    assert len({e["job"] for e in done.events}) == 1


def test_the_events_are_those_of_a_runner(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.case", {"case": "metrics"}, tmp_path, seed=7)
    theirs = [(e["type"], e["data"]) for e in runner.to_end()]
    ours = run("test.case", {"case": "metrics"}, dir=tmp_path).events
    assert theirs == [(e["type"], e["data"]) for e in ours]


def test_a_temporary_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = run("test.count")
    assert done.dir.is_dir() and done.dir.parent == tmp_path


@pytest.mark.parametrize(
    ("case", "error"),
    [("user_error", UserError), ("diverges", Diverged), ("bug", ComputeError)],
)
def test_a_failure_is_raised_with_what_was_made(
    tmp_path: Path, case: str, error: type[ComputeError]
) -> None:
    with pytest.raises(error) as raised:
        run("test.case", {"case": case}, dir=tmp_path)
    assert raised.value.run is not None and raised.value.run.dir == tmp_path
    assert raised.value.run.events[-1]["data"]["state"] == "failed"
    if case == "bug":
        assert isinstance(raised.value.__cause__, KeyError)


def test_refused_params_make_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidParams):
        run("test.count", {"steps": 0}, dir=tmp_path / "x")
    with pytest.raises(UnknownKind):
        run("test.nothing", dir=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_the_stop_button_cancels(tmp_path: Path) -> None:
    with pytest.raises(Canceled) as raised:
        run("test.case", {"case": "interrupted"}, dir=tmp_path)
    assert raised.value.run is not None
    assert raised.value.run.events[-1]["data"]["state"] == "canceled"


def test_a_folder_may_stand_for_a_job(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("here")
    done = run("test.ref", {"model": str(tmp_path)}, dir=tmp_path / "x")
    assert done.result == {"text": "here"}
    with pytest.raises(UserError, match="no files here"):
        run("test.ref", {"model": "j1"}, dir=tmp_path / "y")


def test_the_notebooks_own_randomness_is_untouched(tmp_path: Path) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(1))

    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = draw(), draw()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    before = draw()
    first = run("test.case", {"case": "draws", "seed": 3}, dir=tmp_path).result
    again = run("test.case", {"case": "draws"}, dir=tmp_path, seed=3).result
    other = run("test.case", {"case": "draws"}, dir=tmp_path).result
    assert (before, draw()) == expected
    assert first == again != other


def test_cuda_is_refused_where_there_is_none(tmp_path: Path) -> None:
    assert choose_device("cpu") == "cpu"
    if torch.cuda.is_available():
        assert choose_device("auto") == "cuda"
        return
    assert choose_device("auto") == "cpu"
    with pytest.raises(UserError, match="no usable CUDA"):
        run("test.count", dir=tmp_path, device="cuda")


@pytest.fixture
def context(tmp_path: Path) -> tuple[Context, list[tuple[str, dict[str, Any]]]]:
    said: list[tuple[str, dict[str, Any]]] = []
    made = Context(
        kind=get("test.case"),
        params=validate("test.case", {}),
        job="j",
        dir=tmp_path,
        emit=lambda type, data: said.append((type, dict(data))),
        box=ControlBox(),
    )
    return made, said


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/x",
        "a/../../x",
        "",
        ".",
        "a//b",
        "a\\b",
        "词",
        "a b",
        "a\nb",
        "a/..",
        "a/.",
        "./a",
    ],
)
def test_an_artifact_stays_in_its_folder(context: tuple[Context, Any], name: str) -> None:
    with pytest.raises(ValueError, match="artifact"):
        context[0].artifact(name, type="text/plain")


def test_a_link_out_of_the_folder_is_no_artifact(
    context: tuple[Context, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.txt"
    outside.write_text("x")
    context[0].path("link.txt").symlink_to(outside)
    with pytest.raises(ValueError, match="inside its job's folder"):
        context[0].artifact("link.txt", type="text/plain")
    with pytest.raises(FileNotFoundError):
        context[0].artifact("absent.txt", type="text/plain")


def test_json_files_are_written_whole_and_tagged(context: tuple[Context, Any]) -> None:
    ctx, said = context
    ctx.write_json("deep/er/data.json", {"v": [float("nan"), np.float32(1.5)], "big": "x" * 20_000})
    read = json.loads((ctx.dir / "deep/er/data.json").read_text(encoding="utf-8"))
    assert read["v"] == [{"$num": "NaN"}, 1.5]
    assert said[-1][1]["name"] == "deep/er/data.json"
    assert [p.name for p in (ctx.dir / "deep/er").iterdir()] == ["data.json"]


def test_what_a_job_may_say(context: tuple[Context, Any]) -> None:
    ctx, said = context
    ctx.progress(1, 4, eta_s=2.5)
    ctx.frame("dot", x=1)
    assert said == [
        ("progress", {"done": 1, "total": 4, "eta_s": 2.5}),
        ("frame", {"name": "dot", "x": 1}),
    ]
    for type in ("end", "state", "control", "gap", "noise"):
        with pytest.raises(ValueError, match="doesn't emit"):
            ctx.emit(type)
    with pytest.raises(ValueError, match="level"):
        ctx.log("x", level="loud")


def test_progress_is_said_now_and_then_and_the_last_is_not_lost(
    context: tuple[Context, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx, said = context
    now = 100.0
    monkeypatch.setattr("compute.core.context.time.monotonic", lambda: now)
    for step in range(1, 11):
        ctx.progress(step, 10)
        now += 0.25
    assert [data["done"] for _, data in said] == [1, 3, 5, 7, 9]
    ctx.settle()
    ctx.settle()
    assert [data["done"] for _, data in said] == [1, 3, 5, 7, 9, 10]


def test_threads_are_this_process_share(context: tuple[Context, Any]) -> None:
    assert context[0].threads == cores() >= 1


def test_nested_runs_keep_apart(tmp_path: Path) -> None:
    """A job that runs another kind in its own process, as an agent's tool does."""
    inner: list[Run] = []

    def on_event(event: dict[str, Any]) -> None:
        if event["type"] == "metric" and not inner:
            inner.append(run("test.count", {"steps": 2}, dir=tmp_path / "inner"))

    outer = run("test.count", {"steps": 3}, dir=tmp_path / "outer", on_event=on_event)
    assert len(of_type(outer.events, "metric")) == 3
    assert len(of_type(inner[0].events, "metric")) == 2
