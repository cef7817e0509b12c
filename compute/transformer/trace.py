"""One forward pass of a trained model, kept whole: the kind `transformer.trace`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from compute.core.context import Context
from compute.core.errors import InvalidParams
from compute.core.trace import STEPS, TENSORS, Trace
from compute.transformer import checkpoint, sampling
from compute.transformer.generate import encode
from compute.transformer.model import Transformer
from compute.transformer.readable import too_long
from compute.transformer.reading_params import TraceParams
from compute.transformer.story import Story

CANDIDATES = 10


@dataclass(frozen=True)
class Pass:
    """Everything that one text makes a model compute."""

    loaded: checkpoint.Loaded
    text: str
    ids: list[int]
    tensors: dict[str, Tensor]  # by public name, without the batch axis, float32 on the CPU
    u: float  # the draw, in [0, 1)
    chosen: int  # id of the sampled token

    @property
    def tokens(self) -> list[str]:
        return [self.loaded.tokenizer.vocabulary[i] for i in self.ids]


@torch.inference_mode()
def forward(model: Transformer, ids: list[int]) -> dict[str, Tensor]:
    """Every tensor of the traced path for one text, by name, plus `probs`."""
    kept: dict[str, Tensor] = {}

    def keep(name: str, tensor: Tensor) -> None:
        kept[name] = tensor[0].detach().cpu()

    model(torch.tensor([ids], device=model.unembed.weight.device), keep)
    kept["probs"] = torch.softmax(kept["logits"], dim=-1)  # (T, V)
    return kept


def look(folder: Path, params: TraceParams, device: str) -> Pass:
    """Run the model in `folder` on the text of `params`, and draw the next token.

    Raises InvalidParams for a text that is too long or holds unseen characters, UserError when
    there is no model.
    """
    loaded = checkpoint.load(folder, device, weights=params.weights)
    text = params.text or loaded.run["probe"]
    if found := too_long(text, loaded.model.config.block):
        raise InvalidParams([found])
    ids = encode(loaded.tokenizer, text, "/text")
    tensors = forward(loaded.model, ids)
    last = tensors["logits"][-1]
    d = sampling.distribution(
        last, temperature=params.temperature, top_k=params.top_k, top_p=params.top_p
    )
    u = sampling.uniforms(params.seed).random()
    tensors["sample.logits"] = last
    tensors["sample.scaled"] = d.scaled
    tensors["sample.kept"] = d.kept
    tensors["sample.probs"] = d.probs
    return Pass(loaded, text, ids, tensors, u, sampling.draw(d.probs, u))


def run(ctx: Context) -> dict[str, Any]:
    """Write `steps.json` and `tensors.safetensors` for one text."""
    params = cast(TraceParams, ctx.params)
    seen = look(ctx.input("model"), params, ctx.device)
    vocabulary = seen.loaded.tokenizer.vocabulary
    probs = seen.tensors["sample.probs"]
    sampled = {
        "id": seen.chosen,
        "text": vocabulary[seen.chosen],
        "p": float(probs[seen.chosen]),
        "u": seen.u,
    }
    trace = Trace(
        ctx,
        kind="transformer.trace",
        meta={
            "model": params.model,
            "weights": seen.loaded.weights,
            "config": seen.loaded.model.config.to_json(),
            "text": seen.text,
            "tokens": seen.tokens,
            "ids": seen.ids,
            "vocab": list(vocabulary),
            "seed": params.seed,
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
            "sampled": sampled,
            "candidates": [[vocabulary[i], p] for i, p in sampling.likeliest(probs, CANDIDATES)],
        },
    )
    Story(trace, seen, params).tell()
    trace.save()
    return {
        "tokens": seen.tokens,
        "sampled": sampled["text"],
        "steps": STEPS,
        "tensors": TENSORS,
        "weights": seen.loaded.weights,
    }
