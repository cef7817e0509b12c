"""The same model a second time, in float64 and in other words, to check the first one by.

Nothing here is shared with `model.py` but the names of the weights: plain torch.nn.functional
calls, one head at a time, the mask added as −∞ before softmax.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from compute.transformer.config import Config


def reference(weights: Mapping[str, Tensor], config: Config, ids: list[int]) -> dict[str, Tensor]:
    """Every tensor of a trace up to `probs`, by name, in float64.

    Shapes as in the trace: T tokens, C d_model, h heads, d_k = C / h.
    """
    w = {name: tensor.detach().cpu().to(torch.float64) for name, tensor in weights.items()}
    t: dict[str, Tensor] = {}
    length = len(ids)
    t["embed.token"] = F.embedding(torch.tensor(ids), w["embed.token.weight"])  # (T, C)
    if config.positions == "learned":
        t["embed.position"] = w["embed.position.weight"].narrow(0, 0, length)  # (T, C)
    else:
        t["embed.position"] = _waves(length, config.d_model)
    x = t["blocks.0.in"] = t["embed.token"] + t["embed.position"]
    for layer in range(config.layers):
        x = _block(w, t, f"blocks.{layer}.", x, config)
    if config.norm == "pre":
        x = _norm(w, t, "norm", x, config)
    t["logits"] = F.linear(x, w["unembed.weight"], w["unembed.bias"])  # (T, V)
    t["probs"] = F.softmax(t["logits"], dim=-1)
    return t


def _block(
    w: Mapping[str, Tensor], t: dict[str, Tensor], b: str, x: Tensor, config: Config
) -> Tensor:
    if config.norm == "pre":
        attended = _attention(w, t, f"{b}attn.", _norm(w, t, f"{b}norm1", x, config), config)
        middle = t[f"{b}resid1"] = x + attended
        x = _feed_forward(w, t, f"{b}ffn.", _norm(w, t, f"{b}norm2", middle, config))
        out = t[f"{b}resid2"] = middle + x
    else:
        t[f"{b}resid1"] = x + _attention(w, t, f"{b}attn.", x, config)
        middle = _norm(w, t, f"{b}norm1", t[f"{b}resid1"], config)
        t[f"{b}resid2"] = middle + _feed_forward(w, t, f"{b}ffn.", middle)
        out = _norm(w, t, f"{b}norm2", t[f"{b}resid2"], config)
    t[f"{b}out"] = out
    return out


def _attention(
    w: Mapping[str, Tensor], t: dict[str, Tensor], a: str, x: Tensor, config: Config
) -> Tensor:
    future = torch.full((len(x), len(x)), -math.inf, dtype=torch.float64).triu(1)  # (T, T)
    heads: dict[str, list[Tensor]] = {}
    for head in range(config.heads):
        mine = slice(head * config.d_k, (head + 1) * config.d_k)  # this head's rows of W
        made = {
            n: F.linear(x, w[f"{a}{n}.weight"][mine], w[f"{a}{n}.bias"][mine]) for n in "qkv"
        }  # each (T, d_k)
        made["scores"] = torch.einsum("id,jd->ij", made["q"], made["k"])  # (T, T)
        made["scaled"] = made["scores"] * config.d_k**-0.5
        made["masked"] = made["scaled"] + future
        made["weights"] = F.softmax(made["masked"], dim=1)
        made["mix"] = torch.einsum("ij,jd->id", made["weights"], made["v"])  # (T, d_k)
        for name, tensor in made.items():
            heads.setdefault(name, []).append(tensor)
    t.update({a + name: torch.stack(tensors) for name, tensors in heads.items()})
    t[f"{a}concat"] = torch.cat(heads["mix"], dim=1)  # (T, C)
    t[f"{a}out"] = F.linear(t[f"{a}concat"], w[f"{a}o.weight"], w[f"{a}o.bias"])
    return t[f"{a}out"]


def _feed_forward(w: Mapping[str, Tensor], t: dict[str, Tensor], f: str, x: Tensor) -> Tensor:
    t[f"{f}pre"] = F.linear(x, w[f"{f}up.weight"], w[f"{f}up.bias"])  # (T, F)
    t[f"{f}act"] = F.gelu(t[f"{f}pre"])
    t[f"{f}out"] = F.linear(t[f"{f}act"], w[f"{f}down.weight"], w[f"{f}down.bias"])  # (T, C)
    return t[f"{f}out"]


def _norm(
    w: Mapping[str, Tensor], t: dict[str, Tensor], name: str, x: Tensor, config: Config
) -> Tensor:
    t[f"{name}.mean"] = x.mean(dim=1)  # (T,)
    t[f"{name}.var"] = ((x - x.mean(dim=1, keepdim=True)) ** 2).mean(dim=1)  # (T,)
    t[f"{name}.out"] = F.layer_norm(
        x, (config.d_model,), w[f"{name}.weight"], w[f"{name}.bias"], config.eps
    )
    return t[f"{name}.out"]


def _waves(length: int, c: int) -> Tensor:
    """Sinusoidal positions (T, C), column by column."""
    place = torch.arange(length, dtype=torch.float64)
    columns = [
        (torch.cos if j % 2 else torch.sin)(place / 10_000 ** ((j - j % 2) / c)) for j in range(c)
    ]
    return torch.stack(columns, dim=1)


# What to type into Python to get one cell of a tensor, by the end of the tensor's name. {n0}, {n1},
# {n2} are the cell's indices, {x} the input of that stage, {p} the module's prefix.
_EXPRESSIONS: tuple[tuple[str, str], ...] = (
    (r"embed\.token", "F.embedding(ids, W['embed.token.weight'])[{n0}, {n1}]"),
    (r"embed\.position", "{positions}[{n0}, {n1}]"),
    (r"blocks\.0\.in", "t['embed.token'][{n0}, {n1}] + t['embed.position'][{n0}, {n1}]"),
    (r"(?P<p>.+attn\.)(?P<z>[qkv])", "F.linear({x}, W['{p}{z}.weight'], W['{p}{z}.bias'])"
     "[{n1}, {n0} * {d_k} + {n2}]"),
    (r"(?P<p>.+attn\.)scores", "torch.dot(t['{p}q'][{n0}, {n1}], t['{p}k'][{n0}, {n2}])"),
    (r"(?P<p>.+attn\.)scaled", "t['{p}scores'][{n0}, {n1}, {n2}] / math.sqrt({d_k})"),
    (r"(?P<p>.+attn\.)masked", "t['{p}scaled'][{n0}, {n1}, {n2}] if {n2} <= {n1} else -math.inf"),
    (r"(?P<p>.+attn\.)weights", "F.softmax(t['{p}masked'][{n0}, {n1}], dim=0)[{n2}]"),
    (r"(?P<p>.+attn\.)mix", "torch.dot(t['{p}weights'][{n0}, {n1}], t['{p}v'][{n0}, :, {n2}])"),
    (r"(?P<p>.+attn\.)concat", "t['{p}mix'][{n1} // {d_k}, {n0}, {n1} % {d_k}]"),
    (r"(?P<p>.+attn\.)out", "F.linear(t['{p}concat'], W['{p}o.weight'], W['{p}o.bias'])"
     "[{n0}, {n1}]"),
    (r"(?P<p>.+)\.mean", "{x}[{n0}].mean()"),
    (r"(?P<p>.+)\.var", "{x}[{n0}].var(correction=0)"),
    (r"(?P<p>.*norm\d?)\.out", "F.layer_norm({x}, ({c},), W['{p}.weight'], W['{p}.bias'], {eps})"
     "[{n0}, {n1}]"),
    (r"(?P<p>.+ffn\.)pre", "F.linear({x}, W['{p}up.weight'], W['{p}up.bias'])[{n0}, {n1}]"),
    (r"(?P<p>.+ffn\.)act", "F.gelu(t['{p}pre'])[{n0}, {n1}]"),
    (r"(?P<p>.+ffn\.)out", "F.linear(t['{p}act'], W['{p}down.weight'], W['{p}down.bias'])"
     "[{n0}, {n1}]"),
    (r"(?P<p>.+)resid1", "{x}[{n0}, {n1}] + t['{p}attn.out'][{n0}, {n1}]"),
    (r"(?P<p>.+)resid2", "{x}[{n0}, {n1}] + t['{p}ffn.out'][{n0}, {n1}]"),
    (r"(?P<p>blocks\.\d+\.)out", "{x}[{n0}, {n1}]"),
    (r"logits", "F.linear({x}, W['unembed.weight'], W['unembed.bias'])[{n0}, {n1}]"),
    (r"probs", "F.softmax(t['logits'][{n0}], dim=0)[{n1}]"),
)  # fmt: skip


def expression(name: str, index: list[int], config: Config) -> str:
    """The torch expression of one cell, for people who repeat it with the two files at hand.

    `W` are the weights, `t` the trace's tensors, `ids` the text's ids, `sines` the wave table.
    """
    for pattern, template in _EXPRESSIONS:
        if found := re.fullmatch(pattern, name):
            positions = "W['embed.position.weight']" if config.positions == "learned" else "sines"
            return template.format(
                **found.groupdict(),
                **{f"n{axis}": n for axis, n in enumerate(index)},
                x=f"t['{source_of(name, config)}']",
                positions=positions,
                d_k=config.d_k,
                c=config.d_model,
                eps=config.eps,
            )
    raise KeyError(name)


def source_of(name: str, config: Config) -> str:
    """Name of the tensor that goes into the stage which makes `name`, where that depends."""
    pre = config.norm == "pre"
    if name in ("norm.mean", "norm.var", "norm.out", "logits"):
        last = f"blocks.{config.layers - 1}.out"
        return "norm.out" if pre and name == "logits" else last
    parts = name.split(".")
    if parts[0] != "blocks" or len(parts) < 3:
        return name
    layer, part = int(parts[1]), parts[2]
    b = f"blocks.{layer}."
    came_in = "blocks.0.in" if layer == 0 else f"blocks.{layer - 1}.out"
    sources = {
        "attn": f"{b}norm1.out" if pre else came_in,
        "norm1": came_in if pre else f"{b}resid1",
        "resid1": came_in,
        "norm2": f"{b}resid1" if pre else f"{b}resid2",
        "ffn": f"{b}norm2.out" if pre else f"{b}norm1.out",
        "resid2": f"{b}resid1" if pre else f"{b}norm1.out",
        "out": f"{b}resid2" if pre else f"{b}norm2.out",
    }
    return sources.get(part, name)
