"""Training with streaming, snapshots and checkpoints on, against a bare loop of the same model.

Both train in this process with the same number of threads and take turns of 25 steps, so that what
else the machine does hits both alike. Ours writes its events through the runner's own output to a
process that parses each line, as the supervisor does, and its time includes the last checkpoint.
The bare loop has the same model, batches, optimiser, schedule and clipping, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import torch

from compute.core.context import Context
from compute.core.kinds import get, validate
from compute.core.runner import Output
from compute.text import corpora
from compute.text.chars import CharTokenizer
from compute.transformer import data, schedule
from compute.transformer.estimate import config_of
from compute.transformer.model import Transformer
from compute.transformer.params import TrainParams
from compute.transformer.train import Trainer
from compute.transformer.update import loss_of, make_optimizer, windows

TURN = 25  # steps
READER = "import json, sys\nfor line in sys.stdin.buffer: json.loads(line)"


def bare_loop(params: TrainParams) -> Callable[[int], None]:
    """One step of the bare loop, as a function of the step's number."""
    text = corpora.read(params.data)
    tokenizer = CharTokenizer.of(text)
    ids = torch.frombuffer(tokenizer.encode(text), dtype=torch.int64)
    ids = ids[: data.split_at(len(ids), params.block)]
    torch.manual_seed(params.seed)
    model = Transformer(config_of(params, len(tokenizer))).train()
    optimizer = make_optimizer(model, params.weight_decay)

    def step(number: int) -> None:
        lr = params.lr * schedule.shape(number, steps=params.steps, warmup=params.warmup)
        for group in optimizer.param_groups:
            group["lr"] = lr
        starts = torch.randint(len(ids) - params.block, (params.batch,))
        loss = loss_of(model, *windows(ids, starts, params.block))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), params.clip)
        optimizer.step()

    return step


class Stopwatch:
    """Wall and CPU seconds spent inside `with` blocks."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if "OMP_WAIT_POLICY" not in os.environ:  # as the supervisor sets it; torch reads it at import
        passive = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        os.execve(sys.executable, [sys.executable, "-m", __spec__.name, *sys.argv[1:]], passive)
    torch.set_num_threads(options.threads)
    kind = get("transformer.train")
    params = cast(TrainParams, validate(kind.name, {"steps": options.steps}))
    ours, bare = Stopwatch(), Stopwatch()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE) as reader,
    ):
        assert reader.stdin is not None
        output = Output(cast(BinaryIO, reader.stdin))
        output.begin(lambda: None)
        ctx = Context(kind=kind, params=params, job="bench", dir=Path(folder), emit=output.event)
        trainer, step = Trainer(ctx), bare_loop(params)
        trainer.start()
        for first in range(0, params.steps, TURN):
            turn = range(first, min(first + TURN, params.steps))
            with ours:
                for _ in turn:
                    trainer.advance()
            with bare:
                for number in turn:
                    step(number)
        with ours:
            trainer.finish()
    tokens = params.steps * params.batch * params.block
    print(
        f"{params.steps} steps, {options.threads} threads: ours {tokens / ours.wall:,.0f} tok/s, "
        f"bare loop {tokens / bare.wall:,.0f} tokens/s, ratio {bare.wall / ours.wall:.3f} "
        f"(target ≥ 0.95); in CPU seconds {bare.cpu / ours.cpu:.3f}"
    )


if __name__ == "__main__":
    main()
