"""The text a run trains on: where it comes from, its characters, its split. No torch in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from compute.core.texts import Text
from compute.text import corpora, decoding, intake

if TYPE_CHECKING:
    from compute.core.context import Context
    from compute.transformer.params import TrainParams

OWN = "text"  # the value of `data` that means "the text I give"
HELD_OUT = 0.1  # share of the text, at its end, that is never trained on

DATA_CHOICES: dict[str, Text] = {
    **{name: corpus.title for name, corpus in corpora.CORPORA.items()},
    OWN: Text(en="My own text", zh="我自己的文本"),
}


class Facts(NamedTuple):
    """What checks and estimates need to know of a text before anything is trained on it."""

    tokens: int  # its length in characters
    vocabulary: tuple[str, ...]  # its distinct characters, in code point order
    probe: str  # the sentence whose attention is shown: the one given, or one that suits the text


def is_upload(params: TrainParams) -> bool:
    """Whether the text is a file: an upload on the site, a path in a notebook."""
    return params.data not in DATA_CHOICES


def text_of(params: TrainParams, ctx: Context) -> str:
    """The whole training text. Raises UserError in words for a file that holds none."""
    if is_upload(params):
        return decoding.read_text(ctx.upload("data"))
    return params.text or "" if params.data == OWN else corpora.read(params.data)


def facts_of(params: TrainParams) -> Facts | None:
    """The facts of the text, None when it is a file: the params alone say nothing about it.

    Raises UserError when the package that a text comes with is missing.
    """
    if is_upload(params):
        return None
    if params.data == OWN:
        return facts_in(params, params.text or "")
    known = corpora.facts(params.data)
    return Facts(known.tokens, known.vocabulary, params.probe or known.probe[: params.block])


def facts_in(params: TrainParams, text: str) -> Facts:
    """The facts of one's own text."""
    first = text[: intake.FIRST_WORDS] if params.data == OWN else intake.first_words(text)
    probe = params.probe or first[: params.block]
    return Facts(len(text), tuple(sorted(set(text))), probe)


def facts_from(params: TrainParams, about: Mapping[str, Any]) -> Facts:
    """The facts of an upload, out of what was found when it came (`compute.text.intake`)."""
    probe = params.probe or about["first"][: params.block]
    return Facts(int(about["characters"]), tuple(about["vocabulary"]), probe)


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
