"""Writing on: one token at a time, each with the numbers that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from compute.core.context import Context
from compute.core.errors import InvalidParams
from compute.core.texts import Text
from compute.text.chars import CharTokenizer
from compute.transformer import checkpoint, data, sampling
from compute.transformer.model import Transformer
from compute.transformer.readable import not_seen
from compute.transformer.reading_params import GenerateParams, SamplingParams

CROPPED = Text(
    en="The model sees at most {block} tokens at once; of the {tokens} in the prompt it reads the "
    "last {block}.",
    zh="模型一次最多看 {block} 个 token；开头共 {tokens} 个，只读最后 {block} 个。",
)
TOP = 5  # candidates told with each token, at most


@dataclass(frozen=True)
class Written:
    """One generated token."""

    id: int
    p: float  # its probability after temperature and filters
    entropy: float  # of that distribution, in nats
    kept: int  # tokens that survived the filters
    top: list[tuple[int, float]]  # the likeliest of those kept


def encode(tokenizer: CharTokenizer, text: str, pointer: str) -> list[int]:
    """Ids of a text that a person gave. Raises InvalidParams naming the unseen characters."""
    if found := not_seen(text, tokenizer.vocabulary, pointer):
        raise InvalidParams([found])
    return tokenizer.encode(text).tolist()


@torch.inference_mode()
def next_logits(model: Transformer, ids: Sequence[int]) -> torch.Tensor:
    """Logits (V,) for the token after `ids`, of which the model sees the last block."""
    device = model.unembed.weight.device
    window = torch.tensor([list(ids[-model.config.block :])], device=device)  # (1, T)
    logits: torch.Tensor = model(window)[0, -1].cpu()  # (V,)
    return logits


def write_on(
    model: Transformer, ids: Sequence[int], count: int, how: SamplingParams, seed: int | str
) -> Iterator[Written]:
    """Continue `ids` (at least one) by `count` tokens; the model must be in evaluation mode."""
    seen = list(ids)
    uniforms = sampling.uniforms(seed)
    for _ in range(count):
        d = sampling.distribution(
            next_logits(model, seen),
            temperature=how.temperature,
            top_k=how.top_k,
            top_p=how.top_p,
        )
        chosen = sampling.draw(d.probs, uniforms.random())
        seen.append(chosen)
        yield Written(
            id=chosen,
            p=float(d.probs[chosen]),
            entropy=sampling.entropy(d.probs),
            kept=int(d.kept.sum()),
            top=sampling.likeliest(d.probs, TOP),
        )


def run(ctx: Context) -> dict[str, Any]:
    """The kind `transformer.generate`: a frame for each token, the whole text at the end."""
    params = cast(GenerateParams, ctx.params)
    loaded = checkpoint.load(ctx.input("model"), ctx.device, weights=params.weights)
    tokenizer, block = loaded.tokenizer, loaded.model.config.block
    prompt = params.prompt or data.start_char(tokenizer.vocabulary)
    ids = encode(tokenizer, prompt, "/prompt")
    if len(ids) > block:
        ctx.log(CROPPED.format(block=block, tokens=len(ids)))
    made: list[int] = []
    for i, token in enumerate(write_on(loaded.model, ids, params.max_tokens, params, params.seed)):
        ctx.tick(i)
        made.append(token.id)
        ctx.frame(
            "token",
            i=i,
            text=tokenizer.vocabulary[token.id],
            id=token.id,
            p=token.p,
            entropy=token.entropy,
            top=[[tokenizer.vocabulary[n], p] for n, p in token.top],
            kept=token.kept,
        )
    return {
        "text": tokenizer.decode(made),
        "prompt": prompt,
        "tokens": len(made),
        "seed": params.seed,
        "temperature": params.temperature,
        "top_k": params.top_k,
        "top_p": params.top_p,
    }
