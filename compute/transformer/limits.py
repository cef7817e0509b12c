"""What training params must satisfy together, each refusal with the number that would do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from compute.core.errors import Problem, UserError
from compute.core.kinds import Source
from compute.core.texts import Text
from compute.text import intake
from compute.text.chars import UnseenCharacters, unseen
from compute.transformer import data, estimate, schedule
from compute.transformer.config import nearest_d_model, nearest_heads

if TYPE_CHECKING:
    from compute.transformer.params import TrainParams

HEADS = (1, 16)
D_MODEL = (16, 512)
MAX_VOCABULARY = 8_000  # a long Chinese novel has about 5,000
MAX_LOGITS = 150_000_000  # in one step; in float32, with their gradient and softmax, 1.8 GB
DISK_LIMIT = 1_000_000_000  # bytes of snapshots, and of checkpoints, that one run may write

NOT_DIVISIBLE = Text(
    en="d_model {d_model} can't be divided among {heads} heads: each head takes d_model / heads "
    "columns, a whole number. Nearest d_model: {d_models}; or nearest heads: {head_counts}.",
    zh="d_model {d_model} 不能平分给 {heads} 个注意力头：每个头 (head) 分到 d_model / heads 列，"
    "必须是整数。最接近的 d_model：{d_models}；最接近的头数：{head_counts}。",
)
TOO_SHORT = Text(
    en="A block of {block} needs a text of at least {need} characters, {block} to read and one to "
    "predict; this one's length is {tokens}. Give a longer text, or a smaller block.",
    zh="文本只有 {tokens} 个字符；上下文长度 (block) {block} 至少需要 {need} 个：读 {block} 个，"
    "再预测一个。请换更长的文本，或减小上下文长度。",
)
PROBE_LONG = Text(
    en="The probe has {tokens} characters, but the block holds {block}.",
    zh="探针句有 {tokens} 个字符，但上下文长度 (block) 只有 {block}。",
)
PROBE_UNSEEN = Text(
    en="The training text has none of these characters, so the model can't read them "
    "(character, then position): {listed}.",
    zh="训练文本里没有这些字符，模型读不了（字符及其位置）：{listed}。",
)
TOO_MANY_SNAPSHOTS = Text(
    en="The attention snapshots would take {mb} MB; a run may write {limit} MB. Store them every "
    "{nearest} steps, or shorten the probe.",
    zh="注意力快照共需 {mb} MB，一次训练最多写 {limit} MB。请改为每 {nearest} 步存一次，"
    "或缩短探针句。",
)
TOO_MANY_CHECKPOINTS = Text(
    en="The checkpoints would take {mb} MB; a run may write {limit} MB. Store one every {nearest} "
    "steps, or make the model smaller.",
    zh="检查点共需 {mb} MB，一次训练最多写 {limit} MB。请改为每 {nearest} 步存一次，或减小模型。",
)
TOO_MANY_CHARACTERS = Text(
    en="This text has {vocabulary} different characters; a model here can have {limit}, since each "
    "is a token with numbers of its own. Give a text of one language, or take rare characters out.",
    zh="这份文本有 {vocabulary} 个不同的字符，这里的模型最多 {limit} 个，因为每个字符都是一个 "
    "token，各有自己的参数。请换成单一语言的文本，或去掉生僻字符。",
)
TOO_MANY_LOGITS = Text(
    en="Batch {batch} × block {block} × {vocabulary} different characters are too many numbers for "
    "one step; it may have {limit} million. Take a batch of {nearest}, or a smaller block.",
    zh="批大小 {batch} × 上下文长度 {block} × {vocabulary} 个不同字符，一步要算的数太多，"
    "最多 {limit} 百万个。请把批大小改为 {nearest}，或减小上下文长度。",
)


def train_problems(params: TrainParams) -> list[Problem]:
    """Everything wrong with these params that no single field shows. Of a file only the job and
    `check_upload` know enough."""
    problems = _architecture_problems(params)
    try:
        facts = data.facts_of(params)
    except UserError as missing:
        return [*problems, Problem("/data", missing.text)]
    if facts is None:
        return problems
    return [*problems, *_text_problems(params, facts)] or _size_problems(params, facts)


def check_upload(params: TrainParams, sources: Mapping[str, Source]) -> list[Problem]:
    """What the params ask of an upload, before the job is queued."""
    try:
        about = json.loads(sources["data"].files[intake.ABOUT].read_text("utf-8"))
    except (OSError, ValueError, KeyError):
        return []  # a damaged file is the job's to name
    return text_problems(params, data.facts_from(params, about))


def _architecture_problems(params: TrainParams) -> list[Problem]:
    d_model, heads = params.d_model, params.heads
    if d_model % heads == 0:
        return []
    d_models = nearest_d_model(d_model, heads, low=D_MODEL[0], high=D_MODEL[1])
    head_counts = nearest_heads(d_model, heads, low=HEADS[0], high=HEADS[1])
    text = NOT_DIVISIBLE.format(
        d_model=d_model,
        heads=heads,
        d_models=", ".join(map(str, d_models)),
        head_counts=", ".join(map(str, head_counts)),
    )
    return [Problem("/d_model", text, d_models), Problem("/heads", text, head_counts)]


def text_problems(params: TrainParams, facts: data.Facts) -> list[Problem]:
    """Whether a text suits params that are sound in themselves."""
    return _text_problems(params, facts) or _size_problems(params, facts)


def _text_problems(params: TrainParams, facts: data.Facts) -> list[Problem]:
    tokens, vocabulary, probe = facts
    if tokens < params.block + 1:
        text = TOO_SHORT.format(tokens=tokens, block=params.block, need=params.block + 1)
        return [Problem("/data" if data.is_upload(params) else "/text", text)]
    if len(vocabulary) > MAX_VOCABULARY:
        figures = {"vocabulary": f"{len(vocabulary):,}", "limit": f"{MAX_VOCABULARY:,}"}
        text = TOO_MANY_CHARACTERS.format(**figures)
        return [Problem("/data" if data.is_upload(params) else "/text", text)]
    problems = []
    if len(probe) > params.block:
        text = PROBE_LONG.format(tokens=len(probe), block=params.block)
        problems.append(Problem("/probe", text))
    if found := unseen(probe, vocabulary):
        listed = UnseenCharacters(found).listed()
        problems.append(Problem("/probe", PROBE_UNSEEN.format(listed=listed)))
    return problems


def _size_problems(params: TrainParams, facts: data.Facts) -> list[Problem]:
    snapshots, snapshot = estimate.snapshots(params, facts)
    checkpoints, checkpoint = estimate.checkpoints(params, facts)
    problems = []
    a_window = params.block * len(facts.vocabulary)
    if params.batch * a_window > MAX_LOGITS:
        nearest = max(1, MAX_LOGITS // a_window)
        figures = {
            "batch": params.batch,
            "block": params.block,
            "vocabulary": f"{len(facts.vocabulary):,}",
            "limit": MAX_LOGITS // 10**6,
            "nearest": nearest,
        }
        problems.append(Problem("/batch", TOO_MANY_LOGITS.format(**figures), [nearest]))
    if snapshots * snapshot > DISK_LIMIT:
        regular = max(1, DISK_LIMIT // snapshot - len(schedule.EARLY) - 1)
        nearest = -(-params.steps // regular)
        text = TOO_MANY_SNAPSHOTS.format(
            mb=snapshots * snapshot // 10**6, limit=DISK_LIMIT // 10**6, nearest=nearest
        )
        problems.append(Problem("/snapshot_every", text, [nearest]))
    if checkpoints * checkpoint > DISK_LIMIT:
        nearest = -(-params.steps // max(1, DISK_LIMIT // checkpoint))
        text = TOO_MANY_CHECKPOINTS.format(
            mb=checkpoints * checkpoint // 10**6, limit=DISK_LIMIT // 10**6, nearest=nearest
        )
        problems.append(Problem("/checkpoint_every", text, [nearest]))
    return problems
