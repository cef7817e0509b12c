"""Training: the kind `transformer.train`.

AdamW (Loshchilov and Hutter 2019) on random windows of the text, warm-up and cosine, clipping by
the gradient's norm. Everything random comes from generators whose state is in every checkpoint, so
that a resumed run goes on bit for bit (on a CPU with one thread).
"""

from __future__ import annotations

import math
import time
from typing import Any, cast

import torch
from torch import Tensor

from compute.core.context import Context
from compute.core.errors import Canceled, DeadlineExceeded, Diverged, InvalidParams, UserError
from compute.core.texts import Text
from compute.text.chars import CharTokenizer
from compute.transformer import checkpoint, data, schedule
from compute.transformer.config import parameter_count
from compute.transformer.estimate import config_of
from compute.transformer.limits import text_problems
from compute.transformer.model import Transformer
from compute.transformer.params import TrainParams
from compute.transformer.report import Report
from compute.transformer.update import loss_of, make_optimizer, windows

EVAL_WINDOWS = 32  # held-out windows in each evaluation, always the same ones
RUNAWAY = 3.0  # times ln V: a loss this bad, for this many steps in a row, won't come back
RUNAWAY_STEPS = 20
PAUSE_S = 0.1  # controls that took longer than this were a pause

DIVERGED = Text(
    en="Training diverged at step {step}: {what}. Lower the learning rate (its peak is {lr:g}), "
    "clip gradients, or warm up longer. The model of step {kept}, the last whose numbers were "
    "finite, is kept.",
    zh="训练在第 {step} 步发散 (diverged)：{what}。请降低学习率（峰值现为 {lr:g}）、裁剪梯度，"
    "或延长预热。已保留第 {kept} 步的模型，它是最后一个数值有限的模型。",
)
NOT_FINITE = Text(en="the {name} is {value}", zh="{name}变成了 {value}")
LOSS = Text(en="loss", zh="损失")
GRADIENT = Text(en="gradient norm", zh="梯度范数")
RAN_AWAY = Text(
    en="the loss has been above {limit:.2f} for {steps} steps, three times what guessing gives",
    zh="损失连续 {steps} 步高于 {limit:.2f}，是瞎猜的三倍",
)
NEW_LR = Text(
    en="From step {step} the schedule's peak is {peak:g}; the next step uses {lr:.4g}.",
    zh="从第 {step} 步起，学习率峰值为 {peak:g}，下一步用 {lr:.4g}。",
)
NO_TAIL = Text(
    en="The text is too short to hold a part out, so there is no held-out loss.",
    zh="文本太短，留不出测试部分，因此没有留出集损失。",
)
OVERFITTING = Text(
    en="The held-out loss was lowest at step {step} ({low:.3f}) and is {now:.3f} now: since then "
    "the model has been learning the training text by heart.",
    zh="留出集损失在第 {step} 步最低（{low:.3f}），现在是 {now:.3f}：之后模型是在死记训练文本。",
)
OUT_OF_PATIENCE = Text(
    en="Stopped at step {step}: the held-out loss has not fallen for {patience} evaluations.",
    zh="在第 {step} 步停止：留出集损失连续 {patience} 次评估没有下降。",
)
NOT_RESUMABLE = Text(
    en="The earlier attempt left no checkpoint that fits these params.",
    zh="之前的尝试没有留下与这些参数相符的检查点。",
)


class Trainer:
    """One run: the model and everything that changes while it learns."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.params = params = cast(TrainParams, ctx.params)
        text = data.text_of(params, ctx)
        facts = data.facts_of(params) or data.facts_in(params, text)
        if data.is_upload(params) and (problems := text_problems(params, facts)):
            raise InvalidParams(problems)
        self.tokenizer = CharTokenizer(facts.vocabulary)
        self.probe = facts.probe
        self.config = config_of(params, len(self.tokenizer))
        self.ln_v = math.log(len(self.tokenizer))

        device = torch.device(ctx.device)
        ids = torch.frombuffer(self.tokenizer.encode(text), dtype=torch.int64).to(device)
        at = data.split_at(len(ids), params.block)
        self.train_ids, self.held_out = ids[:at], ids[at:]
        self.report = Report(ctx, self.tokenizer, self.probe)

        torch.manual_seed(params.seed)  # initial weights and dropout
        self.model = Transformer(self.config).to(device)
        self.optimizer = make_optimizer(self.model, params.weight_decay)
        self.batches = torch.Generator().manual_seed(params.seed)
        self.generators = {"batches": self.batches, "dropout": torch.default_generator}
        if device.type == "cuda":
            self.generators["dropout.cuda"] = torch.cuda.default_generators[device.index or 0]

        self.per_step = params.batch * params.block  # tokens
        self.step = 0  # updates done
        self.first = 0  # updates that an earlier attempt did
        self.peak_lr = params.lr
        self.runaway = 0  # steps in a row with a runaway loss
        self.lowest: tuple[float, int] | None = None  # held-out loss and its step
        self.stale = 0  # evaluations since
        self.loss = self.val_loss = math.nan
        self.snapshots = frozenset(schedule.snapshot_steps(params.steps, params.snapshot_every))
        self.samples = schedule.sample_steps(params.steps, params.eval_every)
        self.weights = self.model.state_dict()  # the live ones, named
        self.kept = {name: t.clone() for name, t in self.weights.items()}
        self.kept_step = 0
        self.busy_s = 0.0  # in updates and what is due after them, pauses left out
        self.saved_at = -1  # step of the newest checkpoint
        self.stopped = False

    # Before and after

    def start(self) -> None:
        """Say what this run is made of, and show the untrained model."""
        ctx, params = self.ctx, self.params
        self.model.train()
        ctx.write_json("tokenizer.json", self.tokenizer.to_json())
        training = params.model_dump(exclude={"text"})
        ctx.write_json(
            "config.json",
            {
                "version": 1,
                "model": self.config.to_json(),
                "data": params.data,
                "probe": self.probe,
                "training": training,
            },
        )
        if ctx.resume_from is not None:
            self.restore()
        self.report.setup(
            self.config, train_tokens=len(self.train_ids), val_tokens=len(self.held_out)
        )
        if not len(self.held_out):
            ctx.log(NO_TAIL)
        self.keep(self.step)
        if self.step == 0:
            self.report.attention(self.model, self.step)
            self.evaluate()
            self.sample()

    def restore(self) -> None:
        """Continue from the newest checkpoint of an earlier attempt."""
        source = self.ctx.resume_from
        assert source is not None
        if source.is_dir():
            name = checkpoint.newest_checkpoint(source)
            if name is None:
                raise UserError(NOT_RESUMABLE)
            source = source / name
        tensors, state = checkpoint.read(source)
        if state.get("config") != self.config.to_json():
            raise UserError(NOT_RESUMABLE)
        checkpoint.unpack(tensors, self.model, self.optimizer, self.generators)
        self.step = self.first = state["step"]
        self.peak_lr = state["peak_lr"]
        self.runaway, self.stale = state["runaway"], state["stale"]
        self.lowest = tuple(state["lowest"]) if state["lowest"] else None
        self.loss, self.val_loss = (
            math.nan if state[name] is None else state[name] for name in ("loss", "val_loss")
        )
        self.ctx.resumed(self.step)

    def run(self) -> dict[str, Any]:
        """Train to the end; a cancel or a deadline on the way leaves the model so far."""
        self.start()
        try:
            while self.step < self.params.steps and not self.stopped:
                self.advance()
        except (Canceled, DeadlineExceeded):
            self.save_model(self.step, self.model.state_dict())
            raise
        return self.finish()

    def finish(self) -> dict[str, Any]:
        """Keep the model, say what became of it, and return the job's result."""
        self.save_checkpoint(self.step)
        self.save_model(self.step, self.model.state_dict())
        if self.lowest is not None and self.val_loss > self.lowest[0] + 0.1:
            low, step = self.lowest
            self.ctx.log(OVERFITTING.format(step=step, low=low, now=self.val_loss))
        return {
            "loss": self.loss,
            "val_loss": None if math.isnan(self.val_loss) else self.val_loss,
            "steps": self.step,
            "tokens_per_s": (self.step - self.first) * self.per_step / max(1e-9, self.busy_s),
            "checkpoint": checkpoint.MODEL,
            "parameters": parameter_count(self.config),
            "tokens": self.step * self.per_step,
        }

    # One step

    def advance(self) -> None:
        """Hear what people want, then do one update. Raises what `tick` and `update` raise."""
        asked = time.perf_counter()
        changed = self.ctx.tick(self.step, save=self.save_checkpoint)
        if "lr" in changed:
            self.set_lr(changed["lr"])
        began = time.perf_counter()
        self.report.begin(after_pause=began - asked > PAUSE_S)
        self.update()
        self.busy_s += time.perf_counter() - began

    def set_lr(self, peak: float) -> None:
        """Move the schedule's peak; warm-up and cosine go on from where they are."""
        self.peak_lr = peak
        self.ctx.log(NEW_LR.format(step=self.step, peak=peak, lr=self.lr()))

    def lr(self) -> float:
        """Learning rate of the next update."""
        params = self.params
        return self.peak_lr * schedule.shape(self.step, steps=params.steps, warmup=params.warmup)

    def update(self) -> None:
        """One update of the weights, then whatever is due after it."""
        params, lr = self.params, self.lr()
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        starts = torch.randint(
            len(self.train_ids) - params.block, (params.batch,), generator=self.batches
        ).to(self.train_ids.device)
        x, y = windows(self.train_ids, starts, params.block)
        loss = loss_of(self.model, x, y)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        limit = params.clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        self.loss = float(loss.detach())
        self.step += 1
        if not (math.isfinite(self.loss) and math.isfinite(norm)):
            self.report.metric(self.step, loss=self.loss, lr=lr, grad_norm=norm)
            broken = (LOSS, self.loss) if not math.isfinite(self.loss) else (GRADIENT, norm)
            self.diverge(NOT_FINITE.format(name=broken[0], value=broken[1]))
        self.runaway = self.runaway + 1 if self.loss > RUNAWAY * self.ln_v else 0
        self.keep(self.step - 1)  # these weights have just given a finite loss
        self.optimizer.step()
        self.after(lr, norm)

    def after(self, lr: float, norm: float) -> None:
        """Whatever is due after an update: evaluation, the metric, pictures, a checkpoint."""
        params, step = self.params, self.step
        numbers = {"loss": self.loss, "lr": lr, "grad_norm": norm}
        if len(self.held_out) and schedule.due(step, params.eval_every, params.steps):
            self.evaluate()
            numbers["val_loss"] = self.val_loss
        self.report.metric(step, **numbers)
        if self.runaway >= RUNAWAY_STEPS:
            limit = RUNAWAY * self.ln_v
            self.diverge(RAN_AWAY.format(limit=limit, steps=RUNAWAY_STEPS))
        if step in self.snapshots or self.stopped:
            self.report.attention(self.model, step)
        if step in self.samples or self.stopped:
            self.sample()
        if step % params.checkpoint_every == 0:
            self.save_checkpoint(step)

    def diverge(self, what: Text) -> None:
        """Stop, with the last weights that gave a finite loss and gradient on disk."""
        self.save_model(self.kept_step, self.kept)
        words = DIVERGED.format(step=self.step, what=what, lr=self.peak_lr, kept=self.kept_step)
        raise Diverged(words)

    # Looking at what it learned

    @torch.no_grad()
    def evaluate(self) -> None:
        """Loss on evenly spaced held-out windows; counts evaluations without progress."""
        block = self.params.block
        last = len(self.held_out) - block - 1
        if last < 0:
            return
        count = min(EVAL_WINDOWS, last + 1)
        starts = torch.linspace(0, last, count, device=self.held_out.device).long()
        self.model.eval()
        x, y = windows(self.held_out, starts, block)
        self.val_loss = float(loss_of(self.model, x, y))
        self.model.train()
        if self.lowest is None or self.val_loss < self.lowest[0]:
            self.lowest, self.stale = (self.val_loss, self.step), 0
            return
        self.stale += 1
        patience = self.params.patience
        if patience and self.stale >= patience and self.step < self.params.steps:
            self.stopped = True
            self.ctx.log(OUT_OF_PATIENCE.format(step=self.step, patience=patience))

    def sample(self) -> None:
        last = self.stopped or self.step == self.params.steps
        loss = self.loss if self.step else self.val_loss  # there is no training loss yet
        self.report.sample(self.model, self.step, loss=loss, last=last)

    # Keeping

    def keep(self, step: int) -> None:
        """Remember these weights: the ones to fall back on when training diverges.

        Called at every step, since whether weights give a finite loss shows only at the next one,
        when a bad update can't be taken back. One copy of the weights, in one call, into the same
        memory: next to forward and backward over a whole batch it doesn't show.
        """
        torch._foreach_copy_(list(self.kept.values()), list(self.weights.values()))
        self.kept_step = step

    def save_checkpoint(self, step: int) -> None:
        """A resume point of this very step, once."""
        if self.saved_at == step:
            return
        self.saved_at = step
        state = {
            "config": self.config.to_json(),
            "step": step,
            "peak_lr": self.peak_lr,
            "runaway": self.runaway,
            "stale": self.stale,
            "lowest": self.lowest,
            "loss": None if math.isnan(self.loss) else self.loss,
            "val_loss": None if math.isnan(self.val_loss) else self.val_loss,
        }
        name = checkpoint.checkpoint_name(step)
        tensors = checkpoint.pack(self.model, self.optimizer, self.generators)
        checkpoint.save(self.ctx.path(name), tensors, state)
        self.ctx.artifact(name, type="checkpoint/safetensors")

    def save_model(self, step: int, weights: dict[str, Tensor]) -> None:
        """The run's own model file, from now on the one that is loaded."""
        metadata = {"config": self.config.to_json(), "step": step}
        checkpoint.save(self.ctx.path(checkpoint.MODEL), weights, metadata)
        self.ctx.artifact(checkpoint.MODEL, type=checkpoint.MEDIA_TYPE)


def run(ctx: Context) -> dict[str, Any]:
    """Train a model. Raises Diverged, Canceled, DeadlineExceeded; each leaves a model behind."""
    return Trainer(ctx).run()
