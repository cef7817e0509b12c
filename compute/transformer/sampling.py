"""From logits to one token: temperature, top-k, top-p, and a draw that anyone can repeat.

Everything is float64 and covers the whole vocabulary. Top-p ("nucleus sampling"): Holtzman et al.
2020. Top-k: Fan, Lewis and Dauphin 2018.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

_ROUNDING = 1e-12  # a nucleus that reaches p but for rounding has reached it


@dataclass(frozen=True)
class Distribution:
    """What the next token is drawn from; each tensor is (V,), float64 but for `kept`."""

    scaled: Tensor  # logits / temperature; the logits themselves at temperature 0
    kept: Tensor  # bool: survives top-k and top-p
    probs: Tensor  # softmax over the kept ones, 0 elsewhere


def distribution(logits: Tensor, *, temperature: float, top_k: int, top_p: float) -> Distribution:
    """The distribution that logits (V,) give.

    Top-k keeps the k likeliest tokens (0: all), top-p the fewest whose probabilities, summed from
    the likeliest down over the *whole* vocabulary, reach p (1: all); a token must pass both. Among
    equals the lower id comes first. At least one token is always kept. Temperature 0 keeps exactly
    the likeliest one.
    """
    logits = logits.detach().to(torch.float64)
    vocab = logits.shape[0]
    greedy = temperature == 0
    # Shifted so that the largest is 0: then no temperature, however small, overflows.
    shifted = logits - logits.max()
    probs = torch.softmax(shifted if greedy else shifted / temperature, dim=0)
    order = torch.argsort(shifted, descending=True, stable=True)  # ties: lower id first
    ranked = probs[order]
    keep = torch.ones(vocab, dtype=torch.bool, device=logits.device)  # in order of rank
    if greedy:
        keep[1:] = False
    if top_k:
        keep[top_k:] = False
    if top_p < 1.0:
        before = torch.cumsum(ranked, dim=0) - ranked  # mass of the likelier ones
        keep &= before < top_p - _ROUNDING
        keep[0] = True
    kept = torch.zeros_like(keep)
    kept[order] = keep
    probs = torch.where(kept, probs, 0.0)
    scaled = logits if greedy else logits / temperature
    return Distribution(scaled=scaled, kept=kept, probs=probs / probs.sum())


def draw(probs: Tensor, u: float) -> int:
    """The first id, in id order, whose cumulative probability exceeds u in [0, 1).

    This is inversion sampling: the token's share of the line from 0 to 1 is its probability.
    """
    cumulative = torch.cumsum(probs, dim=0)
    chosen = int(torch.searchsorted(cumulative, u * float(cumulative[-1]), right=True))
    last = int(torch.nonzero(probs)[-1])  # u next to 1 may round past the last token
    return min(chosen, last)


def likeliest(probs: Tensor, count: int) -> list[tuple[int, float]]:
    """The `count` likeliest ids with their probabilities; fewer when the rest can't be drawn."""
    p, ids = torch.topk(probs, min(count, int(torch.count_nonzero(probs))))
    return list(zip(ids.tolist(), p.tolist(), strict=True))


def uniforms(seed: int | str) -> random.Random:
    """Where the u come from: Python's Mersenne Twister, the same on every machine."""
    return random.Random(seed)


def entropy(probs: Tensor) -> float:
    """Entropy in nats; 0 log 0 counts as 0."""
    return float(torch.special.entr(probs).sum())
