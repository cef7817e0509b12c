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


register(
    Kind(
        name="pipe.echo",
        params=EchoParams,
        queue="interactive",
        run=f"{RUNS}:echo",
        title=words("Echo", "回声"),
        summary=words("Says it back.", "原样返回。"),
        result={"text": words("the text", "文本")},
        deadline_s=20,
    )
)
register(
    Kind(
        name="pipe.talk",
        params=TalkParams,
        queue="interactive",
        run=f"{RUNS}:talk",
        title=words("Talk", "说话"),
        summary=words("Emits metrics.", "发出指标。"),
        deadline_s=60,
    )
)
register(
    Kind(
        name="pipe.flood",
        params=TalkParams,
        queue="interactive",
        run=f"{RUNS}:flood",
        title=words("Flood", "洪水"),
        summary=words("Emits much.", "发出很多。"),
        deadline_s=120,
    )
)
register(
    Kind(
        name="pipe.train",
        params=TrainParams,
        queue="training",
        run=f"{RUNS}:train",
        title=words("Train", "训练"),
        summary=words("Counts with checkpoints.", "带检查点的计数。"),
        result={"steps": words("steps", "步数")},
        controls=CONTROLS,
        settable=frozenset({"lr"}),
        deadline_s=120,
    )
)
register(
    Kind(
        name="pipe.case",
        params=CaseParams,
        queue="interactive",
        run=f"{RUNS}:case",
        title=words("Case", "情形"),
        summary=words("Behaves as told.", "按要求行事。"),
        deadline_s=20,
    )
)
register(
    Kind(
        name="pipe.hang",
        params=EchoParams,
        queue="interactive",
        run=f"{RUNS}:hang",
        title=words("Hang", "卡住"),
        summary=words("Hears nothing.", "什么都听不到。"),
        deadline_s=1,
    )
)
register(
    Kind(
        name="pipe.ref",
        params=RefParams,
        queue="interactive",
        run=f"{RUNS}:ref",
        title=words("Ref", "引用"),
        summary=words("Reads another job's file.", "读取另一任务的文件。"),
        refs={"model": ("pipe.train",)},
        deadline_s=20,
    )
)
register(
    Kind(
        name="pipe.torch",
        params=EchoParams,
        queue="interactive",
        run=f"{RUNS}:torch",
        title=words("Torch", "Torch"),
        summary=words("Adds two tensors.", "两个张量相加。"),
        deadline_s=60,
    )
)


class BurnParams(Params):
    seconds: float = number(5.0, "Seconds", "秒数", ge=0, le=100)
    processes: int = param(
        1, label=words("Processes", "进程数"), help=words("How many.", "多少。"), ge=1, le=8
    )


class FileParams(Params):
    megabytes: float = number(1.0, "Megabytes", "兆字节", ge=0, le=1000)
    files: int = param(1, label=words("Files", "文件数"), help=words("How many.", "多少。"), ge=1)


register(
    Kind(
        name="pipe.burn",
        params=BurnParams,
        queue="interactive",
        run=f"{RUNS}:burn",
        title=words("Burn", "消耗"),
        summary=words("Uses processor time in other processes.", "在其他进程中消耗处理器时间。"),
        deadline_s=60,
        cpu_s=2,
    )
)
register(
    Kind(
        name="pipe.files",
        params=FileParams,
        queue="interactive",
        run=f"{RUNS}:files",
        title=words("Files", "文件"),
        summary=words("Writes files.", "写入文件。"),
        deadline_s=60,
    )
)
register(
    Kind(
        name="pipe.partial",
        params=EchoParams,
        queue="interactive",
        run=f"{RUNS}:partial",
        title=words("Partial", "部分"),
        summary=words("Makes something, then hears nothing.", "先产生结果，然后什么都听不到。"),
        deadline_s=5,
    )
)
register(
    Kind(
        name="pipe.backward",
        params=TalkParams,
        queue="training",
        run=f"{RUNS}:torch_steps",
        title=words("Torch", "Torch"),
        summary=words("Forward and backward.", "前向与反向。"),
        result={"loss": words("loss", "损失")},
        deadline_s=60,
        warm=("torch",),
    )
)
