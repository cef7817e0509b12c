"""Kinds for the pipe's tests, declared as a lab declares its own."""

from __future__ import annotations

from typing import Any

from compute.core.kinds import CONTROLS, Kind, Params, param, problem, register
from compute.core.texts import Text

RUNS = "tests.playground.runs"


def words(en: str, zh: str) -> Text:
    return Text(en, zh)


def number(default: float, en: str, zh: str, **limits: Any) -> float:
    value: float = param(default, label=words(en, zh), help=words(f"{en}.", f"{zh}。"), **limits)
    return value


def declare(
    name: str, params: type[Params], run: str, title: Text, summary: Text, **more: Any
) -> None:
    """A kind whose function is in RUNS; interactive unless `more` says otherwise."""
    more.setdefault("queue", "interactive")
    register(
        Kind(name=name, params=params, run=f"{RUNS}:{run}", title=title, summary=summary, **more)
    )


class EchoParams(Params):
    text: str = param(
        "hello", label=words("Text", "文本"), help=words("Any.", "任意。"), max_length=4000
    )


class TalkParams(Params):
    events: int = param(
        10, label=words("Events", "事件数"), help=words("How many.", "多少。"), ge=0, le=100_000
    )
    wait_ms: float = number(0.0, "Wait", "等待", ge=0, le=1000)


class TrainParams(Params):
    steps: int = param(
        20, label=words("Steps", "步数"), help=words("How many.", "多少。"), ge=1, le=1_000_000
    )
    wait_ms: float = number(10.0, "Wait", "等待", ge=0, le=1000)
    lr: float = number(0.5, "Learning rate", "学习率", gt=0, le=10)
    save_every: int = param(
        5, label=words("Save every", "保存间隔"), help=words("Steps.", "步。"), ge=1, le=1000
    )


class CaseParams(Params):
    case: str = param("", label=words("Case", "情形"), help=words("Which.", "哪种。"))

    def model_post_init(self, context: object, /) -> None:
        if self.case == "refused":
            raise problem("/case", words("That case is refused.", "该情形被拒绝。"), ["nan"])


class RefParams(Params):
    model: str = param("", label=words("Model", "模型"), help=words("A run.", "某次运行。"))


declare(
    "pipe.echo",
    EchoParams,
    "echo",
    words("Echo", "回声"),
    words("Says it back.", "原样返回。"),
    result={"text": words("the text", "文本")},
    deadline_s=20,
)
declare(
    "pipe.talk",
    TalkParams,
    "talk",
    words("Talk", "说话"),
    words("Emits metrics.", "发出指标。"),
    deadline_s=60,
)
declare(
    "pipe.flood",
    TalkParams,
    "flood",
    words("Flood", "洪水"),
    words("Emits much.", "发出很多。"),
    deadline_s=120,
)
declare(
    "pipe.train",
    TrainParams,
    "train",
    words("Train", "训练"),
    words("Counts with checkpoints.", "带检查点的计数。"),
    queue="training",
    result={"steps": words("steps", "步数")},
    controls=CONTROLS,
    settable=frozenset({"lr"}),
    deadline_s=120,
)
declare(
    "pipe.case",
    CaseParams,
    "case",
    words("Case", "情形"),
    words("Behaves as told.", "按要求行事。"),
    deadline_s=20,
)
declare(
    "pipe.hang",
    EchoParams,
    "hang",
    words("Hang", "卡住"),
    words("Hears nothing.", "什么都听不到。"),
    deadline_s=1,
)
declare(
    "pipe.ref",
    RefParams,
    "ref",
    words("Ref", "引用"),
    words("Reads another job's file.", "读取另一任务的文件。"),
    refs={"model": ("pipe.train",)},
    deadline_s=20,
)
declare(
    "pipe.torch",
    EchoParams,
    "torch",
    words("Torch", "Torch"),
    words("Adds two tensors.", "两个张量相加。"),
    deadline_s=60,
)


class BurnParams(Params):
    seconds: float = number(5.0, "Seconds", "秒数", ge=0, le=100)
    processes: int = param(
        1, label=words("Processes", "进程数"), help=words("How many.", "多少。"), ge=1, le=8
    )


class FileParams(Params):
    megabytes: float = number(1.0, "Megabytes", "兆字节", ge=0, le=1000)
    files: int = param(1, label=words("Files", "文件数"), help=words("How many.", "多少。"), ge=1)


declare(
    "pipe.burn",
    BurnParams,
    "burn",
    words("Burn", "消耗"),
    words("Uses processor time in other processes.", "在其他进程中消耗处理器时间。"),
    deadline_s=60,
    cpu_s=2,
)
declare(
    "pipe.files",
    FileParams,
    "files",
    words("Files", "文件"),
    words("Writes files.", "写入文件。"),
    deadline_s=60,
)
declare(
    "pipe.partial",
    EchoParams,
    "partial",
    words("Partial", "部分"),
    words("Makes something, then hears nothing.", "先产生结果，然后什么都听不到。"),
    deadline_s=5,
)
declare(
    "pipe.backward",
    TalkParams,
    "torch_steps",
    words("Torch", "Torch"),
    words("Forward and backward.", "前向与反向。"),
    queue="training",
    result={"loss": words("loss", "损失")},
    deadline_s=60,
    warm=("torch",),
)
