"""Controls of a running job: cancel, pause, resume, step and live set, applied between steps."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from compute.core.errors import Canceled, DeadlineExceeded, InvalidParams
from compute.core.kinds import CONTROLS, Kind, validate_set
from compute.core.params import Params
from compute.core.texts import Text, shorten

_DEADLINE = Text(
    "The job reached its time limit of {seconds} s at step {step}. What it made so far is kept.",
    "任务在第 {step} 步到达 {seconds} 秒的时间上限，已完成的部分会保留。",
)
_STOPPED = Text(
    "The process was asked to stop. The job ends at step {step}.",
    "进程收到停止请求，任务在第 {step} 步结束。",
)
_NOT_OFFERED = Text(
    'This kind of job does not take the control "{action}".', "这类任务不支持控制“{action}”。"
)
_NOT_PAUSED = Text(
    "The job is not paused, so there is nothing to resume.", "任务没有暂停，无需恢复。"
)
_ALREADY_PAUSED = Text("The job is already paused.", "任务已经暂停。")
_TOO_LATE = Text(
    'The job ended before the control "{action}" could take effect.',
    "控制“{action}”还没生效，任务就结束了。",
)

STOP = "stop"  # the process's own control: SIGTERM, never sent by a client
Save = Callable[[int], object]


class Speaker(Protocol):
    """The part of a Context that controls speak through."""

    attempt: int

    def _emit(self, type: str, data: Mapping[str, Any], /) -> None: ...

    def log(self, text: str | Text, level: str = "info") -> None: ...

    def settle(self) -> None: ...


class ControlBox:
    """Controls on their way into a job. `put` is safe from any thread and from signal handlers."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    def put(self, control: Mapping[str, Any]) -> None:
        self._queue.put(control)

    def take(self, *, wait: bool = False) -> Mapping[str, Any] | None:
        """The next control, or None when there is none and `wait` is false."""
        try:
            return self._queue.get(block=wait)
        except queue.Empty:
            return None


class Clock:
    """A deadline that stands still while the job is paused. Seconds, monotonic."""

    def __init__(self, deadline_s: float | None) -> None:
        self.deadline_s = deadline_s
        self._start = time.monotonic()
        self._paused_s = 0.0
        self._paused_at: float | None = None

    def spent_s(self) -> float:
        end = self._paused_at if self._paused_at is not None else time.monotonic()
        return end - self._start - self._paused_s

    def over_by_s(self) -> float:
        """How far past the deadline; negative while there is time left."""
        return float("-inf") if self.deadline_s is None else self.spent_s() - self.deadline_s

    def pause(self) -> None:
        self._paused_at = time.monotonic()

    def resume(self) -> None:
        paused_at, self._paused_at = self._paused_at, None
        if paused_at is not None:
            self._paused_s += time.monotonic() - paused_at


class Controls:
    """The state machine behind `Context.tick`: running, or paused until someone says otherwise."""

    def __init__(
        self,
        speaker: Speaker,
        *,
        kind: Kind,
        box: ControlBox,
        clock: Clock,
        replay: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.box = box
        self._speaker, self._kind, self._clock = speaker, kind, clock
        self._replay = sorted(
            (c for c in replay if c.get("action") == "set" and isinstance(c.get("step"), int)),
            key=lambda control: control["step"],
        )
        self._pause_next = False  # a single step has been granted: pause at the next tick
        self._paused = False

    def tick(self, step: int, params: Params, save: Save | None) -> tuple[Params, dict[str, Any]]:
        """Apply what has come in; block while paused. Returns the params and what `set` changed.

        Raises Canceled, and DeadlineExceeded.
        """
        self._check_deadline(step)
        params, changed = self._replayed(step, params)
        if self._pause_next:
            self._pause_next = False
            self._enter_pause(step, save, action=None)
        while (control := self.box.take(wait=self._paused)) is not None:
            action = control.get("action")
            if action == STOP:
                self._stop(step, save)
            elif not isinstance(action, str) or action not in self._kind.controls & CONTROLS:
                self._refuse(action)
            elif action == "set":
                params = self._set(step, params, control.get("values"), changed)
            else:
                self._move(action, step, save)
                if action == "step":
                    break  # a second step that waits behind this one is the next tick's
        return params, changed

    def forget_before(self, step: int) -> None:
        """After a resume from `step`: what was set before it is in the checkpoint already."""
        self._replay = [control for control in self._replay if control["step"] >= step]

    def leave(self) -> None:
        """The job has ended: say which controls came too late."""
        while (control := self.box.take()) is not None:
            action = shorten(str(control.get("action")), 40)
            self._speaker.log(_TOO_LATE.format(action=action), "debug")

    def _move(self, action: str, step: int, save: Save | None) -> None:
        """Cancel, pause, resume or single step."""
        if action == "cancel":
            self._say("cancel", step)
            raise Canceled
        if action == "pause":
            if self._paused:
                self._speaker.log(_ALREADY_PAUSED)
            else:
                self._enter_pause(step, save, action="pause")
        elif action == "step":
            self._say("step", step)
            self._pause_next = True
            self._leave_pause()
        elif self._paused:
            self._say("resume", step)
            self._leave_pause()
        else:
            self._speaker.log(_NOT_PAUSED)

    def _enter_pause(self, step: int, save: Save | None, *, action: str | None) -> None:
        self._clock.pause()
        self._paused = True
        if save is not None:
            save(step)
        if action is not None:
            self._say(action, step)
        self._speaker.settle()
        state = {"state": "paused", "attempt": self._speaker.attempt, "step": step}
        self._speaker._emit("state", state)

    def _leave_pause(self) -> None:
        if self._paused:
            self._paused = False
            self._clock.resume()
            state = {"state": "running", "attempt": self._speaker.attempt}
            self._speaker._emit("state", state)

    def _stop(self, step: int, save: Save | None) -> None:
        if save is not None and not self._paused:  # a pause has saved this step already
            save(step)
        raise Canceled(_STOPPED.format(step=step))

    def _set(
        self, step: int, params: Params, values: Any, changed: dict[str, Any], **told: Any
    ) -> Params:
        """Valid `values` go into the params and into `changed`; the rest are refused in the log."""
        try:
            new = validate_set(self._kind, params, values)
        except InvalidParams as refused:
            self._speaker.log(refused.text, "warning")
            return params
        accepted = {name: getattr(new, name) for name in values}
        changed.update(accepted)
        self._say("set", step, values=accepted, **told)
        return new

    def _replayed(self, step: int, params: Params) -> tuple[Params, dict[str, Any]]:
        """What an earlier attempt was told at this step, now told again."""
        changed: dict[str, Any] = {}
        while self._replay and self._replay[0]["step"] <= step:
            values = self._replay.pop(0).get("values")
            params = self._set(step, params, values, changed, replayed=True)
        return params, changed

    def _refuse(self, action: object) -> None:
        name = shorten(str(action), 40)
        self._speaker.log(_NOT_OFFERED.format(action=name), "warning")

    def _check_deadline(self, step: int) -> None:
        if self._clock.over_by_s() >= 0:
            seconds = f"{self._clock.deadline_s:g}"
            raise DeadlineExceeded(_DEADLINE.format(seconds=seconds, step=step))

    def _say(self, action: str, step: int, **data: Any) -> None:
        self._speaker._emit("control", {"action": action, "step": step, **data})
