"""One job from its first event to its last, the same in a runner, a notebook and the shell."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compute.core import devices
from compute.core.context import Context
from compute.core.controls import ControlBox
from compute.core.errors import Canceled, ComputeError, InvalidParams, Problem, classify
from compute.core.kinds import Kind, get, validate
from compute.core.texts import Text, shorten

Emit = Callable[[str, Mapping[str, Any]], None]

MAX_MESSAGE_CHARACTERS = 1_000
_BAD_SPEC = Text("The job's description is not valid: {what}.", "任务描述无效：{what}。")
_NO_OBJECT = Text("it is no JSON object", "它不是 JSON 对象")
_MISSING = Text("{name} is missing", "缺少 {name}")
_WRONG_TYPE = Text("{name} has the wrong type", "{name} 的类型不对")


@dataclass(frozen=True)
class Spec:
    """What a runner is given for one job; in JSON an object with these names, paths as strings.

    inputs       artifact folders of other jobs, by the param that names the job; the file itself
                 where it names an upload
    resume_from  the folder of an earlier attempt whose checkpoint to continue
    replay       that attempt's `control` events, of which `set` is told again
    """

    job: str
    kind: str
    params: Any
    dir: Path
    attempt: int = 1
    seed: int = 0
    inputs: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    device: str = "cpu"
    deadline_s: float | None = None
    resume_from: Path | None = None
    replay: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def parse(cls, raw: Any) -> Spec:
        """A Spec out of decoded JSON. Raises InvalidParams naming the field that is wrong."""
        if not isinstance(raw, Mapping):
            raise _bad_spec("", _NO_OBJECT)
        for name, types in _SPEC_TYPES.items():
            value = raw.get(name)
            if value is None and name in _SPEC_REQUIRED:
                raise _bad_spec(f"/{name}", _MISSING.format(name=name))
            if value is not None and (not isinstance(value, types) or isinstance(value, bool)):
                raise _bad_spec(f"/{name}", _WRONG_TYPE.format(name=name))
        known = {name: raw[name] for name in _SPEC_TYPES if raw.get(name) is not None}
        known["dir"] = Path(known["dir"])
        if "resume_from" in known:
            known["resume_from"] = Path(known["resume_from"])
        known["replay"] = tuple(known.get("replay", ()))
        return cls(params=raw.get("params", {}), **known)


_SPEC_REQUIRED = frozenset({"job", "kind", "dir"})
_SPEC_TYPES: dict[str, tuple[type, ...]] = {
    "job": (str,),
    "kind": (str,),
    "dir": (str,),
    "attempt": (int,),
    "seed": (int,),
    "inputs": (Mapping,),
    "threads": (int,),
    "device": (str,),
    "deadline_s": (int, float),
    "resume_from": (str,),
    "replay": (list,),
}


@dataclass(frozen=True)
class Outcome:
    """How a job ended; `raised` is the failure or cancellation as an exception."""

    state: str
    result: dict[str, Any] | None = None
    raised: ComputeError | Canceled | None = None


def execute(
    spec: Spec,
    emit: Emit,
    *,
    box: ControlBox | None = None,
    on_context: Callable[[Context], None] = lambda context: None,
    local: bool = False,
) -> Outcome:
    """Run one job. Says `state: running` first and exactly one `end` last, whatever happens.

    `on_context` gets the Context before the job starts. `local` is for a notebook or a shell: a
    KeyboardInterrupt is a cancel, refs may be folders, and the kind's own deadline doesn't apply.
    """
    context: Context | None = None
    try:
        emit("state", {"state": "running", "attempt": spec.attempt})  # before any heavy import
        kind = get(spec.kind)
        context = _context(kind, spec, emit, box, local)
        on_context(context)
        result = _run(kind, context, threads=spec.threads)
        context.controls.leave()
        emit("end", end_data("succeeded", result=result))
        return Outcome("succeeded", result)
    except Canceled as canceled:
        return _canceled(canceled, emit)
    except KeyboardInterrupt as interrupt:
        if local:
            return _canceled(Canceled(), emit)
        return _failed(interrupt, emit)
    except (Exception, SystemExit) as exc:
        return _failed(exc, emit)


def _context(kind: Kind, spec: Spec, emit: Emit, box: ControlBox | None, local: bool) -> Context:
    params = validate(kind.name, spec.params)
    deadline_s = spec.deadline_s
    if deadline_s is None and not local:
        deadline_s = kind.deadline_s
    spec.dir.mkdir(parents=True, exist_ok=True)
    return Context(
        kind=kind,
        params=params,
        emit=emit,
        job=spec.job,
        dir=spec.dir,
        attempt=spec.attempt,
        seed=spec.seed,
        threads=spec.threads,
        device=devices.choose_device(spec.device),
        inputs=spec.inputs,
        inputs_are_paths=local,
        deadline_s=deadline_s,
        resume_from=spec.resume_from,
        replay=spec.replay,
        box=box,
    )


def _run(kind: Kind, context: Context, *, threads: int | None) -> dict[str, Any]:
    function = kind.load()  # imports torch, for most kinds; only then is there a torch to seed
    if threads is not None:  # else the environment, or the notebook, has decided
        devices.set_threads(threads)
    devices.seed_all(context.seed)
    try:
        return dict(function(context) or {})
    finally:
        context.settle()


def _canceled(canceled: Canceled, emit: Emit) -> Outcome:
    emit("end", end_data("canceled", text=canceled.text))
    return Outcome("canceled", raised=canceled)


def _failed(exc: BaseException, emit: Emit) -> Outcome:
    failure = classify(exc)
    if failure is not exc:
        failure.__cause__ = exc
        _tell_developers(exc, emit)
    data = failure.data()
    try:
        emit("error", data)
    except ValueError:  # many problems, or one with long words: the first says enough
        emit(
            "error",
            {
                **data,
                "message": shorten(data["message"], MAX_MESSAGE_CHARACTERS),
                "message_zh": shorten(data["message_zh"], MAX_MESSAGE_CHARACTERS),
                "problems": [],
            },
        )
    emit("end", end_data("failed", reason=failure.reason, text=failure.text))
    return Outcome("failed", raised=failure)


def _tell_developers(exc: BaseException, emit: Emit) -> None:
    """The traceback goes into a debug line; people read the short message."""
    trace = "".join(traceback.format_exception(exc))
    emit("log", {"level": "debug", "text": trace[-2_000:]})


def end_data(
    state: str,
    *,
    reason: str | None = None,
    text: Text | None = None,
    result: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The data of an `end` event; messages are cut to 1,000 characters."""
    return {
        "state": state,
        "reason": reason,
        "message": None if text is None else shorten(text.en, MAX_MESSAGE_CHARACTERS),
        "message_zh": None if text is None else shorten(text.zh, MAX_MESSAGE_CHARACTERS),
        "result": None if result is None else dict(result),
    }


def _bad_spec(pointer: str, what: Text) -> InvalidParams:
    return InvalidParams([Problem(pointer, _BAD_SPEC.format(what=what))])
