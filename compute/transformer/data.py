"""The text a run trains on: where it comes from, its characters, its split. No torch in here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute.core.texts import Text
from compute.text import corpora

if TYPE_CHECKING:
    from compute.transformer.params import TrainParams

OWN = "text"  # the value of `data` that means "the text I give"
HELD_OUT = 0.1  # share of the text, at its end, that is never trained on

DATA_CHOICES: dict[str, Text] = {
    **{name: corpus.title for name, corpus in corpora.CORPORA.items()},
    OWN: Text(en="My own text", zh="我自己的文本"),
}


def text_of(params: TrainParams) -> str:
    """The whole training text."""
    return params.text or "" if params.data == OWN else corpora.read(params.data)


def length_of(params: TrainParams) -> int:
    """Its length in tokens, which are characters."""
    return len(params.text or "") if params.data == OWN else corpora.facts(params.data).tokens


def vocabulary_of(params: TrainParams) -> tuple[str, ...]:
    """Its distinct characters in code point order."""
    if params.data == OWN:
        return tuple(sorted(set(params.text or "")))
    return corpora.facts(params.data).vocabulary


def probe_of(params: TrainParams) -> str:
    """The sentence whose attention is shown: the one given, or one that suits the data."""
    if params.probe:
        return params.probe
    if params.data == OWN:
        return (params.text or "")[: min(32, params.block)]
    return corpora.CORPORA[params.data].probe[: params.block]


def split_at(tokens: int, block: int) -> int:
    """Where the held-out tail starts; `tokens` itself when the text is too short for a tail.

    The tail is a tenth of the text, but at least one window of block + 1 tokens, and as much must
    be left to train on.

    >>> split_at(1000, 8), split_at(30, 8), split_at(17, 8)
    (900, 21, 17)
    """
    tail = max(int(tokens * HELD_OUT), block + 1)
    return tokens - tail if tokens - tail > block else tokens


def start_char(vocabulary: tuple[str, ...]) -> str:
    """What a text starts from when there is no prompt: a new line, if the model knows one."""
    return "\n" if "\n" in vocabulary else vocabulary[0]
