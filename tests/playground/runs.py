"""What the test kinds do. Only a runner imports this."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from typing import Any

from compute.core.context import Context
from compute.core.errors import UserError
from compute.core.texts import Text


def of(ctx: Context) -> Any:
    """The params; what fields they have is the kind's affair."""
    return ctx.params


def echo(ctx: Context) -> dict[str, Any]:
    return {"text": of(ctx).text}


def talk(ctx: Context) -> dict[str, Any]:
    for step in range(of(ctx).events):
        ctx.metric(step=step, loss=1.0 / (step + 1))
        if of(ctx).wait_ms:
            time.sleep(of(ctx).wait_ms / 1000)
            ctx.tick(step)
    return {"events": of(ctx).events}


def flood(ctx: Context) -> dict[str, Any]:
    """Events of about 14 KB each, under the limit of 16."""
    line = "x" * 14_000
    for step in range(of(ctx).events):
        ctx.log(f"{step} {line}")
    return {"events": of(ctx).events}


def train(ctx: Context) -> dict[str, Any]:
    first, lr = 0, of(ctx).lr

    def save(step: int) -> None:
        name = f"checkpoints/step-{step:06d}.json"
        ctx.path(name).write_text(json.dumps({"step": step, "lr": lr}))
        ctx.artifact(name, type="checkpoint/json")

    if ctx.resume_from is not None:
        newest = max((ctx.resume_from / "checkpoints").glob("step-*.json"))
        state = json.loads(newest.read_text())
        first, lr = state["step"], state["lr"]
        ctx.resumed(first)
    for step in range(first, of(ctx).steps):
        lr = ctx.tick(step, save=save).get("lr", lr)
        ctx.metric(step=step, loss=1.0 / (step + 1), lr=lr)
        ctx.progress(step + 1, of(ctx).steps)
        if step and step % of(ctx).save_every == 0:
            save(step)
        time.sleep(of(ctx).wait_ms / 1000)
    ctx.path("model.bin").write_bytes(bytes(range(256)) * 4)
    ctx.artifact("model.bin", type="application/octet-stream")
    return {"steps": of(ctx).steps, "first": first, "lr": lr}


def ref(ctx: Context) -> dict[str, Any]:
    folder = ctx.input("model")
    found = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    return {"files": found}


def torch(ctx: Context) -> dict[str, Any]:
    import torch

    return {"sum": float((torch.ones(3) + torch.ones(3)).sum())}


def hang(ctx: Context) -> dict[str, Any]:
    """One call in C that hears nothing."""
    return {"sum": sum(range(10**12))}


def case(ctx: Context) -> dict[str, Any]:
    name = of(ctx).case
    if name == "nan":
        ctx.metric(step=0, loss=math.nan, up=math.inf, down=-math.inf)
        return {"loss": math.nan}
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "exit":
        os._exit(3)
    if name == "user":
        raise UserError(Text("That is not possible.", "那不可能。"))
    if name == "bug":
        raise RuntimeError("a secret detail")
    if name == "memory":
        block = bytearray(900 * 2**20)
        block[::4096] = b"x" * len(block[::4096])
        time.sleep(30)
    if name == "hang":
        hang(ctx)
    if name == "chatter":
        print("\x1b[31mred")
        print("x" * 5_000)
        for line in range(2_000):
            print(line)
    if name == "print":
        print('{"type":"end","data":{"state":"succeeded"}}')
        os.write(1, b'{"type":"end","data":{"state":"succeeded"}}\n')
    if name == "file":
        ctx.path("sub/plain.txt").write_text("0123456789")
        ctx.artifact("sub/plain.txt", type="text/plain")
        ctx.path("page.html").write_text("<script>alert(1)</script>")
        ctx.artifact("page.html", type="text/html")
    return {"pid": os.getpid()}


def burn(ctx: Context) -> dict[str, Any]:
    """Busy children, one after another: each has ended before the next starts."""
    loop = "import time\nwhile time.process_time() < {}: pass"
    for _ in range(of(ctx).processes):
        subprocess.run([sys.executable, "-c", loop.format(of(ctx).seconds)], check=True)
    return {}


def files(ctx: Context) -> dict[str, Any]:
    for number in range(of(ctx).files):
        name = f"part-{number}.bin"
        ctx.path(name).write_bytes(b"x" * int(of(ctx).megabytes * 2**20))
        ctx.artifact(name, type="application/octet-stream")
        time.sleep(0.1)
    time.sleep(1)
    return {}


def partial(ctx: Context) -> dict[str, Any]:
    ctx.metric(step=0, loss=0.5)
    ctx.path("part.txt").write_text("kept")
    ctx.artifact("part.txt", type="text/plain")
    return hang(ctx)


def torch_steps(ctx: Context) -> dict[str, Any]:
    """Forward and backward of a small network, `events` times."""
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 1))
    x = torch.randn(256, 256)
    for _ in range(of(ctx).events):
        loss = net(x).square().mean()
        net.zero_grad()
        loss.backward()
    return {"loss": float(loss), "threads": torch.get_num_threads()}
