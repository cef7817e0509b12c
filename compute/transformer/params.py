"""Params of `transformer.train`, with the words of their form."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from compute.core.kinds import Params, ProblemError, param
from compute.core.texts import Text
from compute.transformer import data
from compute.transformer.limits import D_MODEL, HEADS, train_problems

MODEL = Text(en="Model", zh="模型")
TEXT = Text(en="Text", zh="文本")
TRAINING = Text(en="Training", zh="训练")
WATCHING = Text(en="Watching", zh="观察")


class TrainParams(Params):
    """What to build, what to read, how to train, what to show."""

    family: str = param(
        "decoder-only",
        label=Text(en="Family", zh="结构"),
        help=Text(
            en="Decoder-only: each token sees itself and the tokens before it, as in GPT.",
            zh="仅解码器 (decoder-only)：每个 token 只看自己和前面的 token，GPT 就是这样。",
        ),
        choices={"decoder-only": Text(en="decoder-only", zh="仅解码器 (decoder-only)")},
        group=MODEL,
    )
    layers: int = param(
        4,
        label=Text(en="Layers", zh="层数"),
        help=Text(en="Blocks stacked on each other.", zh="叠起来的 Transformer 块数。"),
        group=MODEL,
        ge=1,
        le=8,
    )
    heads: int = param(
        4,
        label=Text(en="Heads", zh="注意力头数"),
        help=Text(
            en="Attention patterns side by side in each layer. d_model must be a multiple.",
            zh="每层并行计算的注意力头 (head) 个数，d_model 必须是它的倍数。",
        ),
        group=MODEL,
        ge=HEADS[0],
        le=HEADS[1],
    )
    d_model: int = param(
        96,
        label=Text(en="d_model", zh="d_model"),
        help=Text(en="Numbers that stand for each token.", zh="表示每个 token 的向量长度。"),
        group=MODEL,
        ge=D_MODEL[0],
        le=D_MODEL[1],
    )
    d_ff: int | None = param(
        None,
        label=Text(en="d_ff", zh="d_ff"),
        help=Text(
            en="Width of the feed-forward layer. Empty: 4 × d_model.",
            zh="前馈层 (FFN) 的宽度。留空表示 4 × d_model。",
        ),
        group=MODEL,
        advanced=True,
        ge=1,
        le=4096,
    )
    norm: str = param(
        "pre",
        label=Text(en="Normalisation", zh="归一化位置"),
        help=Text(
            en="Pre-LN normalises what goes into each part and trains more easily; post-LN "
            "normalises each sum, as the 2017 paper does.",
            zh="pre-LN 先归一化再进入子层，更容易训练；post-LN 在残差相加之后归一化，"
            "2017 年的论文用它。",
        ),
        choices={
            "pre": Text(en="pre-LN: x + f(norm(x))", zh="pre-LN：x + f(norm(x))"),
            "post": Text(en="post-LN: norm(x + f(x))", zh="post-LN：norm(x + f(x))"),
        },
        group=MODEL,
    )
    positions: str = param(
        "learned",
        label=Text(en="Positions", zh="位置编码"),
        help=Text(
            en="How a token knows where it stands: a trained table, or fixed sine waves.",
            zh="让 token 知道自己在第几位：训练出来的表，或固定的正弦波。",
        ),
        choices={
            "learned": Text(en="learned", zh="可学习"),
            "sinusoidal": Text(en="sinusoidal", zh="正弦 (sinusoidal)"),
        },
        group=MODEL,
    )
    dropout: float = param(
        0.0,
        label=Text(en="Dropout", zh="Dropout"),
        help=Text(
            en="Share of numbers set to zero at random while training. Attention maps are always "
            "taken without it.",
            zh="训练时随机置零的比例。注意力图总是在关闭 dropout 时取的。",
        ),
        group=MODEL,
        advanced=True,
        ge=0.0,
        le=0.9,
    )
    block: int = param(
        64,
        label=Text(en="Block", zh="上下文长度"),
        help=Text(
            en="Longest text the model sees at once.", zh="模型一次能看到的最长文本 (block)。"
        ),
        unit="tokens",
        group=MODEL,
        ge=8,
        le=256,
    )
    data: str = param(
        "lee",
        label=Text(en="Data", zh="数据"),
        help=Text(
            en="The text to learn from. One token is one character.",
            zh="用来学习的文本。一个字符就是一个 token。",
        ),
        choices=data.DATA_CHOICES,
        upload="text",
        own=data.OWN,
        group=TEXT,
        max_length=500,
    )
    text: str | None = param(
        None,
        label=Text(en="My text", zh="我的文本"),
        help=Text(
            en="Used when the data is your own text; it must be longer than the block.",
            zh="数据选“我自己的文本”时使用，须比上下文长度更长。",
        ),
        widget="textarea",
        group=TEXT,
        max_length=200_000,
    )
    steps: int = param(
        1200,
        label=Text(en="Steps", zh="步数"),
        help=Text(en="Updates of the weights.", zh="权重更新的次数。"),
        group=TRAINING,
        ge=1,
        le=20_000,
    )
    batch: int = param(
        16,
        label=Text(en="Batch", zh="批大小"),
        help=Text(en="Windows of text in each step.", zh="每一步同时使用的文本片段数 (batch)。"),
        group=TRAINING,
        ge=1,
        le=128,
    )
    lr: float = param(
        3e-3,
        label=Text(en="Learning rate", zh="学习率"),
        help=Text(
            en="Peak of the schedule: the rate rises to it, then falls along a cosine to a tenth. "
            "Changed while running, the peak moves and the schedule goes on.",
            zh="学习率曲线的峰值：先升到峰值，再沿余弦降到十分之一。"
            "训练中修改，就是移动峰值，曲线继续。",
        ),
        group=TRAINING,
        gt=0.0,
        le=100.0,
    )
    warmup: int = param(
        50,
        label=Text(en="Warm-up", zh="预热"),
        help=Text(en="Steps in which the rate rises from zero.", zh="学习率从零升到峰值的步数。"),
        unit="steps",
        group=TRAINING,
        advanced=True,
        ge=0,
        le=20_000,
    )
    weight_decay: float = param(
        0.1,
        label=Text(en="Weight decay", zh="权重衰减"),
        help=Text(
            en="How strongly AdamW pulls matrices towards zero. Biases, norms and embeddings are "
            "left alone.",
            zh="AdamW 把矩阵拉向零的强度。偏置、归一化参数和嵌入不衰减。",
        ),
        group=TRAINING,
        advanced=True,
        ge=0.0,
        le=1.0,
    )
    clip: float = param(
        1.0,
        label=Text(en="Gradient clipping", zh="梯度裁剪"),
        help=Text(
            en="Longest gradient that is used as it is; longer ones are scaled down to it. "
            "0 turns it off.",
            zh="梯度范数的上限，超过就按比例缩小。0 表示不裁剪。",
        ),
        group=TRAINING,
        advanced=True,
        ge=0.0,
        le=1000.0,
    )
    patience: int = param(
        0,
        label=Text(en="Patience", zh="耐心值"),
        help=Text(
            en="Stop early when the held-out loss has not fallen for this many evaluations. "
            "0: run all steps.",
            zh="留出集损失连续这么多次评估都没有下降就提前停止。0 表示跑满步数。",
        ),
        unit="evaluations",
        group=TRAINING,
        advanced=True,
        ge=0,
        le=100,
    )
    seed: int = param(
        1,
        label=Text(en="Seed", zh="随机种子"),
        help=Text(
            en="Same seed, same params, same machine: same run.",
            zh="种子、参数和机器都相同，结果就相同。",
        ),
        group=TRAINING,
        advanced=True,
        ge=0,
        le=2**31 - 1,
    )
    eval_every: int = param(
        100,
        label=Text(en="Evaluate every", zh="评估间隔"),
        help=Text(
            en="Steps between looks at the held-out text; every other time the model writes.",
            zh="每隔多少步在留出文本上评估一次；每评估两次，让模型写一段。",
        ),
        unit="steps",
        group=WATCHING,
        advanced=True,
        ge=1,
        le=20_000,
    )
    snapshot_every: int = param(
        40,
        label=Text(en="Snapshot every", zh="快照间隔"),
        help=Text(
            en="Steps between stored attention maps; the first steps are stored more densely.",
            zh="每隔多少步存一次注意力图，开头几步存得更密。",
        ),
        unit="steps",
        group=WATCHING,
        advanced=True,
        ge=1,
        le=20_000,
    )
    checkpoint_every: int = param(
        500,
        label=Text(en="Checkpoint every", zh="检查点间隔"),
        help=Text(
            en="Steps between files from which the run can continue.",
            zh="每隔多少步存一个可以继续训练的检查点。",
        ),
        unit="steps",
        group=WATCHING,
        advanced=True,
        ge=10,
        le=20_000,
    )
    probe: str | None = param(
        None,
        label=Text(en="Probe", zh="探针句"),
        help=Text(
            en="The sentence whose attention is shown while training. Empty: one that suits the "
            "data.",
            zh="训练时展示其注意力的句子。留空则用适合该数据的句子。",
        ),
        group=WATCHING,
        max_length=256,
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problems := train_problems(self):
            raise ProblemError(problems)
        return self
