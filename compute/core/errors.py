"""What can go wrong in a computation, each with a reason and words that a student understands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from compute.core.texts import Text, joined, shorten

if TYPE_CHECKING:
    from compute.core import Run

Reason = Literal[
    "user_error",
    "invalid_input",
    "deadline_exceeded",
    "out_of_memory",
    "worker_lost",
    "diverged",
    "quota_exceeded",
    "internal",
]

REASONS: dict[str, Text] = {
    "user_error": Text("What you asked for can't be done.", "你要做的事无法完成。"),
    "invalid_input": Text("A value you gave is not valid.", "你填的某个值无效。"),
    "deadline_exceeded": Text("The job ran past its time limit.", "任务超过了时间上限。"),
    "out_of_memory": Text(
        "The job ran out of memory. Try a smaller batch, block or model.",
        "任务内存不足。请减小批大小 (batch)、上下文长度 (block) 或模型。",
    ),
    "worker_lost": Text(
        "The process that ran the job ended unexpectedly.", "运行任务的进程意外结束了。"
    ),
    "diverged": Text("The numbers grew without bound.", "数值无限增大，训练发散了。"),
    "quota_exceeded": Text("Your quota is used up.", "你的配额已用完。"),
    "internal": Text(
        "Something failed inside the program. It is not your input's fault.",
        "程序内部出错，不是你的输入造成的。",
    ),
}

DID_YOU_MEAN = Text('Did you mean "{near}"?', "你要的可能是“{near}”。")
_BUG = Text(
    "Something failed inside the program ({name}). It is not your input's fault.",
    "程序内部出错（{name}），不是你的输入造成的。",
)


class ComputeError(Exception):
    """A failure with a `reason` and a `text` in both languages; `str(error)` is the English."""

    reason: str = "internal"

    def __init__(self, text: Text | None = None, *, reason: str | None = None) -> None:
        if reason is not None:
            self.reason = reason
        if self.reason not in REASONS:
            raise ValueError(f"unknown reason {self.reason!r}; the reasons are {list(REASONS)}")
        self.text = text if text is not None else REASONS[self.reason]
        self.run: Run | None = None  # what the job had made so far; set by compute.core.run
        super().__init__(self.text.en)

    def data(self) -> dict[str, Any]:
        """The data of the `error` event."""
        return {"reason": self.reason, "message": self.text.en, "message_zh": self.text.zh}


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the params: where (a JSON pointer), what, and the nearest valid."""

    pointer: str
    text: Text
    nearest: list[Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"pointer": self.pointer, "text": self.text.as_dict()}
        return found if self.nearest is None else {**found, "nearest": self.nearest}


class InvalidParams(ComputeError):
    """The params of a kind are refused; `problems` says each thing that is wrong."""

    reason = "invalid_input"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        # Two fields that disagree carry the same sentence; said once it is enough.
        super().__init__(joined(dict.fromkeys(problem.text for problem in self.problems)))

    def data(self) -> dict[str, Any]:
        return {**super().data(), "problems": [problem.as_dict() for problem in self.problems]}


class UnknownKind(ComputeError):
    """No kind has that name; `nearest` holds the names that look like it."""

    reason = "invalid_input"

    def __init__(self, name: str, nearest: Sequence[str]) -> None:
        self.name = name
        self.nearest = list(nearest)
        text = Text('There is no kind "{name}".', "没有名为“{name}”的任务类型。")
        text = text.format(name=shorten(name, 80))
        if self.nearest:
            text = joined([text, DID_YOU_MEAN.format(near=self.nearest[0])])
        super().__init__(text)


class UserError(ComputeError):
    """The job can't do what it was asked, for a reason in the input that shows only on the way."""

    reason = "user_error"


class DeadlineExceeded(ComputeError):
    """The job ran past its deadline."""

    reason = "deadline_exceeded"


class Diverged(ComputeError):
    """The numbers left the finite: a loss or gradient is NaN, infinite, or runs away."""

    reason = "diverged"


class Canceled(BaseException):
    """Control flow, not a failure: someone asked the job to stop.

    Not an Exception, so that a job's own `except Exception` can't swallow it.
    """

    def __init__(self, text: Text | None = None) -> None:
        self.text = text if text is not None else Text("You canceled the job.", "你取消了任务。")
        self.run: Run | None = None
        super().__init__(self.text.en)


def classify(exc: BaseException) -> ComputeError:
    """Any exception as a ComputeError: memory errors by their many names, the rest `internal`."""
    if isinstance(exc, ComputeError):
        return exc
    if isinstance(exc, MemoryError) or _is_torch_out_of_memory(exc):
        return ComputeError(reason="out_of_memory")
    return ComputeError(_BUG.format(name=type(exc).__name__))


def _is_torch_out_of_memory(exc: BaseException) -> bool:
    """torch raises its own class for CUDA and a bare RuntimeError for the CPU's allocator."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(exc, RuntimeError):
        return False
    return isinstance(exc, torch.OutOfMemoryError) or "can't allocate memory" in str(exc)
