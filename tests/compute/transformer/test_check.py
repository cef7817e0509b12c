from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from compute.core import InvalidParams, Run, run
from compute.core.kinds import validate
from compute.transformer.check import again, sample_expression
from compute.transformer.model import sinusoids
from compute.transformer.reading_params import CheckParams
from compute.transformer.reference import expression, reference
from compute.transformer.trace import look

HOW: dict[str, Any] = {"text": "the cat sat\n", "temperature": 0.8, "top_k": 12, "top_p": 0.95}


def params_for(model: Path, tensor: str, index: list[int], **more: Any) -> CheckParams:
    raw = {**HOW, "model": str(model), "tensor": tensor, "index": index, **more}
    checked = validate("transformer.check", raw)
    assert isinstance(checked, CheckParams)
    return checked


@pytest.mark.parametrize("more", [{}, {"temperature": 0}, {"top_k": 0, "top_p": 1.0}])
def test_the_other_path_agrees_with_every_tensor(either: Path, more: dict[str, Any]) -> None:
    seen = look(either, params_for(either, "sample.probs", [0], **more), "cpu")
    tensors, _ = again(seen, params_for(either, "sample.probs", [0], **more))
    assert set(tensors) == set(seen.tensors)
    for name, value in seen.tensors.items():
        assert tensors[name].shape == value.shape, name
        assert torch.allclose(tensors[name].double(), value.double(), rtol=0, atol=1e-4), name


def test_the_expression_of_every_tensor_gives_the_cell(either: Path) -> None:
    """Python evaluates what the page shows, on float64 tensors; so the words are not decoration."""
    chance = random.Random(3)
    seen = look(either, params_for(either, "sample.probs", [0]), "cpu")
    config = seen.loaded.model.config
    t, _ = again(seen, params_for(either, "sample.probs", [0]))
    weights = load_file(either / "model.safetensors")
    known = {
        "t": {name: tensor.double() for name, tensor in t.items()},
        "W": {name: w.double() for name, w in weights.items()},
        "F": F,
        "torch": torch,
        "math": math,
        "ids": torch.tensor(seen.ids),
        "sines": sinusoids(config.block, config.d_model).double(),
    }
    for name, tensor in t.items():
        for _ in range(3):
            index = [chance.randrange(n) for n in tensor.shape]
            if name.startswith("sample."):
                said = sample_expression(params_for(either, name, index))
            else:
                said = expression(name, index, config)
            value = float(eval(said, known))
            assert value == pytest.approx(float(tensor[tuple(index)]), abs=1e-6), said


def test_random_cells_of_a_saved_trace(trained: Run, tmp_path: Path) -> None:
    """What the browser reads from tensors.safetensors is what the check answers, as a real job."""
    chance = random.Random(1)
    run("transformer.trace", {**HOW, "model": str(trained.dir)}, dir=tmp_path / "trace")
    shown = load_file(tmp_path / "trace" / "tensors.safetensors")
    for i, name in enumerate(["blocks.1.attn.scores", "blocks.0.ffn.act", "norm.var", "logits"]):
        index = [chance.randrange(n) for n in shown[name].shape]
        raw = {**HOW, "model": str(trained.dir), "tensor": name, "index": index}
        result = run("transformer.check", raw, dir=tmp_path / str(i)).result
        assert result["shown"] == float(shown[name][tuple(index)])
        assert result["difference"] == abs(result["value"] - result["shown"]) < 1e-4
        assert result["dtype"] == "float64" and result["expression"]


def test_a_masked_cell_is_minus_infinity_in_valid_json(trained: Run, tmp_path: Path) -> None:
    raw = {**HOW, "model": str(trained.dir), "tensor": "blocks.0.attn.masked", "index": [1, 2, 5]}
    done = run("transformer.check", raw, dir=tmp_path)
    json.dumps(done.events, allow_nan=False)
    end = done.events[-1]["data"]["result"]
    assert end["value"] == end["shown"] == {"$num": "-Infinity"} and end["difference"] == 0


@pytest.mark.parametrize(
    ("tensor", "index", "pointer", "said"),
    [
        ("blocks.2.attn.q", [0, 0, 0], "/tensor", "no tensor"),
        ("weights", [0], "/tensor", "no tensor"),
        ("sample.everything", [0], "/tensor", "no tensor"),
        ("logits", [0], "/index", "no cell"),
        ("logits", [12, 0], "/index", "[12"),
        ("logits", [-1, 0], "/index", "no cell"),
        ("blocks.0.attn.q", [0, 0, 8], "/index", "[2, 12, 8]"),
    ],
)
def test_cells_that_are_not_there(
    trained: Run, tmp_path: Path, tensor: str, index: list[int], pointer: str, said: str
) -> None:
    raw = {**HOW, "model": str(trained.dir), "tensor": tensor, "index": index}
    with pytest.raises(InvalidParams) as caught:
        run("transformer.check", raw, dir=tmp_path)
    (problem,) = caught.value.problems
    assert problem.pointer == pointer and said in problem.text.en


def test_the_reference_sees_no_future(either: Path) -> None:
    loaded = look(either, params_for(either, "logits", [0, 0]), "cpu").loaded
    weights, config = loaded.model.state_dict(), loaded.model.config
    first = reference(weights, config, [1, 2, 3, 4])["logits"]
    for t, other in itertools.product((1, 2), (5, 6)):
        ids = [1, 2, 3, 4]
        ids[t + 1] = other
        changed = reference(weights, config, ids)["logits"]
        assert torch.equal(changed[: t + 1], first[: t + 1])
