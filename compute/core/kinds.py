"""Kinds: what can be computed. A lab declares its own in `compute/<lab>/jobs.py`.

Declaring imports nothing heavy: `Kind.run` names the function ("module:function") and only a
process that runs the job imports it. That function takes one Context and returns the result.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from compute.core.errors import InvalidParams, Problem, UnknownKind
from compute.core.params import Params, ProblemError, param, problem
from compute.core.schema import json_schema
from compute.core.texts import Text, shorten
from compute.core.validation import pointer_of, problems_of

if TYPE_CHECKING:
    from compute.core.context import Context

__all__ = [
    "CONTROLS",
    "Kind",
    "Params",
    "ProblemError",
    "Source",
    "all_kinds",
    "get",
    "json_schema",
    "names",
    "param",
    "problem",
    "register",
    "validate",
    "validate_set",
]

CONTROLS = frozenset({"cancel", "pause", "resume", "step", "set"})
UPLOAD = "upload:"  # before the form of an upload, in refs
UPLOAD_FORMS = ("text", "vectors")
EXTRA_KINDS = "COMPUTE_KINDS"  # environment: more modules that declare kinds, comma-separated

_NOT_SETTABLE = Text(
    '"{name}" can\'t be changed while the job runs. You can change {names}.',
    "“{name}”不能在任务运行时修改。可以修改的有 {names}。",
)

RunFunction = Callable[["Context"], "Mapping[str, Any] | None"]


@dataclass(frozen=True)
class Source:
    """What a param names, as a check sees it: a job's files so far by name, and is it over; or the
    files of an upload, with what was found in it as `about.json`."""

    files: Mapping[str, Path]
    ended: bool


Check = Callable[[Any, Mapping[str, Source]], list[Problem]]


@dataclass(frozen=True)
class Kind:
    """One kind of job.

    run       "module:function"; the function gets a Context and returns the result (a dict)
    result    names in the result, each with what it is; frames likewise for frame events
    controls  of cancel pause resume step set; `settable` names the params that set may change
    refs      params that hold another job's id, each with the kinds that job may be of: its
              artifacts become an input. "upload:text" or "upload:vectors" among them: the id of a
              file of that form, which somebody has uploaded
    check     what the params ask of those files, called with the params and a Source a ref before
              the job is queued, if every ref names something. The site calls it: light imports
              only. The job itself must not rely on it, for a notebook doesn't call it.
    cpu_s     seconds of processor time over all threads and processes; None: what its threads
              can use before `deadline_s`
    warm      modules that a warm runner imports ahead
    """

    name: str
    params: type[Params]
    queue: Literal["interactive", "training"]
    run: str
    title: Text
    summary: Text
    result: Mapping[str, Text] = field(default_factory=dict)
    frames: Mapping[str, Text] = field(default_factory=dict)
    controls: frozenset[str] = frozenset({"cancel"})
    settable: frozenset[str] = frozenset()
    refs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check: Check | None = None
    deadline_s: int = 600
    cpu_s: float | None = None
    warm: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for found in _faults(self):
            raise ValueError(f"kind {self.name!r}: {found}")

    def load(self) -> RunFunction:
        """The run function, imported now."""
        module, _, name = self.run.partition(":")
        function: RunFunction = getattr(importlib.import_module(module), name)
        return function


_registry: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make `kind` known. A second kind of the same name with another run function is refused."""
    known = _registry.get(kind.name)
    if known is not None and known.run != kind.run:
        raise ValueError(f"kind {kind.name!r} is taken by {known.run}")
    _registry[kind.name] = kind
    return kind


def get(name: str) -> Kind:
    """The kind of that name. Raises UnknownKind, which names the nearest."""
    if name not in _registry:
        all_kinds()
    if name not in _registry:
        raise UnknownKind(name, difflib.get_close_matches(name, sorted(_registry), n=3))
    return _registry[name]


def all_kinds() -> list[Kind]:
    """Every kind, by name. Imports the `jobs` module of every lab, and nothing heavy."""
    import compute

    for lab in pkgutil.iter_modules(compute.__path__, "compute."):
        if lab.ispkg and importlib.util.find_spec(f"{lab.name}.jobs") is not None:
            importlib.import_module(f"{lab.name}.jobs")
    for module in filter(None, os.environ.get(EXTRA_KINDS, "").split(",")):
        importlib.import_module(module.strip())
    return [_registry[name] for name in sorted(_registry)]


def validate(name: str, raw: Any) -> Params:
    """The params of kind `name` out of plain values. Raises UnknownKind or InvalidParams."""
    return _validated(get(name).params, raw)


def validate_set(kind: Kind, params: Params, values: Any) -> Params:
    """`params` with live-changed `values`. Raises InvalidParams, for a name not settable too."""
    if not isinstance(values, Mapping) or not values:
        text = Text("Say which values to set, by name.", "请按名称给出要修改的值。")
        raise InvalidParams([Problem("", text)])
    settable = sorted(kind.settable)
    wrong = [
        Problem(
            pointer_of([str(name)]),
            _NOT_SETTABLE.format(name=shorten(str(name)), names=", ".join(settable)),
            list(settable),
        )
        for name in values
        if name not in kind.settable
    ]
    if wrong:
        raise InvalidParams(wrong)
    return _validated(kind.params, {**params.model_dump(), **values})


def _validated(model: type[Params], raw: Any) -> Params:
    # A Mapping of any sort is fine; everything else gets pydantic's own verdict.
    try:
        return model.model_validate(dict(raw) if isinstance(raw, Mapping) else raw)
    except ValidationError as error:
        raise InvalidParams(problems_of(model, error)) from None


def names(kind: Kind, param: str, value: Any) -> bool:
    """Whether that value of a param in `refs` names something: it is neither empty nor one of the
    choices that the kind knows by itself."""
    extra = kind.params.model_fields[param].json_schema_extra
    choices = extra.get("x-choices", {}) if isinstance(extra, dict) else {}
    return bool(value) and not (isinstance(choices, dict) and value in choices)


def _uploads_agree(kind: Kind) -> bool:
    declared = {}
    for name, info in kind.params.model_fields.items():
        if isinstance(info.json_schema_extra, dict) and "x-upload" in info.json_schema_extra:
            declared[name] = [f"{UPLOAD}{info.json_schema_extra['x-upload']}"]
    said = {
        name: [a for a in allowed if a.startswith(UPLOAD)] for name, allowed in kind.refs.items()
    }
    forms = {form for allowed in said.values() for form in allowed}
    known = {f"{UPLOAD}{form}" for form in UPLOAD_FORMS}
    return forms <= known and declared == {name: found for name, found in said.items() if found}


def _faults(kind: Kind) -> list[str]:
    """What is wrong with a declaration, for its author."""
    fields = kind.params.model_fields
    checks = [
        (re.fullmatch(r"[a-z]+\.[a-z_]+", kind.name), "a name reads lab.verb in small letters"),
        (re.fullmatch(r"[\w.]+:\w+", kind.run), "run reads module:function"),
        (kind.controls <= CONTROLS, f"controls are of {sorted(CONTROLS)}"),
        (kind.settable <= set(fields), "settable names params"),
        (set(kind.refs) <= set(fields), "refs name params"),
        (all(kind.refs.values()), "each of refs says which kinds it may name"),
        (_uploads_agree(kind), "refs and param(upload=…) name the same forms of uploads"),
        (("set" in kind.controls) == bool(kind.settable), "set and settable come together"),
        (kind.deadline_s > 0, "deadline_s is above zero"),
    ]
    faults = [words for holds, words in checks if not holds]
    for name, info in fields.items():
        extra = info.json_schema_extra
        if not isinstance(extra, dict) or "x-label" not in extra:
            faults.append(f"param {name!r} is not made by param(), so it has no words")
    return faults
