"""How a job ends when its runner can't say so, in words that a student understands."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import Any

from compute.core.errors import REASONS
from compute.core.texts import Text, joined
from playground.jobs import states

CANCELED = Text("You canceled the job.", "你取消了任务。")
KILLED = Text(
    "The process that ran the job was ended by signal {signal}.",
    "运行任务的进程被信号 {signal} 终止了。",
)
EXITED = Text(
    "The process that ran the job ended with exit code {code}.",
    "运行任务的进程以退出码 {code} 结束了。",
)
OVER_MEMORY = Text(
    "The job used {used} MB of memory; the limit is {limit} MB. Try a smaller batch or model.",
    "任务用了 {used} MB 内存，上限是 {limit} MB。请减小批大小或模型。",
)
OVER_TIME = Text(
    "The job ran past its limit of {limit} seconds.", "任务超过了 {limit} 秒的时间上限。"
)

KEPT = Text("What it saved last is kept: {checkpoint}.", "它最后保存的检查点还在：{checkpoint}。")


@dataclass(frozen=True)
class Outcome:
    """A terminal state with its reason, its words and the result."""

    state: str
    reason: str = ""
    message: str = ""
    message_zh: str = ""
    result: Any = None

    def end_data(self) -> dict[str, Any]:
        """The data of the `end` event."""
        return {
            "state": self.state,
            "reason": self.reason or None,
            "message": self.message or None,
            "message_zh": self.message_zh or None,
            "result": self.result,
        }

    def error_data(self) -> dict[str, Any]:
        """The data of the `error` event before it."""
        return {
            "reason": self.reason,
            "message": self.message,
            "message_zh": self.message_zh,
        }


def failure(reason: str, words: Text | None = None) -> Outcome:
    """A failed end with `reason`, in its usual words or better ones."""
    words = words or REASONS[reason]
    return Outcome(states.FAILED, reason, words.en, words.zh)


def with_kept(outcome: Outcome, checkpoint: str | None) -> Outcome:
    """`outcome` with the name of the newest checkpoint in its words, if there is one."""
    if checkpoint is None:
        return outcome
    kept = KEPT.format(checkpoint=checkpoint)
    words = joined([Text(outcome.message, outcome.message_zh), kept])
    return replace(outcome, message=words.en, message_zh=words.zh)


def from_runner(data: dict[str, Any]) -> Outcome:
    """The runner's `end`. A state or reason that isn't one of ours becomes an internal failure."""
    state, reason = data.get("state"), data.get("reason") or ""
    if state not in (states.SUCCEEDED, states.FAILED, states.CANCELED):
        return failure("internal")
    if reason and reason not in REASONS:
        reason = "internal"
    message, message_zh = str(data.get("message") or ""), str(data.get("message_zh") or "")
    return Outcome(state, reason, message, message_zh, data.get("result"))


def canceled() -> Outcome:
    return Outcome(states.CANCELED, "", CANCELED.en, CANCELED.zh)


def died(code: int) -> Outcome:
    """The runner's process ended without a word; `code` is its exit code, negative for a signal."""
    if code < 0:
        names = {int(number): number.name for number in signal.Signals}
        name = names.get(-code, "?")
        return failure("worker_lost", KILLED.format(signal=f"{-code} ({name})"))
    return failure("worker_lost", EXITED.format(code=code))
