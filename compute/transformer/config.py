"""What a model is made of, and how many parameters that makes. No torch in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Config:
    """The architecture. Raises ValueError when d_model is not a multiple of heads."""

    vocab: int  # V, distinct tokens
    block: int  # longest text the model sees at once, in tokens
    layers: int  # L
    heads: int  # h
    d_model: int  # C
    d_ff: int  # F, width of the feed-forward layer
    norm: str = "pre"  # "pre": x + f(norm(x)); "post": norm(x + f(x)), as in 2017
    positions: str = "learned"  # or "sinusoidal"
    dropout: float = 0.0
    eps: float = 1e-5  # added to the variance in layer normalisation
    family: str = "decoder-only"

    def __post_init__(self) -> None:
        if self.d_model % self.heads:
            raise ValueError(f"d_model {self.d_model} is not a multiple of heads {self.heads}")
        if self.norm not in ("pre", "post") or self.positions not in ("learned", "sinusoidal"):
            raise ValueError(f"unknown norm {self.norm!r} or positions {self.positions!r}")

    @property
    def d_k(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.heads

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Config:
        return cls(**data)


def parameters_by_part(config: Config) -> dict[str, int]:
    """Trainable numbers in each part of the model; their sum is the model's parameter count."""
    c, f, v = config.d_model, config.d_ff, config.vocab
    attention = 4 * (c * c + c)
    feed_forward = (c * f + f) + (f * c + c)
    norms = 2 * 2 * c
    return {
        "embed.token": v * c,
        "embed.position": config.block * c if config.positions == "learned" else 0,
        "attention": config.layers * attention,
        "feed_forward": config.layers * feed_forward,
        "norms": config.layers * norms + (2 * c if config.norm == "pre" else 0),
        "unembed": c * v + v,
    }


def parameter_count(config: Config) -> int:
    """Trainable numbers in the model.

    >>> parameter_count(Config(vocab=2, block=3, layers=1, heads=1, d_model=2, d_ff=8))
    96
    """
    return sum(parameters_by_part(config).values())


def nearest_d_model(d_model: int, heads: int, *, low: int, high: int) -> list[int]:
    """The multiples of `heads` next to `d_model`, below and above, within low…high."""
    below = d_model // heads * heads
    return [value for value in (below, below + heads) if low <= value <= high]


def nearest_heads(d_model: int, heads: int, *, low: int, high: int) -> list[int]:
    """The divisors of `d_model` next to `heads`, below and above, within low…high."""
    divisors = [n for n in range(low, high + 1) if d_model % n == 0]
    below = [n for n in divisors if n < heads]
    above = [n for n in divisors if n > heads]
    return below[-1:] + above[:1]
