"""One cell of a trace, computed again along another path: the kind `transformer.check`."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor

from compute.core.context import Context
from compute.core.errors import InvalidParams, Problem
from compute.core.texts import Text
from compute.transformer.reading_params import CheckParams
from compute.transformer.reference import expression, reference
from compute.transformer.trace import Pass, look

UNKNOWN = Text(
    en='This trace has no tensor "{name}". Its names look like blocks.0.attn.scores or logits.',
    zh="这条轨迹里没有张量“{name}”。名字形如 blocks.0.attn.scores 或 logits。",
)
OUTSIDE = Text(
    en="{name} has the shape {shape}, so there is no cell {index}.",
    zh="{name} 的形状是 {shape}，没有下标为 {index} 的格子。",
)


def sample_reference(logits: Tensor, params: CheckParams) -> dict[str, Tensor]:
    """The `sample.*` tensors (V,) again, by sorting in plain Python."""
    values = [float(x) for x in logits]
    temperature = params.temperature or 1.0
    scaled = [x / temperature for x in values]
    total = math.fsum(math.exp(s - max(scaled)) for s in scaled)
    probs = [math.exp(s - max(scaled)) / total for s in scaled]
    ranked = sorted(range(len(values)), key=lambda v: (-values[v], v))
    kept: list[int] = []
    mass = 0.0
    for v in ranked[: 1 if params.temperature == 0 else params.top_k or None]:
        if kept and params.top_p < 1 and mass >= params.top_p - 1e-12:
            break
        kept.append(v)
        mass += probs[v]
    share = math.fsum(probs[v] for v in kept)
    drawn = [probs[v] / share if v in kept else 0.0 for v in range(len(values))]
    return {
        "sample.logits": logits,
        "sample.scaled": torch.tensor(scaled, dtype=torch.float64),
        "sample.kept": torch.tensor([float(v in kept) for v in range(len(values))]),
        "sample.probs": torch.tensor(drawn, dtype=torch.float64),
    }


def sample_expression(params: CheckParams) -> str:
    """The torch expression of a cell of a `sample.*` tensor, ties left aside."""
    n, scaled = params.index[0], "t['sample.scaled']"
    tests = [f"{scaled}.argmax() == {n}"] if params.temperature == 0 else []
    if params.top_k:
        tests.append(f"({scaled} > {scaled}[{n}]).sum() < {params.top_k}")
    if params.top_p < 1:
        likelier = f"F.softmax({scaled}, dim=0)[{scaled} > {scaled}[{n}]]"
        tests.append(f"{likelier}.sum() < {params.top_p}")
    kept = f"F.softmax({scaled}, dim=0) * t['sample.kept']"
    return {
        "sample.logits": f"t['logits'][-1, {n}]",
        "sample.scaled": f"t['sample.logits'][{n}] / {params.temperature or 1}",
        "sample.kept": f"float({' and '.join(tests) or 'True'})",
        "sample.probs": f"({kept})[{n}] / ({kept}).sum()",
    }[params.tensor]


def again(seen: Pass, params: CheckParams) -> tuple[dict[str, Tensor], str]:
    """All tensors of the pass in float64, and the expression of the cell that is asked for."""
    config = seen.loaded.model.config
    tensors = reference(seen.loaded.model.state_dict(), config, seen.ids)
    if params.tensor.startswith("sample."):
        tensors.update(sample_reference(tensors["logits"][-1], params))
        said = sample_expression(params)
    else:
        said = expression(params.tensor, params.index, config)
    return tensors, said


def run(ctx: Context) -> dict[str, Any]:
    """Recompute one cell. Raises InvalidParams for a tensor or an index that isn't there."""
    params = cast(CheckParams, ctx.params)
    seen = look(ctx.input("model"), params, ctx.device)
    name, index = params.tensor, params.index
    shown = seen.tensors.get(name)
    if shown is None:
        raise InvalidParams([Problem("/tensor", UNKNOWN.format(name=name))])
    inside = len(index) == shown.dim() and all(
        0 <= n < size for n, size in zip(index, shown.shape, strict=True)
    )
    if not inside:
        text = OUTSIDE.format(name=name, shape=list(shown.shape), index=index)
        raise InvalidParams([Problem("/index", text)])
    tensors, said = again(seen, params)
    value, there = float(tensors[name][tuple(index)]), float(shown[tuple(index)])
    return {
        "value": value,
        "shown": there,
        "difference": 0.0 if value == there else abs(value - there),
        "dtype": "float64",
        "expression": said,
    }
