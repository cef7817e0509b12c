from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from compute.core import InvalidParams, Run, run
from compute.transformer import checkpoint
from tests.compute.core.harness import of_type


def written(model: Run, dir: Path, **params: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    done = run("transformer.generate", {"model": str(model.dir), **params}, dir=dir)
    return of_type(done.events, "frame"), done.result


def test_each_token_comes_with_its_numbers(trained: Run, tmp_path: Path) -> None:
    frames, result = written(trained, tmp_path, prompt="the ", max_tokens=40, seed=5)
    assert [f["i"] for f in frames] == list(range(40))
    assert "".join(f["text"] for f in frames) == result["text"] and result["tokens"] == 40
    loaded = checkpoint.load(trained.dir)
    text = "the "
    for frame in frames:  # the block is 16, so most of these are cropped windows
        ids = torch.tensor([loaded.tokenizer.encode(text[-16:]).tolist()])
        probs = torch.softmax(loaded.model(ids)[0, -1].detach().double(), 0)
        assert frame["p"] == pytest.approx(float(probs[frame["id"]]), abs=1e-6)
        entropy = -sum(p * math.log(p) for p in probs.tolist())
        assert frame["entropy"] == pytest.approx(entropy, abs=1e-5)
        best = [p for _, p in frame["top"]]
        assert best == sorted(best, reverse=True) and len(best) == 5
        assert best[0] == pytest.approx(float(probs.max()), abs=1e-6)
        assert frame["kept"] == len(loaded.tokenizer)
        text += frame["text"]


def test_same_seed_same_text(trained: Run, tmp_path: Path) -> None:
    texts = [
        written(trained, tmp_path / str(i), max_tokens=30, seed=seed)[1]["text"]
        for i, seed in enumerate((1, 1, 2))
    ]
    assert texts[0] == texts[1] != texts[2]


def test_temperature_zero_takes_the_likeliest(trained: Run, tmp_path: Path) -> None:
    frames, result = written(trained, tmp_path / "a", temperature=0, max_tokens=20, seed=1)
    assert all(f["p"] == 1.0 and f["kept"] == 1 and f["entropy"] == 0 for f in frames)
    assert (
        result["text"]
        == written(trained, tmp_path / "b", temperature=0, max_tokens=20, seed=9)[1]["text"]
    )


def test_filters_are_counted(trained: Run, tmp_path: Path) -> None:
    frames, _ = written(trained, tmp_path / "k", top_k=3, max_tokens=10)
    assert {f["kept"] for f in frames} == {3}
    assert all(len(f["top"]) == 3 and sum(p for _, p in f["top"]) > 0.999 for f in frames)
    frames, _ = written(trained, tmp_path / "p", top_p=0.5, max_tokens=10)
    assert all(1 <= f["kept"] < 30 for f in frames)


def test_the_first_token_is_the_one_that_a_trace_draws(trained: Run, tmp_path: Path) -> None:
    for seed in range(4):
        how = {"seed": seed, "temperature": 0.9, "top_p": 0.9}
        frames, _ = written(trained, tmp_path / f"g{seed}", prompt="the cat", max_tokens=1, **how)
        raw = {"model": str(trained.dir), "text": "the cat", **how}
        assert (
            run("transformer.trace", raw, dir=tmp_path / f"t{seed}").result["sampled"]
            == frames[0]["text"]
        )


def test_no_prompt_starts_on_a_new_line(trained: Run, tmp_path: Path) -> None:
    assert written(trained, tmp_path, max_tokens=1)[1]["prompt"] == "\n"


def test_a_prompt_longer_than_the_block_is_cropped_and_said_so(
    trained: Run, tmp_path: Path
) -> None:
    raw = {"model": str(trained.dir), "prompt": "the cat sat " * 3, "max_tokens": 1}
    (log,) = of_type(run("transformer.generate", raw, dir=tmp_path).events, "log")
    assert "at most 16" in log["text"] and "36" in log["text"] and "36" in log["text_zh"]


@pytest.mark.parametrize(
    "prompt", ['"><img src=x onerror=alert(1)>', "我说你倒是快点啊。👨‍👩‍👧\n\t"]
)
def test_awkward_prompts_are_only_text(trained: Run, tmp_path: Path, prompt: str) -> None:
    assert written(trained, tmp_path, prompt=prompt, max_tokens=2)[1]["prompt"] == prompt


def test_unseen_characters_are_named(trained: Run, tmp_path: Path) -> None:
    with pytest.raises(InvalidParams) as caught:
        written(trained, tmp_path, prompt="Zet é")
    (problem,) = caught.value.problems
    assert problem.pointer == "/prompt"
    assert "“Z” (0)" in problem.text.en and "“é” (4)" in problem.text.zh
