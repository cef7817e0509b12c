"""Small kinds for the tests, declared as a lab declares its own: nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from compute.core.kinds import CONTROLS, Kind, Params, param, problem, register
from compute.core.texts import Text

RUNS = "tests.compute.core.sample_runs"


def words(en: str, zh: str | None = None) -> Text:
    return Text(en, zh if zh is not None else en)


class CountParams(Params):
    steps: int = param(
        5,
        label=words("Steps", "步数"),
        help=words("How far to count.", "数到几。"),
        ge=1,
        le=100_000,
    )
    lr: float = param(
        0.5, label=words("Learning rate", "学习率"), help=words("Any.", "随意。"), gt=0, le=10
    )
    wait_ms: float = param(
        0.0, label=words("Wait", "等待"), help=words("A step.", "每步。"), unit="ms", ge=0, le=1000
    )


class FormParams(Params):
    """One field of every sort."""

    prompt: str = param(
        ...,
        label=words("Prompt", "提示"),
        help=words("Text.", "文本。"),
        min_length=1,
        max_length=20,
    )
    heads: int = param(4, label=words("Heads", "注意力头数"), help=words("H.", "头。"), ge=1, le=16)
    d_model: int = param(
        96, label=words("Width", "宽度"), help=words("C.", "宽。"), ge=16, le=512, multiple_of=8
    )
    d_ff: int | None = param(
        None, label=words("FFN width", "FFN 宽度"), help=words("F.", "宽。"), ge=1, le=4096
    )
    norm: str = param(
        "pre",
        label=words("Norm", "归一化"),
        help=words("Order.", "次序。"),
        choices={"pre": words("before", "之前"), "post": words("after", "之后")},
        group=words("Model", "模型"),
        advanced=True,
        widget="segmented",
    )
    dims: int = param(
        50,
        label=words("Dims", "维数"),
        help=words("D.", "维。"),
        choices={50: words("50"), 100: words("100")},
    )
    mode: Literal["fast", "slow"] = param(
        "fast", label=words("Mode", "模式"), help=words("M.", "模式。")
    )
    rate: float = param(0.1, label=words("Rate", "速率"), help=words("R.", "率。"), gt=0.0, lt=1.0)
    shuffle: bool = param(True, label=words("Shuffle", "打乱"), help=words("S.", "乱。"))
    terms: list[str] = param(
        [], label=words("Terms", "词项"), help=words("T.", "词。"), max_length=3
    )

    @model_validator(mode="after")
    def _heads_divide(self) -> FormParams:
        if self.d_model % self.heads:
            raise problem(
                "/heads",
                words("Heads must divide {n}.", "头数须整除 {n}。").format(n=self.d_model),
                [h for h in range(1, 17) if self.d_model % h == 0],
            )
        return self


class CaseParams(Params):
    case: str = param("", label=words("Case", "情形"), help=words("Which.", "哪种。"))
    seed: int = param(7, label=words("Seed", "种子"), help=words("S.", "种子。"), ge=0, lt=2**32)


class RefParams(Params):
    model: str = param("", label=words("Model", "模型"), help=words("A run.", "某次运行。"))


register(
    Kind(
        name="test.count",
        params=CountParams,
        queue="training",
        run=f"{RUNS}:count",
        title=words("Count", "计数"),
        summary=words("Counts, a metric a step.", "逐步计数。"),
        result={"steps": words("steps counted", "步数")},
        controls=CONTROLS,
        settable=frozenset({"lr"}),
        deadline_s=60,
    )
)
register(
    Kind(
        name="test.form",
        params=FormParams,
        queue="interactive",
        run=f"{RUNS}:form",
        title=words("Form", "表单"),
        summary=words("Every sort of field.", "各种字段。"),
    )
)
register(
    Kind(
        name="test.case",
        params=CaseParams,
        queue="interactive",
        run=f"{RUNS}:case",
        title=words("Case", "情形"),
        summary=words("Behaves as told.", "按要求行事。"),
        frames={"dot": words("a dot", "一个点")},
        deadline_s=30,
    )
)
register(
    Kind(
        name="test.broken",
        params=CaseParams,
        queue="interactive",
        run="tests.compute.core.no_such_module:run",
        title=words("Broken", "坏的"),
        summary=words("Its module can't be imported.", "模块无法导入。"),
    )
)
register(
    Kind(
        name="test.ref",
        params=RefParams,
        queue="interactive",
        run=f"{RUNS}:ref",
        title=words("Ref", "引用"),
        summary=words("Reads another job's file.", "读取另一任务的文件。"),
        refs={"model": ("test.count",)},
    )
)
