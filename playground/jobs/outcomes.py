"""How a job ends when its runner can't say so, in words that a student understands."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from compute.core.errors import REASONS
from compute.core.texts import Text, joined
from playground.jobs import states

CANCELED = Text("You canceled the job.", "你取消了任务。")
ABORTED = Text("You canceled it before it started.", "你在它开始之前取消了它。")
CANCEL_AFTER = Text(
    "It was canceled at {moment}, the deadline that you set when you submitted it.",
    "它在 {moment} 被取消，这是你提交时设定的期限。",
)
ABORT_AFTER = Text(
    "It had not started by {moment}, the deadline that you set when you submitted it.",
    "到 {moment}（你提交时设定的期限）它还没有开始。",
)
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
NO_MORE_MEMORY = Text(
    "The job needed more than its limit of {limit} MB of memory. Try a smaller batch or model.",
    "任务所需的内存超过了 {limit} MB 的上限。请减小批大小或模型。",
)
NEVER_BEGAN = Text(
    "The process that should have run the job did not begin. Submit it again.",
    "本应运行任务的进程没有开始工作，请重新提交。",
)
OVER_TIME = Text(
    "The job ran past its limit of {limit} seconds.", "任务超过了 {limit} 秒的时间上限。"
)
OVER_CPU = Text(
    "The job used {used} seconds of processor time, over all its threads and processes; the limit "
    "is {limit}. What it made so far is kept.",
    "任务的所有线程和进程共用了 {used} 秒处理器时间，上限是 {limit} 秒。已完成的部分会保留。",
)
OVER_QUOTA = Text(
    "Your files would take up more than your quota: {needed} MB more are needed and {left} MB are "
    "left. Delete runs or uploads that you no longer need. What the job made before is kept.",
    "你的文件将超出配额：还需要 {needed} MB，只剩 {left} MB。请删除不再需要的运行或上传的文件。"
    "任务此前产生的内容会保留。",
)
STOPPED_TWICE = Text(
    "Something outside stopped the process that ran the job, twice.",
    "运行任务的进程两次被外部停止。",
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

    def row(self) -> dict[str, Any]:
        """The columns of the terminal row."""
        return {
            "state": self.state,
            "reason": self.reason,
            "message": self.message,
            "message_zh": self.message_zh,
            "result": self.result,
        }

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


def too_late(state: str, limit_s: int) -> Outcome:
    """The time is up in `state`: of the job, or of the process that should have begun it."""
    if state == states.STARTING:
        return failure("worker_lost", NEVER_BEGAN)
    return failure("deadline_exceeded", OVER_TIME.format(limit=limit_s))


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


def canceled(deadline: datetime | None = None) -> Outcome:
    """Canceled by a person, or at the `deadline` that came with the submission."""
    words = CANCELED if deadline is None else CANCEL_AFTER.format(moment=_shown(deadline))
    return Outcome(states.CANCELED, "", words.en, words.zh)


def aborted(deadline: datetime | None = None) -> Outcome:
    """The same for a job that has not started."""
    words = ABORTED if deadline is None else ABORT_AFTER.format(moment=_shown(deadline))
    return Outcome(states.ABORTED, "", words.en, words.zh)


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def died(code: int) -> Outcome:
    """The runner's process ended without a word; `code` is its exit code, negative for a signal."""
    if code < 0:
        names = {int(number): number.name for number in signal.Signals}
        name = names.get(-code, "?")
        return failure("worker_lost", KILLED.format(signal=f"{-code} ({name})"))
    return failure("worker_lost", EXITED.format(code=code))
