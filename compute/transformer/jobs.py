"""What the Transformer lab can compute. Light imports only: the site and the shell read this."""

from __future__ import annotations

from compute.core.kinds import Kind, register
from compute.core.texts import Text
from compute.transformer import limits, readable
from compute.transformer.params import TrainParams
from compute.transformer.reading_params import CheckParams, GenerateParams, TraceParams

WARM = (
    "torch",
    "safetensors.torch",
    "latex2mathml.converter",
    "compute.transformer.trace",
    "compute.transformer.check",
    "compute.transformer.generate",
)

MODEL_REF = {"model": ("transformer.train",)}

TRAIN = register(
    Kind(
        name="transformer.train",
        params=TrainParams,
        queue="training",
        run="compute.transformer.train:run",
        title=Text(en="Train a Transformer", zh="训练一个 Transformer"),
        summary=Text(
            en="Trains a small character model from nothing and shows its loss, samples and "
            "attention while it learns.",
            zh="从零训练一个小的字符模型，边学边展示损失、样本和注意力。",
        ),
        result={
            "loss": Text(
                en="Training loss of the last step, in nats.", zh="最后一步的训练损失（nat）。"
            ),
            "val_loss": Text(
                en="Loss on the held-out text, in nats, or null when there is none.",
                zh="留出文本上的损失（nat）；没有留出文本时为 null。",
            ),
            "steps": Text(en="Updates done.", zh="完成的更新次数。"),
            "tokens_per_s": Text(
                en="Training tokens a second, with everything done on the way.",
                zh="每秒训练的 token 数，含途中所有工作。",
            ),
            "checkpoint": Text(en="Artifact that holds the weights.", zh="存放权重的产物。"),
            "parameters": Text(en="Trainable numbers in the model.", zh="模型的参数个数。"),
            "tokens": Text(en="Tokens trained on.", zh="训练过的 token 总数。"),
        },
        frames={
            "setup": Text(
                en="Once, at the start: vocab (at most 1,000; all are in tokenizer.json), "
                "vocab_size, parameters, tokens, train_tokens, val_tokens, config, uniform_loss "
                "(ln V), probe, steps.",
                zh="开始时一次：vocab（最多 1000 个，全部在 tokenizer.json）、vocab_size、"
                "parameters、tokens、train_tokens、val_tokens、config、uniform_loss (ln V)、"
                "probe、steps。",
            ),
            "attention": Text(
                en="Attention weights of all heads on the probe: step, artifact (a safetensors "
                "file, tensor attention), layers, heads, tokens, shape [L, h, T, T].",
                zh="所有头在探针句上的注意力权重：step、artifact（safetensors 文件，"
                "张量名 attention）、layers、heads、tokens、shape [L, h, T, T]。",
            ),
            "sample": Text(
                en="What the model writes at temperature 0.8: step, text, loss (in training; at "
                "step 0 on the held-out text).",
                zh="模型在温度 0.8 下写的文字：step、text、loss（训练损失，第 0 步是留出集损失）。",
            ),
        },
        controls=frozenset({"cancel", "pause", "resume", "step", "set"}),
        settable=frozenset({"lr"}),
        refs={"data": ("upload:text",)},
        check=limits.check_upload,
        deadline_s=3600,
        warm=("torch", "safetensors.torch", "compute.transformer.train"),
    )
)

TRACE = register(
    Kind(
        name="transformer.trace",
        params=TraceParams,
        queue="interactive",
        run="compute.transformer.trace:run",
        title=Text(en="Step through a forward pass", zh="逐步查看前向计算"),
        summary=Text(
            en="Runs a trained model on a text and keeps every tensor on the way, from embedding "
            "to the sampled token.",
            zh="让训练好的模型读一段文本，保留从嵌入到采样的每一个张量。",
        ),
        result={
            "tokens": Text(en="The text, token by token.", zh="逐个 token 的文本。"),
            "sampled": Text(en="The token that was drawn.", zh="采样得到的 token。"),
            "steps": Text(en="Artifact with the steps.", zh="存放步骤的产物。"),
            "tensors": Text(en="Artifact with the tensors.", zh="存放张量的产物。"),
            "weights": Text(
                en="Artifact of the model's job with its weights.", zh="训练任务里存放权重的产物。"
            ),
        },
        refs=MODEL_REF,
        check=readable.check_text,
        warm=WARM,
    )
)

CHECK = register(
    Kind(
        name="transformer.check",
        params=CheckParams,
        queue="interactive",
        run="compute.transformer.check:run",
        title=Text(en="Check one number", zh="核对一个数"),
        summary=Text(
            en="Computes one cell of a trace again, in float64 and with other code.",
            zh="用另一套代码，以 float64 重新计算轨迹里的一个格子。",
        ),
        result={
            "value": Text(en="The cell, computed in float64.", zh="用 float64 算出的值。"),
            "shown": Text(en="The cell as the trace shows it.", zh="轨迹里显示的值。"),
            "difference": Text(en="Distance between the two.", zh="两者之差。"),
            "dtype": Text(en="Precision of value.", zh="value 的精度。"),
            "expression": Text(en="The torch expression of the cell.", zh="对应的 torch 表达式。"),
        },
        refs=MODEL_REF,
        check=readable.check_text,
        warm=WARM,
    )
)

GENERATE = register(
    Kind(
        name="transformer.generate",
        params=GenerateParams,
        queue="interactive",
        run="compute.transformer.generate:run",
        title=Text(en="Let it write", zh="让它写下去"),
        summary=Text(
            en="Continues a text token by token, each with its probability and the runners-up.",
            zh="逐个 token 续写文本，并给出每个 token 的概率和其他候选。",
        ),
        result={
            "text": Text(en="What it wrote.", zh="写出的文字。"),
            "prompt": Text(en="What it continued.", zh="续写的开头。"),
            "tokens": Text(en="How many tokens it wrote.", zh="写了多少个 token。"),
            "seed": Text(en="Seed of the draws.", zh="采样用的种子。"),
            "temperature": Text(en="As given.", zh="所用的温度。"),
            "top_k": Text(en="As given.", zh="所用的 top-k。"),
            "top_p": Text(en="As given.", zh="所用的 top-p。"),
        },
        frames={
            "token": Text(
                en="One token: i, text, id, p, entropy (nats), top (pairs of character and "
                "probability, of those kept), kept (tokens that passed the filters).",
                zh="一个 token：i、text、id、p、entropy（nat）、top（留下的字符与概率）、"
                "kept（通过筛选的 token 数）。",
            ),
        },
        refs=MODEL_REF,
        check=readable.check_prompt,
        warm=WARM,
    )
)
