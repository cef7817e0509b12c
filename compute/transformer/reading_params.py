"""Params of the kinds that use a trained model: trace, check, generate."""

from __future__ import annotations

from compute.core.kinds import Params, param
from compute.core.texts import Text

SAMPLING = Text(en="Sampling", zh="采样")


class SamplingParams(Params):
    """How the next token is chosen."""

    temperature: float = param(
        1.0,
        label=Text(en="Temperature", zh="温度"),
        help=Text(
            en="Divides the logits: below 1 sharpens, above 1 flattens, 0 takes the likeliest.",
            zh="logits 除以温度 (temperature)：小于 1 更尖锐，大于 1 更平坦，0 总取最可能的。",
        ),
        group=SAMPLING,
        ge=0.0,
        le=5.0,
    )
    top_k: int = param(
        0,
        label=Text(en="Top-k", zh="Top-k"),
        help=Text(en="Keep the k likeliest tokens. 0: all.", zh="只留最可能的 k 个。0 表示全部。"),
        group=SAMPLING,
        ge=0,
        le=100_000,
    )
    top_p: float = param(
        1.0,
        label=Text(en="Top-p", zh="Top-p"),
        help=Text(
            en="Keep the fewest tokens whose probabilities reach p, counted over the whole "
            "vocabulary. 1: all.",
            zh="保留概率之和达到 p 的最少几个 token，在整个词表上计算。1 表示全部。",
        ),
        group=SAMPLING,
        gt=0.0,
        le=1.0,
    )
    seed: int = param(
        1,
        label=Text(en="Seed", zh="随机种子"),
        help=Text(en="Same seed, same choices.", zh="种子相同，选择就相同。"),
        group=SAMPLING,
        ge=0,
        le=2**31 - 1,
    )


class ReadingParams(SamplingParams):
    """Which trained model reads, as it was when."""

    model: str = param(
        ...,
        label=Text(en="Model", zh="模型"),
        help=Text(en="The id of a training run.", zh="训练任务的 id。"),
        min_length=1,
        max_length=500,
    )
    weights: str = param(
        "",
        label=Text(en="Weights", zh="权重"),
        help=Text(
            en="The run's artifact that holds them, as in checkpoints/step-000500.safetensors. "
            "Empty: its newest.",
            zh="该任务里存放权重的产物，例如 checkpoints/step-000500.safetensors。留空则用最新的。",
        ),
        advanced=True,
        max_length=100,
    )


class TraceParams(ReadingParams):
    """One forward pass, stage by stage."""

    text: str = param(
        "",
        label=Text(en="Text", zh="文本"),
        help=Text(
            en="What the model reads, at most its block. Empty: the run's probe.",
            zh="模型要读的文本，不超过上下文长度。留空则用训练时的探针句。",
        ),
        max_length=20_000,
    )


class CheckParams(TraceParams):
    """One number of a trace, computed again."""

    tensor: str = param(
        ...,
        label=Text(en="Tensor", zh="张量"),
        help=Text(
            en="Its name in the trace, as in blocks.0.attn.scores.",
            zh="它在轨迹里的名字，例如 blocks.0.attn.scores。",
        ),
        min_length=1,
        max_length=100,
    )
    index: list[int] = param(
        ...,
        label=Text(en="Index", zh="下标"),
        help=Text(en="One number an axis, counted from 0.", zh="每个轴一个数，从 0 开始。"),
        min_length=1,
        max_length=4,
    )


class GenerateParams(ReadingParams):
    """Let a model write on."""

    prompt: str = param(
        "",
        label=Text(en="Prompt", zh="开头"),
        help=Text(
            en="The text to continue. Empty: start on a new line.",
            zh="要续写的文本。留空则从新的一行开始。",
        ),
        max_length=20_000,
    )
    max_tokens: int = param(
        200,
        label=Text(en="Length", zh="长度"),
        help=Text(en="Tokens to write.", zh="要写的 token 数。"),
        unit="tokens",
        ge=1,
        le=2000,
    )
