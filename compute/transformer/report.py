"""What people see of a run while it learns: its make-up, numbers, attention maps and samples."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import cast

import torch

from compute.core.context import Context
from compute.text.chars import CharTokenizer
from compute.transformer import checkpoint, data, generate
from compute.transformer.config import Config, parameter_count
from compute.transformer.model import Transformer
from compute.transformer.params import TrainParams
from compute.transformer.reading_params import SamplingParams

SAMPLE_TOKENS = 64
LAST_SAMPLE_TOKENS = 160
SAMPLE_HOW = SamplingParams(temperature=0.8)
RATE_STEPS = 20  # tokens/s is the mean over this many steps


class Report:
    """Tells a run through its context. Looks at the model, and leaves it in training mode."""

    def __init__(self, ctx: Context, tokenizer: CharTokenizer, probe: str) -> None:
        self.ctx, self.tokenizer, self.probe = ctx, tokenizer, probe
        self.params = cast(TrainParams, ctx.params)
        self.probe_ids = torch.tensor(tokenizer.encode(probe).tolist(), device=ctx.device)  # (T,)
        self.per_step = self.params.batch * self.params.block  # tokens
        self.times: deque[float] = deque(maxlen=RATE_STEPS + 1)  # ends of the last updates

    def setup(self, config: Config, *, train_tokens: int, val_tokens: int) -> None:
        """What the run is made of."""
        vocabulary = self.tokenizer.vocabulary
        self.ctx.frame(
            "setup",
            vocab=list(vocabulary[:1000]),  # all of it is in tokenizer.json
            vocab_size=len(vocabulary),
            parameters=parameter_count(config),
            tokens=train_tokens + val_tokens,
            train_tokens=train_tokens,
            val_tokens=val_tokens,
            config=config.to_json(),
            uniform_loss=math.log(len(vocabulary)),
            probe=list(self.probe),
            steps=self.params.steps,
        )

    def begin(self, *, after_pause: bool) -> None:
        """An update begins now. A pause before it is no part of tokens/s."""
        if after_pause:
            self.times.clear()
        if not self.times:
            self.times.append(time.perf_counter())

    def metric(self, step: int, **numbers: float) -> None:
        """The numbers of an update that has ended now, and how far the run is."""
        now = time.perf_counter()
        self.times.append(now)
        rate = (len(self.times) - 1) * self.per_step / max(1e-9, now - self.times[0])
        self.ctx.metric(step, **numbers, tokens_per_s=rate)
        total = self.params.steps
        self.ctx.progress(step, total, (total - step) * self.per_step / rate)

    def attention(self, model: Transformer, step: int) -> None:
        """Attention of every layer and head on the probe, as a file."""
        maps = model.attention(self.probe_ids)  # (L, h, T, T)
        name = f"frames/attention-{step:06d}.safetensors"
        checkpoint.save(self.ctx.path(name), {"attention": maps}, {"step": step})
        self.ctx.artifact(name, type="frame/safetensors")
        self.ctx.frame(
            "attention",
            step=step,
            artifact=name,
            layers=maps.shape[0],
            heads=maps.shape[1],
            tokens=maps.shape[2],
            shape=list(maps.shape),
        )

    def sample(self, model: Transformer, step: int, *, loss: float, last: bool) -> None:
        """A short text in the model's own words, a longer one at the end."""
        first = data.start_char(self.tokenizer.vocabulary)
        ids = self.tokenizer.encode(first).tolist()
        count = LAST_SAMPLE_TOKENS if last else SAMPLE_TOKENS
        seed = f"{self.params.seed}:{step}"
        model.eval()
        written = list(generate.write_on(model, ids, count, SAMPLE_HOW, seed))
        model.train()
        text = self.tokenizer.decode([token.id for token in written])
        self.ctx.frame("sample", step=step, text=text, loss=loss)
