"""The command line of the engine. Every param of a kind is an option `--name value`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

from compute.core import run
from compute.core.errors import Canceled, ComputeError, InvalidParams
from compute.core.events import dumps
from compute.core.kinds import Kind, all_kinds, get, json_schema
from compute.core.schema import choices_of
from compute.core.texts import Text, shorten
from compute.core.validation import expected

# Ours, with or without a value; a kind's own param of the same name goes first.
_FLAGS = {"json": False, "help": False, "dir": True, "device": True, "lang": True, "seed": True}

_USAGE = Text(
    "python -m compute KIND --param value …    (KIND --help lists its params)",
    "python -m compute 类型 --参数 值 …    （类型 --help 列出它的参数）",
)
_OPTIONS = {
    "json": Text("print the events as JSON lines", "按 JSON 行输出事件"),
    "dir": Text("folder for the artifacts (default: a new one)", "产物目录（默认新建）"),
    "device": Text(
        "cpu, cuda, cuda:N or auto (default: cpu)", "cpu、cuda、cuda:N 或 auto（默认 cpu）"
    ),
    "seed": Text("of the random generators (default: 0)", "随机种子（默认 0）"),
    "lang": Text("en or zh-hans (default: from LANG)", "en 或 zh-hans（默认取自 LANG）"),
}
_NO_VALUE = Text('Option "{name}" needs a value.', "选项“{name}”缺少值。")
_STRAY = Text(
    '"{word}" is not an option; options read --name value.', "“{word}”不是选项；写法是 --名称 值。"
)
_BAD_SEED = Text("--seed takes a whole number of at least 0.", "--seed 应为不小于 0 的整数。")
_WORDS = {
    "params": Text("Parameters", "参数"),
    "options": Text("Options", "选项"),
    "default": Text("default", "默认"),
    "required": Text("required", "必填"),
    "kinds": Text("Kinds", "任务类型"),
    "files": Text("Files are in", "文件位于"),
    "step": Text("step", "步"),
    "file": Text("path of a file", "文件路径"),
}


class UsageError(Exception):
    """The command line can't be read."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


def main(argv: Sequence[str]) -> int:
    """Run the command line; returns the exit status."""
    lang = _language(argv)
    try:
        if not argv or argv[0].startswith("-"):
            _list_kinds(lang)
            return 0
        kind = get(argv[0])
        params, options = parse(kind, argv[1:])
        if "help" in options:
            sys.stdout.write(help_of(kind, lang))
            return 0
        return _run(kind, params, options, lang)
    except UsageError as error:
        sys.stderr.write(error.text.get(lang) + "\n")
        return 2
    except InvalidParams as error:
        sys.stderr.writelines(problem.text.get(lang) + "\n" for problem in error.problems)
        return 2
    except ComputeError as error:
        sys.stderr.write(error.text.get(lang) + "\n")
        return 2 if error.reason == "invalid_input" else 1
    except Canceled as canceled:
        sys.stderr.write(canceled.text.get(lang) + "\n")
        return 130


def parse(kind: Kind, words: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Split `--name value` and `--name=value` into the kind's params and our own options.

    An unknown name stays among the params: their validation names the nearest one.
    """
    fields = json_schema(kind)["params"]["properties"]
    params: dict[str, Any] = {}
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "-h":
            word = "--help"
        if not word.startswith("--") or word == "--":
            raise UsageError(_STRAY.format(word=word[:60]))
        written, equals, value = word[2:].partition("=")
        name = written.replace("-", "_")
        ours = name in _FLAGS and name not in fields
        if not (ours and not _FLAGS[name]) and not equals:
            if not rest:
                raise UsageError(_NO_VALUE.format(name=f"--{written}"))
            value = rest.pop(0)
        if ours:
            options[name] = value
        else:
            params[name] = _value(value, fields.get(name, {}))
    return params, options


def _value(word: str, field: Mapping[str, Any]) -> Any:
    """A word as its field's type; one that can't be is left as it is, for validation to refuse."""
    types = field.get("type", "string")
    if "string" in (types if isinstance(types, list) else [types]):
        return None if word == "null" and isinstance(types, list) else word
    try:
        return json.loads(word)
    except ValueError:
        return word


def help_of(kind: Kind, lang: str) -> str:
    """What `KIND --help` prints: words, params with ranges and defaults, our options."""
    schema = json_schema(kind)
    required = schema["params"].get("required", [])
    lines = [f"{kind.name}: {kind.title.get(lang)}", *_wrapped(kind.summary.get(lang), 0), ""]
    lines.append(_WORDS["params"].get(lang))
    for name, field in schema["params"]["properties"].items():
        takes = expected(field).get(lang).strip()
        if "x-choices" in field:
            takes = " | ".join(map(str, choices_of(field)))
        if "x-upload" in field:
            takes += f" | {_WORDS['file'].get(lang)}"
        if name in required:
            takes += f"  [{_WORDS['required'].get(lang)}]"
        else:
            default = json.dumps(field.get("default"), ensure_ascii=False)
            takes += f"  [{_WORDS['default'].get(lang)} {default[:60]}]"
        unit = f" ({field['x-unit']})" if "x-unit" in field else ""
        lines.append(f"  --{name.replace('_', '-')}{unit}  {takes}")
        words = field["x-label"][lang] + ": " + field["x-help"][lang]
        lines.extend(_wrapped(words, 6))
    lines += ["", _WORDS["options"].get(lang)]
    own = [name for name in _OPTIONS if name not in schema["params"]["properties"]]
    lines.extend(f"  --{name:<8}{_OPTIONS[name].get(lang)}" for name in own)
    return "\n".join(lines) + "\n"


def _list_kinds(lang: str) -> None:
    lines = [_USAGE.get(lang), "", _WORDS["kinds"].get(lang)]
    kinds = all_kinds()
    width = max((len(kind.name) for kind in kinds), default=0)
    lines += [f"  {kind.name:<{width}}  {kind.title.get(lang)}" for kind in kinds]
    sys.stdout.write("\n".join(lines) + "\n")


def _run(kind: Kind, params: dict[str, Any], options: Mapping[str, str], lang: str) -> int:
    seed = None
    if "seed" in options:
        if not options["seed"].isdecimal():
            raise UsageError(_BAD_SEED)
        seed = int(options["seed"])
    as_json = "json" in options
    printer = JsonPrinter(sys.stdout) if as_json else Printer(sys.stdout, lang)
    done = run(
        kind.name,
        params,
        dir=Path(options["dir"]) if "dir" in options else None,
        device=options.get("device", "cpu"),
        seed=seed,
        on_event=printer.event,
    )
    printer.close(done.dir)
    return 0


class JsonPrinter:
    """Events as JSON lines."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def event(self, event: dict[str, Any]) -> None:
        self._out.write(dumps(event) + "\n")
        self._out.flush()

    def close(self, dir: Path) -> None:
        """JSON lines stay nothing but events."""


class Printer:
    """Events for people: logs and artifacts a line each, metrics a few times a second at most."""

    def __init__(self, out: TextIO, lang: str) -> None:
        self._out, self._lang = out, lang
        self._last = 0.0
        self._pending: str | None = None  # the newest metric line that was held back

    def event(self, event: dict[str, Any]) -> None:
        type, data = event["type"], event["data"]
        if type == "metric":
            self._metric(data)
        elif type == "log" and data["level"] != "debug":
            text = data.get("text_zh") if self._lang != "en" else None
            self._line(text or data["text"])
        elif type == "artifact":
            self._line(f"{data['name']}  {data['size']:,} B")
        elif type == "frame":
            self._frame(data)
        elif type == "end" and data["result"]:
            self._line("\n".join(f"{k} = {_brief(v)}" for k, v in data["result"].items()))

    def close(self, dir: Path) -> None:
        self._line(f"{_WORDS['files'].get(self._lang)} {dir}")

    def _metric(self, data: Mapping[str, Any]) -> None:
        numbers = "  ".join(f"{name} {_brief(v)}" for name, v in data.items() if name != "step")
        self._pending = f"{_WORDS['step'].get(self._lang)} {data['step']}  {numbers}"
        if time.monotonic() - self._last >= 0.25:
            self._last = time.monotonic()
            self._line()

    def _frame(self, data: Mapping[str, Any]) -> None:
        """Frames are pictures; of those with text in them the text can be shown."""
        if isinstance(data.get("text"), str):
            self._line(f"{data['name']}: {_printable(data['text'])}")

    def _line(self, text: str | None = None) -> None:
        if self._pending is not None:
            self._out.write(self._pending + "\n")
            self._pending = None
        if text is not None:
            self._out.write(text + "\n")
        self._out.flush()


def _brief(value: Any) -> str:
    """Four significant digits for a number, 80 characters for the rest."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict) and set(value) == {"$num"}:
        return str(value["$num"])
    text = _printable(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(text, 80)


def _printable(text: str) -> str:
    """Control characters escaped: a model's sample must not steer the terminal."""
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in ("Cc", "Cf") else c
        for c in text
    )


def _wrapped(text: str, indent: int) -> list[str]:
    width = max(40, min(100, shutil.get_terminal_size().columns))
    pad = " " * indent
    return textwrap.wrap(text, width, initial_indent=pad, subsequent_indent=pad)


def _language(argv: Sequence[str]) -> str:
    """From --lang, else from the environment as gettext reads it."""
    named = [value for word, value in pairwise(argv) if word == "--lang"]
    named += [word.partition("=")[2] for word in argv if word.startswith("--lang=")]
    variables = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    wanted = named[0] if named else next(filter(None, variables), "en")
    return "zh-hans" if wanted.lower().startswith("zh") else "en"
