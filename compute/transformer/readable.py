"""Whether a run's model can read a text, told from the run's small files: the site asks this before
it queues a job, so no torch in here. The jobs themselves use the same sentences.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch

from compute.core.errors import Problem
from compute.core.kinds import Source
from compute.core.texts import Text, shorten
from compute.text.chars import CharTokenizer, UnseenCharacters, unseen
from compute.transformer.reading_params import GenerateParams, ReadingParams, TraceParams

MODEL = "model.safetensors"
CHECKPOINTS = "checkpoints"

NO_MODEL = Text(
    en="This run has no weights yet. Wait for its first checkpoint, or pause it.",
    zh="这次训练还没有保存权重。请等到第一个检查点，或先暂停它。",
)
NEVER_A_MODEL = Text(
    en="This run ended before it had saved any weights. Train another.",
    zh="这次训练在保存权重之前就结束了。请另训练一个。",
)
NO_SUCH_WEIGHTS = Text(
    en='This run has no weights "{name}". It has {names}.',
    zh="这次训练没有权重“{name}”。现有：{names}。",
)
TOO_LONG = Text(
    en="The text has {tokens} tokens, but this model sees at most {block}. Take {extra} away.",
    zh="文本有 {tokens} 个 token，但这个模型一次最多看 {block} 个。请删去 {extra} 个。",
)
UNSEEN = Text(
    en="The model has never seen these characters (character, then position): {listed}. "
    "Take them out, or train on a text that has them.",
    zh="模型从没见过这些字符（字符及其位置）：{listed}。请去掉它们，或用包含它们的文本来训练。",
)


def weights_in(names: Iterable[str]) -> list[str]:
    """Those of a run's files that hold weights, from the earliest to the newest."""
    points = f"{CHECKPOINTS}/step-*.safetensors"
    found = (name for name in names if name == MODEL or fnmatch(name, points))
    return sorted(found, key=lambda name: (name == MODEL, name))


def no_such_weights(wanted: str, names: list[str]) -> Problem | None:
    """Weights that were asked for by a name the run doesn't have; "" asks for the newest."""
    if not wanted or wanted in names:
        return None
    words = NO_SUCH_WEIGHTS.format(name=wanted, names=shorten(", ".join(names), 300))
    return Problem("/weights", words, difflib.get_close_matches(wanted, names))


def too_long(text: str, block: int) -> Problem | None:
    """A text that the model can't see whole."""
    if len(text) <= block:
        return None
    words = TOO_LONG.format(tokens=len(text), block=block, extra=len(text) - block)
    return Problem("/text", words)


def not_seen(text: str, vocabulary: Iterable[str], pointer: str) -> Problem | None:
    """A text with characters that the training text lacked."""
    found = unseen(text, vocabulary)
    if not found:
        return None
    return Problem(pointer, UNSEEN.format(listed=UnseenCharacters(found).listed()))


def check_text(params: TraceParams, sources: Mapping[str, Source]) -> list[Problem]:
    """For trace and check: weights are there, and the text fits them."""
    return _check(sources["model"], params, params.text, "/text", whole=True)


def check_prompt(params: GenerateParams, sources: Mapping[str, Source]) -> list[Problem]:
    """For generate: weights are there, and know the prompt's characters. A long one is cropped."""
    return _check(sources["model"], params, params.prompt, "/prompt", whole=False)


def _check(
    source: Source, params: ReadingParams, text: str, pointer: str, *, whole: bool
) -> list[Problem]:
    weights = weights_in(source.files)
    if not weights:
        return [Problem("/model", NEVER_A_MODEL if source.ended else NO_MODEL)]
    found = [no_such_weights(params.weights, weights)]
    try:
        tokenizer = CharTokenizer.from_json(source.files["tokenizer.json"].read_text("utf-8"))
        block = int(json.loads(source.files["config.json"].read_text("utf-8"))["model"]["block"])
    except (OSError, ValueError, KeyError, TypeError):
        return []  # damaged files are the job's to name
    if whole:
        found.append(too_long(text, block))
    found.append(not_seen(text, tokenizer.vocabulary, pointer))
    return [problem for problem in found if problem]
