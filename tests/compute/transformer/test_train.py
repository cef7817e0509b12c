from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from compute.core import Diverged, Run, run
from compute.core.controls import ControlBox
from compute.core.execution import Outcome, Spec, execute
from compute.text.chars import CharTokenizer
from compute.transformer import checkpoint, schedule
from compute.transformer.model import Transformer
from compute.transformer.train import Trainer
from compute.transformer.update import loss_of, make_optimizer, windows
from tests.compute.core.harness import RunnerProcess, is_type, of_type

Small = dict[str, Any]


def start(
    dir: Path, params: Small, *, box: ControlBox | None = None, **spec: Any
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Run a job in this process with everything that a supervisor may ask for."""
    events: list[dict[str, Any]] = []

    def emit(type: str, data: Mapping[str, Any]) -> None:
        events.append({"type": type, "data": dict(data)})

    full = Spec(job="j", kind="transformer.train", params=params, dir=dir, threads=1, **spec)
    return execute(full, emit, box=box), events


def weights(folder: Path, name: str = checkpoint.MODEL) -> dict[str, torch.Tensor]:
    return checkpoint.read(folder / name)[0]


def test_what_a_run_says(trained: Run, small: Small) -> None:
    events = trained.events
    metrics = of_type(events, "metric")
    assert [m["step"] for m in metrics] == list(range(1, 31))
    assert all(
        {"step", "loss", "lr", "grad_norm", "tokens_per_s"} <= set(m) and m["tokens_per_s"] > 0
        for m in metrics
    )
    assert [m["step"] for m in metrics if "val_loss" in m] == [10, 20, 30]
    assert metrics[-1]["loss"] < metrics[0]["loss"] - 0.5
    rates = [small.get("lr", 3e-3) * schedule.shape(s, steps=30, warmup=5) for s in range(30)]
    assert [m["lr"] for m in metrics] == pytest.approx(rates)
    progress = of_type(events, "progress")
    assert progress[-1]["done"] == progress[-1]["total"] == 30
    assert trained.result["loss"] == metrics[-1]["loss"]
    assert trained.result["steps"] == 30 and trained.result["tokens"] == 30 * 4 * 16


def test_setup_describes_the_run(trained: Run, small: Small) -> None:
    (setup,) = [f for f in of_type(trained.events, "frame") if f["name"] == "setup"]
    text = small["text"]
    assert setup["vocab"] == sorted(set(text)) and setup["vocab_size"] == len(set(text))
    assert setup["uniform_loss"] == pytest.approx(math.log(len(set(text))))
    assert setup["train_tokens"] + setup["val_tokens"] == setup["tokens"] == len(text)
    assert "".join(setup["probe"]) == text[:16]
    assert abs(of_type(trained.events, "metric")[0]["loss"] - setup["uniform_loss"]) < 0.3


def test_snapshots_are_the_models_attention(trained: Run) -> None:
    frames = [f for f in of_type(trained.events, "frame") if f["name"] == "attention"]
    assert [f["step"] for f in frames] == [0, 1, 2, 5, 10, 20, 30]
    for frame in frames:
        tensors, metadata = checkpoint.read(trained.dir / frame["artifact"])
        assert list(tensors["attention"].shape) == frame["shape"] == [2, 2, 16, 16]
        assert torch.allclose(tensors["attention"].sum(-1), torch.ones(2, 2, 16), atol=1e-6)
        assert metadata["step"] == frame["step"]
    loaded = checkpoint.load(trained.dir)
    probe = torch.tensor(loaded.tokenizer.encode(loaded.run["probe"]).tolist())
    last = weights(trained.dir, frames[-1]["artifact"])["attention"]
    assert torch.equal(last, loaded.model.attention(probe))


def test_samples_and_artifacts(trained: Run, small: Small) -> None:
    samples = [f for f in of_type(trained.events, "frame") if f["name"] == "sample"]
    assert [s["step"] for s in samples] == [0, 10, 20, 30]
    assert all(set(s["text"]) <= set(small["text"]) and s["loss"] > 0 for s in samples)
    artifacts = {a["name"]: a for a in of_type(trained.events, "artifact")}
    for step in (10, 20, 30):
        assert checkpoint.checkpoint_name(step) in artifacts
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= set(artifacts)
    assert all((trained.dir / n).stat().st_size == a["size"] for n, a in artifacts.items())
    saved = CharTokenizer.from_json((trained.dir / "tokenizer.json").read_text("utf-8"))
    assert saved == CharTokenizer.of(small["text"])


def test_the_held_out_loss_is_what_torch_says(trained: Run, small: Small) -> None:
    loaded = checkpoint.load(trained.dir)
    ids = torch.tensor(loaded.tokenizer.encode(small["text"]).tolist())
    tail = ids[-max(len(ids) // 10, 17) :]
    starts = torch.linspace(0, len(tail) - 17, 32).long()
    losses = []
    for at in starts.tolist():
        logits = loaded.model(tail[None, at : at + 16])[0]
        losses.append(torch.nn.functional.cross_entropy(logits, tail[at + 1 : at + 17]))
    expected = float(torch.stack(losses).mean().detach())
    assert trained.result["val_loss"] == pytest.approx(expected, abs=1e-5)


def test_same_seed_same_run(trained: Run, small: Small, tmp_path: Path) -> None:
    again = run("transformer.train", small, dir=tmp_path, threads=1)
    assert again.result["loss"] == trained.result["loss"]
    first, second = weights(trained.dir), weights(tmp_path)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_resumed_run_is_the_same_run(small: Small, tmp_path: Path, dropout: float) -> None:
    """Stopped at step 10 and continued by another process's objects: bit for bit the same."""
    params = {**small, "dropout": dropout}
    whole, events = start(tmp_path / "whole", params)
    assert whole.state == "succeeded"
    from_ten = tmp_path / "whole" / checkpoint.checkpoint_name(10)
    torch.rand(5)  # the global generator is somewhere else by now
    rest, resumed = start(tmp_path / "rest", params, resume_from=from_ten, attempt=2)
    assert rest.state == "succeeded" and rest.result is not None and whole.result is not None
    assert of_type(resumed, "resumed") == [{"from_step": 10}]
    told = ("step", "loss", "lr", "grad_norm")
    before = [[m[k] for k in told] for m in of_type(events, "metric")][10:]
    after = [[m[k] for k in told] for m in of_type(resumed, "metric")]
    assert after == before
    assert rest.result["val_loss"] == whole.result["val_loss"]
    for name in (checkpoint.MODEL, checkpoint.checkpoint_name(30)):
        first, second = weights(tmp_path / "whole", name), weights(tmp_path / "rest", name)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


def test_a_resume_takes_the_newest_checkpoint_of_a_folder(small: Small, tmp_path: Path) -> None:
    start(tmp_path / "first", {**small, "steps": 25})
    longer = {**small, "steps": 40}
    outcome, events = start(tmp_path / "second", longer, resume_from=tmp_path / "first")
    assert outcome.state == "succeeded"
    assert of_type(events, "resumed") == [{"from_step": 25}]


def test_a_resume_without_a_fitting_checkpoint_is_refused(
    trained: Run, small: Small, tmp_path: Path
) -> None:
    for params, source in [
        ({**small, "d_model": 32}, trained.dir),
        (small, tmp_path),
    ]:
        outcome, events = start(tmp_path / "new", params, resume_from=source)
        assert outcome.state == "failed"
        assert of_type(events, "error")[0]["reason"] == "user_error"


def test_a_learning_rate_of_ten_stops_itself(small: Small, tmp_path: Path) -> None:
    with pytest.raises(Diverged) as caught:
        run("transformer.train", {**small, "lr": 10, "steps": 200}, dir=tmp_path, threads=1)
    made = caught.value.run
    assert made is not None and caught.value.reason == "diverged"
    last = of_type(made.events, "metric")[-1]["step"]
    assert last < 200 and f"step {last}" in caught.value.text.en
    assert f"第 {last} 步" in caught.value.text.zh
    _, metadata = checkpoint.read(made.dir / checkpoint.MODEL)
    assert metadata["step"] == last - 1  # run away, but finite to the end
    assert f"model of step {last - 1}," in caught.value.text.en
    assert f"第 {last - 1} 步的模型" in caught.value.text.zh
    kept = checkpoint.load(made.dir)
    assert all(p.isfinite().all() for p in kept.model.parameters())
    ids = torch.zeros(1, 4, dtype=torch.long)
    assert kept.model(ids).isfinite().all()
    end = made.events[-1]["data"]
    assert (end["state"], end["reason"]) == ("failed", "diverged")


def test_a_loss_that_is_not_finite_travels_as_a_tag(small: Small, tmp_path: Path) -> None:
    """The real runner's lines stay JSON; the model that is kept still gives finite logits."""
    runner = RunnerProcess()
    try:
        wild = {"lr": 100, "clip": 0, "warmup": 0, "norm": "post", "steps": 500}
        runner.spec("transformer.train", {**small, **wild}, tmp_path, threads=1)
        events = runner.to_end()  # each line is parsed, and NaN or Infinity refused
    finally:
        runner.close()
    end, last = events[-1]["data"], of_type(events, "metric")[-1]
    assert end["reason"] == "diverged" and f"step {last['step']}:" in end["message"]
    assert last["loss"] in ({"$num": "NaN"}, {"$num": "Infinity"}) or "$num" in last["grad_norm"]
    kept, metadata = checkpoint.read(tmp_path / checkpoint.MODEL)
    assert metadata["step"] == last["step"] - 2 and all(t.isfinite().all() for t in kept.values())
    assert f"step {last['step'] - 2}," in end["message"]
    model = checkpoint.load(tmp_path).model
    assert model(torch.zeros(1, 4, dtype=torch.long)).isfinite().all()


@pytest.mark.parametrize("wild", [{"lr": 10}, {"lr": 100, "clip": 0, "warmup": 0, "norm": "post"}])
def test_what_is_kept_is_the_model_of_the_step_that_is_named(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wild: Small
) -> None:
    seen: dict[int, dict[str, torch.Tensor]] = {}

    def after(self: Trainer, lr: float, norm: float) -> None:
        seen[self.step] = {n: t.clone() for n, t in self.model.state_dict().items()}
        say(self, lr, norm)

    say = Trainer.after
    monkeypatch.setattr(Trainer, "after", after)
    outcome, _ = start(tmp_path, {**small, **wild, "steps": 500})
    assert isinstance(outcome.raised, Diverged)
    kept, metadata = checkpoint.read(tmp_path / checkpoint.MODEL)
    there = seen[metadata["step"]]
    assert kept.keys() == there.keys() and all(torch.equal(kept[n], there[n]) for n in kept)


def test_a_run_that_breaks_at_once_keeps_the_untrained_model(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(model: Transformer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return loss_of(model, x, y) * math.nan

    monkeypatch.setattr("compute.transformer.train.loss_of", broken)
    start(tmp_path, small)
    kept, metadata = checkpoint.read(tmp_path / checkpoint.MODEL)
    assert metadata["step"] == 0 and all(t.isfinite().all() for t in kept.values())


def test_controls_through_the_real_runner(small: Small, tmp_path: Path) -> None:
    """Pause, change the rate, step, resume, cancel: each takes effect where it says."""
    runner = RunnerProcess()
    try:
        runner.spec("transformer.train", {**small, "steps": 5000}, tmp_path, threads=1)
        runner.until(is_type("metric", step=20))
        runner.control("pause")
        paused = runner.until(is_type("state", state="paused"))
        at = of_type(paused, "control")[-1]["step"]
        assert of_type(paused, "progress")[-1]["done"] == at  # to the step, though said rarely
        assert (tmp_path / checkpoint.checkpoint_name(at)).exists()
        trace = run("transformer.trace", {"model": str(tmp_path)}, dir=tmp_path / "trace")
        assert trace.result["weights"] == checkpoint.checkpoint_name(at)

        runner.control("set", values={"lr": 1e-4})
        assert of_type(runner.until(is_type("control", action="set")), "control")[0]["step"] == at
        runner.control("step")
        stepped = runner.until(is_type("state", state="paused"))
        (metric,) = of_type(stepped, "metric")
        assert metric["step"] == at + 1
        expected = 1e-4 * schedule.shape(at, steps=5000, warmup=5)
        assert metric["lr"] == pytest.approx(expected)
        said = [log["text"] for log in of_type(stepped, "log")]
        assert any("peak is 0.0001" in text for text in said)

        runner.control("resume")
        more = runner.until(is_type("metric", step=at + 10))
        assert [m["step"] for m in of_type(more, "metric")] == list(range(at + 2, at + 11))
        runner.control("cancel")
        end = runner.to_end()[-1]["data"]
        assert end["state"] == "canceled"
    finally:
        runner.close()
    assert checkpoint.load(tmp_path).weights == checkpoint.MODEL  # what it learned is kept


def test_a_deadline_leaves_the_model_so_far(small: Small, tmp_path: Path) -> None:
    outcome, events = start(tmp_path, {**small, "steps": 20_000}, deadline_s=0.5)
    assert outcome.state == "failed" and events[-1]["data"]["reason"] == "deadline_exceeded"
    _, metadata = checkpoint.read(tmp_path / checkpoint.MODEL)
    assert metadata["step"] == len(of_type(events, "metric"))


def test_patience_stops_a_model_that_learns_by_heart(small: Small, tmp_path: Path) -> None:
    halves = {"text": "abcdefgh" * 40 + "hgfedcba" * 5, "steps": 2000, "patience": 3}
    done = run("transformer.train", {**small, **halves}, dir=tmp_path, threads=1)
    assert done.result["steps"] < 2000
    last = [f["step"] for f in of_type(done.events, "frame") if f["name"] == "attention"][-1]
    assert last == done.result["steps"]
    said = " ".join(log["text"] for log in of_type(done.events, "log"))
    assert "has not fallen for 3 evaluations" in said and "by heart" in said


def test_a_text_too_short_to_hold_out_a_tail(small: Small, tmp_path: Path) -> None:
    short = {**small, "text": "abcdefghi jklmnopq", "steps": 3}
    done = run("transformer.train", short, dir=tmp_path, threads=1)
    assert done.result["val_loss"] is None
    assert not any("val_loss" in m for m in of_type(done.events, "metric"))


def test_a_text_of_one_window_and_of_one_character(small: Small, tmp_path: Path) -> None:
    for i, text in enumerate(["abcdefghijklmnopq", "a" * 17]):
        done = run(
            "transformer.train",
            {**small, "text": text, "steps": 2},
            dir=tmp_path / str(i),
            threads=1,
        )
        assert done.result["steps"] == 2


def test_targets_are_one_token_ahead() -> None:
    x, y = windows(torch.arange(100), torch.tensor([0, 7, 95]), 4)
    assert x.tolist() == [[0, 1, 2, 3], [7, 8, 9, 10], [95, 96, 97, 98]]
    assert torch.equal(y, x + 1)


def test_only_matrices_of_linear_layers_decay(trained: Run) -> None:
    model = checkpoint.load(trained.dir).model
    assert isinstance(model, Transformer)
    decayed, free = make_optimizer(model, 0.1).param_groups
    names = {p: name for name, p in model.named_parameters()}
    assert decayed["weight_decay"] == 0.1 and free["weight_decay"] == 0.0
    assert all(names[p].endswith(".weight") and p.dim() == 2 for p in decayed["params"])
    assert len(decayed["params"]) == 2 * 6 + 1
    assert len(decayed["params"]) + len(free["params"]) == len(names)


def test_losses_fall_step_by_step_on_a_text_that_repeats(small: Small, tmp_path: Path) -> None:
    params = {**small, "text": "abcd" * 100, "steps": 120, "lr": 0.01}
    losses = [
        m["loss"]
        for m in of_type(run("transformer.train", params, dir=tmp_path, threads=1).events, "metric")
    ]
    means = [sum(losses[i : i + 30]) / 30 for i in range(0, 120, 30)]
    assert all(later < earlier for earlier, later in pairwise(means))
    assert losses[-1] < 0.1
