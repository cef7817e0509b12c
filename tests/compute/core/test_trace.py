from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from safetensors import safe_open

from compute.core.context import Context
from compute.core.kinds import get, validate
from compute.core.texts import Text
from compute.core.trace import Trace, mathml

TITLE, SENTENCE = (
    Text("Scores", "分数"),
    Text("Each query meets each key.", "每个查询与每个键相乘。"),
)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    ctx = Context(
        kind=get("test.case"),
        params=validate("test.case", {}),
        job="j",
        dir=tmp_path,
        emit=lambda type, data: None,
    )
    return Trace(ctx, meta={"tokens": ["词", "<b>"], "t": float("nan")})


def add_step(trace: Trace, name: str = "scores", **more: Any) -> None:
    trace.step(name, stage="scores", title=TITLE, sentence=SENTENCE, **more)


def test_a_trace_is_two_files(trace: Trace, tmp_path: Path) -> None:
    q = torch.arange(6, dtype=torch.float64).reshape(3, 2).T  # not contiguous
    masked = np.array([[0.0, -np.inf], [np.nan, 1.0]])
    trace.tensor("q", q, axes=("head", "query"))
    trace.tensor("masked", masked, axes=("query", "key"))
    trace.tensor("loss", torch.tensor(2.5, dtype=torch.bfloat16, requires_grad=True), axes=())
    kept = q.clone()
    q.zero_()  # a trace keeps what was, not what becomes of it
    add_step(
        trace,
        formula=r"S=\frac{QK^\top}{\sqrt{d_k}}",
        op="matmul",
        inputs=["q"],
        outputs=["masked"],
        attrs={"divisor": np.float32(2), "fill": float("-inf")},
    )
    trace.save()
    steps = json.loads((tmp_path / "steps.json").read_text(encoding="utf-8"))
    assert steps["version"] == 1 and steps["kind"] == "test.case"
    assert steps["meta"] == {"tokens": ["词", "<b>"], "t": {"$num": "NaN"}}
    (step,) = steps["steps"]
    assert step["title"] == {"en": "Scores", "zh-hans": "分数"}
    assert step["attrs"] == {"divisor": 2.0, "fill": {"$num": "-Infinity"}}
    assert "<msqrt>" in step["mathml"] and step["mathml"].startswith("<math")
    assert steps["tensors"]["q"] == {"shape": [2, 3], "axes": ["head", "query"]}
    assert steps["tensors"]["loss"] == {"shape": [], "axes": []}
    with safe_open(tmp_path / "tensors.safetensors", framework="pt") as file:
        assert set(file.keys()) == {"q", "masked", "loss"}
        assert torch.equal(file.get_tensor("q"), kept.float())
        assert torch.equal(
            torch.nan_to_num(file.get_tensor("masked"), nan=7.0),
            torch.tensor([[0.0, torch.finfo(torch.float32).min], [7.0, 1.0]]),
        )
        assert file.get_tensor("loss").dtype == torch.float32


@pytest.mark.parametrize(
    "break_it",
    [
        lambda t: (add_step(t), add_step(t)),
        lambda t: (t.tensor("a", np.zeros(2), ("x",)), t.tensor("a", np.zeros(2), ("x",))),
        lambda t: t.tensor("a", np.zeros((2, 2)), ("x",)),
        lambda t: (add_step(t, inputs=["nowhere"]), t.save()),
        lambda t: (add_step(t, outputs=["nowhere"]), t.save()),
        lambda t: (add_step(t, formula=r"\frac{1}"), t.save()),
    ],
)
def test_a_trace_that_does_not_hold_together_is_refused(trace: Trace, break_it: Any) -> None:
    with pytest.raises(ValueError):
        break_it(trace)


def test_an_empty_trace_is_one(trace: Trace, tmp_path: Path) -> None:
    trace.save()
    assert json.loads((tmp_path / "steps.json").read_text())["steps"] == []


@pytest.mark.parametrize(
    "formula",
    [
        r"\operatorname{softmax}(x)_i=\frac{e^{x_i}}{\sum_j e^{x_j}}",
        r"\hat{x}=\frac{x-\mu}{\sqrt{\sigma^2+\epsilon}}\odot\gamma+\beta",
        r"M_{ij}=\begin{cases}0&j\le i\\-\infty&j>i\end{cases}",
        r"x\in\mathbb{R}^{T\times C}\quad\text{词元}",
        r"\left(\sum_{i=1}^{n}x_i\right)^2",
        r"\overline{x},\ \underbrace{a}_{b},\ \|v\|_2,\ \mathbf{W}_O,\ a<b",
    ],
)
def test_formulas_become_mathml(formula: str) -> None:
    assert ElementTree.fromstring(mathml(formula)).tag.endswith("math")


def test_no_formula_is_no_mathml() -> None:
    assert mathml("") == ""


@pytest.mark.parametrize(
    "formula",
    [
        "{",
        r"\left(",
        r"\frac{1}",
        r"\unknowncommand x",
        r"\begin{aligned}a&=b\end{aligned}",
        r"\text{<img src=x onerror=alert(1)>}",
        r"\text{<img src='x' onerror='alert(1)'/>}",
        r"\text{<mi onclick='alert(1)'>x</mi>}",
        r"\text{<mtext><script>alert(1)</script></mtext>}",
    ],
)
def test_bad_tex_is_refused_not_shown(formula: str) -> None:
    with pytest.raises(ValueError, match="bad TeX"):
        mathml(formula)
