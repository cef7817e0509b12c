"""The trace against a second computation from the model's file, stage by stage."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from compute.core import InvalidParams, Run, UserError, run
from compute.transformer import checkpoint
from compute.transformer.reference import reference
from compute.transformer.teller import axes_of
from tests.compute.core.harness import of_type

Arrays = dict[str, np.ndarray[Any, np.dtype[np.float32]]]
TEXT = "the cat sat\n"


def trace(model: Path, dir: Path, **params: Any) -> tuple[dict[str, Any], Arrays, dict[str, Any]]:
    done = run("transformer.trace", {"model": str(model), **params}, dir=dir)
    return (
        json.loads((dir / "steps.json").read_text()),
        load_file(dir / "tensors.safetensors"),
        done.result,
    )


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=1e-5))


def test_the_steps_of_a_pre_ln_model_in_order(trained: Run, tmp_path: Path) -> None:
    told, tensors, result = trace(trained.dir, tmp_path, text=TEXT)
    layer = ["norm1", "qkv", "scores", "scale", "mask", "softmax", "weighted", "concat", "project"]
    layer += ["residual1", "norm2", "ffn.up", "ffn.act", "ffn.down", "residual2"]
    first = ["embed.token", "embed.position", "embed.sum"]
    last = ["final_norm", "logits", "probabilities", "temperature", "filter", "sample"]
    assert [s["stage"] for s in told["steps"]] == first + 2 * layer + last
    assert result["tokens"] == list(TEXT) == told["meta"]["tokens"]
    assert set(told["tensors"]) == set(tensors)
    assert result["weights"] == told["meta"]["weights"] == "model.safetensors"
    for step in told["steps"]:
        for words in (step["title"], step["sentence"]):
            assert words["en"] and words["zh-hans"]
            assert "{" not in words["en"] + words["zh-hans"] and "nan" not in words["en"]
        assert step["formula"] and step["mathml"].startswith("<math")


def test_the_steps_of_a_post_ln_model_in_order(trained_post: Run, tmp_path: Path) -> None:
    told, _, _ = trace(trained_post.dir, tmp_path, text=TEXT)
    stages = [s["stage"] for s in told["steps"] if s["name"].startswith("blocks.1.")]
    assert stages[0] == "qkv" and stages[-1] == "norm2"
    assert stages.index("norm1") == stages.index("residual1") + 1
    assert not any(s["stage"] == "final_norm" for s in told["steps"])


def test_every_operand_is_there(either: Path, tmp_path: Path) -> None:
    """What a step's attrs name is a tensor made by now, or a weight in the model's file."""
    told, tensors, _ = trace(either, tmp_path, text=TEXT)
    weights = load_file(either / "model.safetensors")
    made: set[str] = set()
    for step in told["steps"]:
        assert set(step["inputs"]) <= made
        made |= set(step["outputs"])
        attrs = {k: v for k, v in step["attrs"].items() if isinstance(v, str)}
        for projection in step["attrs"].get("projections", []):
            attrs |= {f"{projection['out']}.{k}": v for k, v in projection.items()}
        for key, name in attrs.items():
            if key.split(".")[-1] not in ("kind", "mask", "approximate"):
                assert name in made or name in weights, (step["name"], key)
    assert made == set(tensors)
    assert all(
        t["shape"] == list(tensors[n].shape) and tuple(t["axes"]) == axes_of(n)
        for n, t in told["tensors"].items()
    )


def test_each_stage_follows_from_the_one_before(either: Path, tmp_path: Path) -> None:
    """Numpy, from the weights in the file and the operands that the steps name."""
    told, t, _ = trace(either, tmp_path, text=TEXT, temperature=0.7, top_k=9, top_p=0.9)
    w = load_file(either / "model.safetensors")
    config, ids = told["meta"]["config"], told["meta"]["ids"]
    h, d_k = config["heads"], config["d_model"] // config["heads"]
    erf = np.vectorize(math.erf)
    checked = set()
    for step in told["steps"]:
        a, out = step["attrs"], [t[name] for name in step["outputs"]]
        x = t.get(a.get("x", ""), np.zeros(()))
        match step["op"]:
            case "embed":
                assert close(out[0], w[a["table"]][ids])
            case "position":
                if a["table"]:
                    assert close(out[0], w[a["table"]][: len(ids)])
                else:
                    assert close(out[0][5, 0], math.sin(5)) and close(out[0][5, 1], math.cos(5))
            case "add":
                assert close(out[0], t[a["a"]] + t[a["b"]])
            case "norm":
                assert close(out[0], x.mean(1)) and close(out[1], x.var(1))
                scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(
                    x.var(1, keepdims=True) + a["eps"]
                )
                assert close(out[2], scaled * w[a["weight"]] + w[a["bias"]])
            case "project" if step["stage"] == "qkv":
                for made, p in zip(out, a["projections"], strict=True):
                    whole = x @ w[p["weight"]].T + w[p["bias"]]
                    assert close(made, whole.reshape(len(ids), h, d_k).swapaxes(0, 1))
            case "project":
                assert close(out[0], x @ w[a["weight"]].T + w[a["bias"]])
            case "matmul":
                assert close(out[0], t[a["q"]] @ t[a["k"]].swapaxes(1, 2))
            case "scale":
                assert close(out[0], x / math.sqrt(d_k)) and a["divisor"] == math.sqrt(d_k)
            case "mask":
                above = np.triu(np.ones(x.shape, dtype=bool), 1)
                assert np.array_equal(out[0], np.where(above, -np.inf, x))
            case "softmax":
                e = np.exp(x - x.max(-1, keepdims=True))
                assert close(out[0], e / e.sum(-1, keepdims=True))
            case "weighted":
                assert close(out[0], t[a["weights"]] @ t[a["v"]])
            case "concat":
                assert close(out[0], x.swapaxes(0, 1).reshape(len(ids), -1))
            case "gelu":
                assert close(out[0], x * 0.5 * (1 + erf(x / math.sqrt(2))))
            case "temperature":
                assert close(out[0], t["logits"][-1]) and close(out[1], t["logits"][-1] / 0.7)
            case "filter":
                p = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
                order = np.argsort(-x, kind="stable")
                nucleus = int((np.cumsum(p[order]) < 0.9).sum()) + 1
                kept = np.zeros(len(p))
                kept[order[: min(9, nucleus)]] = 1
                assert np.array_equal(out[0], kept) and a["kept"] == kept.sum()
                assert close(out[1], p * kept / (p * kept).sum())
            case "sample":
                first = int((np.cumsum(x.astype(np.float64)) > a["draw"]).argmax())
                assert a["chosen"] == first == told["meta"]["sampled"]["id"]
            case other:
                raise AssertionError(other)
        checked.add(step["op"])
    assert len(checked) == 15
    last = f"blocks.{config['layers'] - 1}.out"
    whole = t["norm.out"] if config["norm"] == "pre" else t[last]
    assert close(t["logits"], whole @ w["unembed.weight"].T + w["unembed.bias"])


def test_an_empty_text_means_the_runs_probe(
    trained: Run, small: dict[str, Any], tmp_path: Path
) -> None:
    _, _, result = trace(trained.dir, tmp_path)
    assert "".join(result["tokens"]) == small["text"][:16]


def test_exactly_the_block_is_accepted_and_one_more_refused(trained: Run, tmp_path: Path) -> None:
    _, tensors, result = trace(trained.dir, tmp_path / "at", text="the cat sat the ")
    assert len(result["tokens"]) == 16 and tensors["logits"].shape[0] == 16
    with pytest.raises(InvalidParams) as caught:
        trace(trained.dir, tmp_path / "over", text="the cat sat the c")
    (problem,) = caught.value.problems
    assert problem.pointer == "/text"
    assert "17 tokens" in problem.text.en and "at most 16" in problem.text.en
    assert "17" in problem.text.zh and "16" in problem.text.zh


def test_unseen_characters_are_named(trained: Run, tmp_path: Path) -> None:
    with pytest.raises(InvalidParams) as caught:
        trace(trained.dir, tmp_path, text="the 猫 Zat")
    (problem,) = caught.value.problems
    assert problem.pointer == "/text"
    assert "“猫” (4)" in problem.text.en and "“Z” (6)" in problem.text.en
    assert of_type(caught.value.run.events, "error")[0]["reason"] == "invalid_input"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ['"><img src=x one', "我说你倒是快点啊。", "👨‍👩‍👧", "\n\t", "t", "    "]
)
def test_any_text_of_known_characters(trained: Run, tmp_path: Path, text: str) -> None:
    told, tensors, result = trace(trained.dir, tmp_path, text=text)
    assert "".join(result["tokens"]) == text
    assert tensors["blocks.0.attn.weights"].shape == (2, len(text), len(text))
    assert told["meta"]["text"] == text


def test_a_single_token_sees_only_itself(trained: Run, tmp_path: Path) -> None:
    told, tensors, _ = trace(trained.dir, tmp_path, text="t")
    assert np.array_equal(tensors["blocks.1.attn.weights"], np.ones((2, 1, 1)))
    scores = next(s for s in told["steps"] if s["stage"] == "scores")
    assert "can only ask itself" in scores["sentence"]["en"]


def test_sentences_carry_the_numbers_of_the_tensors(trained: Run, tmp_path: Path) -> None:
    told, t, _ = trace(trained.dir, tmp_path, text=TEXT)
    step = next(s for s in told["steps"] if s["name"] == "blocks.1.attn.softmax")
    row = t["blocks.1.attn.weights"][:, 11, :11]  # the last token's weights on those before it
    assert f"{row.max():.4g}" in step["sentence"]["en"]
    assert f"{row.max():.4g}" in step["sentence"]["zh-hans"]
    head = int(row.max(1).argmax())
    assert f"head {head + 1}," in step["sentence"]["en"]
    entropy = -(
        t["blocks.1.attn.weights"][head, 11] * np.log(t["blocks.1.attn.weights"][head, 11])
    ).sum()
    assert f"{entropy:.3g}" in step["sentence"]["en"]


def test_temperature_zero_is_told_as_such(trained: Run, tmp_path: Path) -> None:
    told, t, _ = trace(trained.dir, tmp_path, text=TEXT, temperature=0)
    assert told["meta"]["sampled"]["id"] == int(t["logits"][-1].argmax())
    assert told["meta"]["sampled"]["p"] == 1.0
    assert told["meta"]["candidates"] == [[told["meta"]["sampled"]["text"], 1.0]]
    assert [s["title"]["en"] for s in told["steps"][-3:-2]] == ["Temperature 0 takes the likeliest"]
    assert np.array_equal(t["sample.scaled"], t["sample.logits"])


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no weights yet"):
        trace(tmp_path, tmp_path / "trace", text="a")


def test_damaged_files_are_a_sentence(trained: Run, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_bytes((trained.dir / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0garbage!")
    with pytest.raises(UserError, match="can't be read"):
        trace(tmp_path, tmp_path / "trace", text="a")


def test_an_earlier_checkpoint_is_read_and_checked_as_it_was(trained: Run, tmp_path: Path) -> None:
    earliest, *_, newest = checkpoint.weights_of(trained.dir)
    assert newest == checkpoint.MODEL
    how = {"text": TEXT, "weights": earliest}
    told, tensors, _ = trace(trained.dir, tmp_path / "then", **how)
    _, now, _ = trace(trained.dir, tmp_path / "now", text=TEXT)
    assert told["meta"]["weights"] == earliest
    stored, _ = checkpoint.read(trained.dir / earliest)
    config = checkpoint.load(trained.dir).model.config
    other = reference(stored, config, told["meta"]["ids"])
    assert close(tensors["logits"], other["logits"]) and not close(tensors["logits"], now["logits"])
    cell = {"tensor": "logits", "index": [2, 1]}
    again = run(
        "transformer.check", {"model": str(trained.dir), **how, **cell}, dir=tmp_path / "check"
    ).result
    assert again["value"] == pytest.approx(float(other["logits"][2, 1]), abs=1e-9)
    assert again["shown"] == pytest.approx(float(tensors["logits"][2, 1]), abs=1e-6)
