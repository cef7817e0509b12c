"""What a job holds while it runs: its params and folder, and the ways to say and to keep things."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from compute.core.controls import Clock, ControlBox, Controls, Save
from compute.core.devices import cores
from compute.core.errors import UserError
from compute.core.events import EVENT_TYPES, dumps
from compute.core.kinds import Kind
from compute.core.params import Params
from compute.core.texts import Text, shorten

MAX_LOG_CHARACTERS = 2_000
PROGRESS_S = 0.5  # between two that are said
LEVELS = ("debug", "info", "warning", "error")
_OWN_TYPES = frozenset({"state", "control", "gap", "end"})  # not for a job to say itself
_NO_INPUT = Text(
    'The job that "{name}" names has no files here.', "“{name}”指定的任务在这里没有文件。"
)
_NO_FILE = Text("There is no file {path}.", "没有文件 {path}。")
_UPLOAD_GONE = Text(
    "The file that this job needs has been deleted. Upload it again.",
    "这个任务需要的文件已被删除，请重新上传。",
)


class Context:
    """Handed to a kind's run function.

    job, attempt  identity; `dir` is the artifact folder, there before the job starts
    params        the validated params; a live `set` replaces them
    seed          the global random generators are seeded with it already
    threads       how many threads one operation may use
    device        "cpu", "cuda" or "cuda:N"
    resume_from   the folder of an earlier attempt whose checkpoint to continue, or None
    """

    def __init__(
        self,
        *,
        kind: Kind,
        params: Params,
        job: str,
        dir: Path,
        emit: Callable[[str, Mapping[str, Any]], None],
        attempt: int = 1,
        seed: int = 0,
        threads: int | None = None,
        device: str = "cpu",
        inputs: Mapping[str, str | Path] | None = None,
        inputs_are_paths: bool = False,
        deadline_s: float | None = None,
        resume_from: Path | None = None,
        replay: Iterable[Mapping[str, Any]] = (),
        box: ControlBox | None = None,
    ) -> None:
        self.kind, self.params, self.job, self.dir = kind, params, job, dir
        self.attempt, self.seed, self.device = attempt, seed, device
        self.threads = threads if threads is not None else cores()
        self.resume_from = resume_from
        self._inputs = dict(inputs or {})
        self._inputs_are_paths = inputs_are_paths
        self._emit = emit
        self._progress: dict[str, Any] | None = None
        self._progress_at = -math.inf
        self.clock = Clock(deadline_s)
        self.controls = Controls(
            self, kind=kind, box=box or ControlBox(), clock=self.clock, replay=replay
        )

    # Saying things

    def emit(self, type: str, **data: Any) -> None:
        """Any event a job may say. Raises ValueError for a type it may not, or over 16 KB."""
        if type not in EVENT_TYPES or type in _OWN_TYPES:
            raise ValueError(f"a job doesn't emit {type!r} events")
        self._emit(type, data)

    def log(self, text: str | Text, level: str = "info") -> None:
        """A line for people; a Text says it in both languages. Cut to 2,000 characters."""
        if level not in LEVELS:
            raise ValueError(f"a level is one of {LEVELS}, not {level!r}")
        said = {"text": text.en, "text_zh": text.zh} if isinstance(text, Text) else {"text": text}
        cut = {name: shorten(words, MAX_LOG_CHARACTERS) for name, words in said.items()}
        self._emit("log", {"level": level, **cut})

    def metric(self, step: int, **numbers: Any) -> None:
        """The numbers of one step; NaN and infinities may come as they are."""
        self._emit("metric", {"step": step, **numbers})

    def progress(self, done: float, total: float, eta_s: float | None = None) -> None:
        """How far it is, in units of the job's choice; `eta_s` is the seconds that are left.

        Call it as often as you like: it is said every half second, and exactly when the job
        pauses or ends.
        """
        self._progress = {"done": done, "total": total, "eta_s": eta_s}
        if time.monotonic() - self._progress_at >= PROGRESS_S:
            self.settle()

    def settle(self) -> None:
        """Say the progress that was held back."""
        if self._progress is not None:
            self._emit("progress", self._progress)
            self._progress, self._progress_at = None, time.monotonic()

    def frame(self, name: str, **data: Any) -> None:
        """A picture of the moment. Raises ValueError for a name that the kind doesn't declare."""
        if name not in self.kind.frames:
            raise ValueError(f"{self.kind.name} declares no frame {name!r}")
        self._emit("frame", {"name": name, **data})

    def resumed(self, from_step: int) -> None:
        """Say, after loading `resume_from`, at which step this attempt goes on."""
        self.controls.forget_before(from_step)
        self._emit("resumed", {"from_step": from_step})

    # Keeping things

    def path(self, name: str) -> Path:
        """Where the artifact `name` goes; its subfolders are made. Raises ValueError outside."""
        where = PurePosixPath(name)
        if where.is_absolute() or not re.fullmatch(r"[\w.\-]+(/[\w.\-]+)*", name, re.ASCII):
            raise ValueError(f"an artifact's name is a plain relative path, not {name!r}")
        if {".", ".."} & set(name.split("/")):
            raise ValueError(f"an artifact stays inside its job's folder: {name!r}")
        target = self.dir / where
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def artifact(self, name: str, *, type: str) -> Path:
        """Announce the finished file `dir/name` with its media type, size and hash.

        Raises FileNotFoundError when it is not there, ValueError when it leads outside.
        """
        target = self.path(name)
        if not target.resolve(strict=True).is_relative_to(self.dir.resolve()):
            raise ValueError(f"an artifact stays inside its job's folder: {name!r}")
        with target.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        self._emit("artifact", {"name": name, "type": type, "size": size, "sha256": digest})
        return target

    def write_json(self, name: str, obj: Any, type: str = "application/json") -> Path:
        """Write `obj` as the artifact `name`, of any size, non-finite numbers tagged."""
        target = self.path(name)
        unfinished = target.with_name(f".{target.name}.part")  # a reader sees all of it or none
        unfinished.write_text(dumps(obj), encoding="utf-8")
        unfinished.replace(target)
        return self.artifact(name, type=type)

    def input(self, param: str) -> Path:
        """The artifact folder of the job that the param names; in a notebook it may be a folder.

        Raises UserError when there is none.
        """
        value = getattr(self.params, param)
        found = self._inputs.get(param)
        if found is None and self._inputs_are_paths and isinstance(value, str):
            found = value
        if found is None or not Path(found).is_dir():
            raise UserError(_NO_INPUT.format(name=value))
        return Path(found)

    def upload(self, param: str) -> Path:
        """The file of the upload that the param names; in a notebook the path of any file.

        Raises UserError when there is none.
        """
        value = getattr(self.params, param)
        found = self._inputs.get(param)
        if found is None and self._inputs_are_paths:
            path = Path(str(value)).expanduser()
            if path.is_file():
                return path
            raise UserError(_NO_FILE.format(path=path))
        if found is None or not Path(found).is_file():
            raise UserError(_UPLOAD_GONE)
        return Path(found)

    # Being told things

    def tick(self, step: int, *, save: Save | None = None) -> dict[str, Any]:
        """Call once a step, before it: applies the controls that came in, in order.

        Returns the values that `set` changed, by name. Blocks while paused, after `save(step)`.
        Raises Canceled and DeadlineExceeded. Each control is logged with this step.
        """
        self.params, changed = self.controls.tick(step, self.params, save)
        return changed
