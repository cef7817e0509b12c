"""The run functions of the sample kinds. Imported only by a process that runs a job."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from compute.core.context import Context
from compute.core.errors import Diverged, UserError
from compute.core.texts import Text
from tests.compute.core.sample_kinds import CountParams


def count(ctx: Context) -> dict[str, Any]:
    """Count from 0, or from where the checkpoint of an earlier attempt stands."""
    assert isinstance(ctx.params, CountParams)
    start = 0
    if ctx.resume_from is not None:
        start = int((ctx.resume_from / "checkpoint.txt").read_text())
        ctx.resumed(start)
    steps, lr = ctx.params.steps, ctx.params.lr
    for step in range(start, steps):
        lr = ctx.tick(step, save=lambda step: save(ctx, step)).get("lr", lr)
        ctx.metric(step, lr=lr)
        time.sleep(ctx.params.wait_ms / 1000)
    return {"steps": steps, "lr": lr}


def save(ctx: Context, step: int) -> None:
    ctx.path("checkpoint.txt").write_text(str(step))
    ctx.artifact("checkpoint.txt", type="text/plain")


def form(ctx: Context) -> dict[str, Any]:
    return ctx.params.model_dump()


def ref(ctx: Context) -> dict[str, Any]:
    return {"text": (ctx.input("model") / "note.txt").read_text()}


def case(ctx: Context) -> dict[str, Any] | None:
    name = ctx.params.model_dump()["case"]
    return CASES[name](ctx)


def prints(ctx: Context) -> dict[str, Any]:
    print('{"type":"end","data":{"state":"forged"}}')
    os.write(1, b"raw bytes on fd 1\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return {"read": sys.stdin.readline()}


def metrics(ctx: Context) -> dict[str, Any]:
    ctx.metric(0, loss=float("nan"), up=float("inf"), down=float("-inf"), np=np.float32(0.5))
    ctx.log("one\u2028two\u2029three\u0085four\nfive")
    ctx.log("half \ud800 a pair")
    ctx.log("词元 <img src=x onerror=alert(1)>")
    return {"value": np.int64(3)}


def big_event(ctx: Context) -> None:
    ctx.frame("dot", data="x" * 17 * 1024)


def big_result(ctx: Context) -> dict[str, Any]:
    return {"text": "x" * 17 * 1024}


def long_log(ctx: Context) -> None:
    ctx.log("词" * 100_000)


def exits(ctx: Context) -> None:
    os._exit(3)


def sys_exits(ctx: Context) -> None:
    sys.exit(4)


def memory(ctx: Context) -> None:
    np.empty(2**60, dtype=np.uint8)  # numpy's own MemoryError, nothing simulated


def torch_memory(ctx: Context) -> None:
    import torch

    torch.empty(2**58)


def user_error(ctx: Context) -> None:
    raise UserError(Text("Pick a longer text.", "请换一段更长的文本。"))


def diverges(ctx: Context) -> None:
    raise Diverged(Text("The loss is NaN at step 3.", "第 3 步损失为 NaN。"))


def bug(ctx: Context) -> None:
    raise KeyError("secret detail")


def spins(ctx: Context) -> None:
    while True:
        pass


def sleeps_with_child(ctx: Context) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    ctx.log(str(child.pid))
    child.wait()


def draws(ctx: Context) -> dict[str, Any]:
    import torch

    return {
        "python": random.random(),
        "numpy": float(np.random.rand()),
        "torch": float(torch.rand(1, dtype=torch.float64)),
        "threads": torch.get_num_threads(),
    }


def litters(ctx: Context) -> dict[str, Any]:
    os.chdir("/")
    os.environ["LEFT_BEHIND"] = "1"
    return {}


def looks(ctx: Context) -> dict[str, Any]:
    return {"cwd": str(Path.cwd()), "left": os.environ.get("LEFT_BEHIND")}


def forges_end(ctx: Context) -> None:
    ctx.emit("end", state="succeeded")


def undeclared_frame(ctx: Context) -> None:
    ctx.frame("blob")


def interrupted(ctx: Context) -> None:
    raise KeyboardInterrupt


CASES: dict[str, Callable[[Context], dict[str, Any] | None]] = {
    function.__name__: function
    for function in (
        prints, metrics, big_event, big_result, long_log, exits, sys_exits, memory, torch_memory,
        user_error, diverges, bug, spins, sleeps_with_child, draws, litters, looks,
        forges_end, undeclared_frame, interrupted,
    )
}  # fmt: skip
