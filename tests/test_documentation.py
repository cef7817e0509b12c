"""The guide says all there is: every kind, event, state, setting and code, in both languages."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest
from django.urls import Resolver404, resolve
from markdown_it import MarkdownIt

from compute.core import kinds
from compute.core.errors import REASONS
from compute.core.events import EVENT_TYPES
from playground import labs
from playground.api import api
from playground.jobs import queries, socket, states
from playground.jobs.models import Job
from playground.problem_codes import PROBLEMS
from playground.web import documents

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("en", "zh-hans")
FOLDERS = {documents.GENERAL: ROOT / "playground/web/docs"} | {
    lab.slug: ROOT / "playground/labs" / lab.slug / "docs" for lab in labs.all()
}
# By the protocol (RFC 6455) and the server, beside the socket's own.
PROTOCOL_CLOSE_CODES = {1009, 1011, 1012}
# First heading cell of each table that is checked, in both languages.
TABLES = {
    "param": "参数",
    "frame": "帧",
    "result": "结果",
    "request": "请求",
    "field": "字段",
    "state": "状态",
    "reason": "原因",
    "type": "类型",
    "code": "代码",
    "close code": "关闭代码",
    "you send": "你发送",
    "you get": "你收到",
    "variable": "变量",
}
language = pytest.mark.parametrize("language", LANGUAGES)


class File(NamedTuple):
    room: str
    name: str
    language: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


def files() -> Iterator[File]:
    for room, folder in FOLDERS.items():
        for path in sorted(folder.glob("*.md")):
            name, _, rest = path.name.partition(".")
            yield File(room, name, rest.removesuffix(".md"), path)


def page(name: str, language: str) -> str:
    return (FOLDERS[documents.GENERAL] / f"{name}.{language}.md").read_text(encoding="utf-8")


def table(text: str, heading: str) -> list[list[str]]:
    """The cells of every table whose first heading cell is `heading`, in either language."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in (heading, TABLES[heading]):
            inside = True
        elif inside and not set(line) <= set("|-"):
            found.append(cells)
    return found


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def names(rows: list[list[str]]) -> list[str]:
    """What the first cells name, each once."""
    found = [name for row in rows for name in codes(row[0])]
    assert len(found) == len(set(found)), f"described twice: {found}"
    return found


def numbers(text: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}


def fences(text: str, info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


# Pages


def test_every_page_is_there_in_both_languages() -> None:
    pages: dict[tuple[str, str], set[str]] = {}
    for file in files():
        pages.setdefault((file.room, file.name), set()).add(file.language)
        assert re.match(r"# \S", file.text), f"{file.path.name} starts with its title"
    assert {"api", "kinds", "notebook", "settings"} <= {name for _, name in pages}
    assert {key: found for key, found in pages.items() if found != set(LANGUAGES)} == {}


def test_examples_are_the_same_in_both_languages() -> None:
    def examples(path: Path) -> list[str]:
        text = path.read_text(encoding="utf-8")
        blocks = [block for info in ("sh", "python") for block in fences(text, info)]
        return [re.sub(r"(^|\s)#.*$", "", block, flags=re.MULTILINE) for block in blocks]

    for file in files():
        if file.language != "en":
            english = file.path.with_name(f"{file.name}.en.md")
            assert examples(file.path) == examples(english), file.path.name


def test_links_lead_somewhere() -> None:
    for file in files():
        here = f"/docs/{file.room}/{file.name}"
        for block in MarkdownIt("commonmark").enable("table").parse(file.text):
            for token in block.children or []:
                href = token.attrGet("href") if token.type == "link_open" else None
                if isinstance(href, str) and not urlsplit(href).scheme:
                    check_link(file, urlsplit(urljoin(here, href)).path, href)


def check_link(file: File, path: str, href: str) -> None:
    where = f"{href} in {file.path.name}"
    assert "#" not in href, f"{where}: headings have no anchors"
    if match := re.fullmatch(r"/docs/([^/]+)/([^/]+)", path):
        room, name = match.groups()
        assert (FOLDERS[room] / f"{name}.{file.language}.md").exists(), where
        return
    try:
        resolve(path)
    except Resolver404:
        pytest.fail(where)


# Kinds


def own_kinds() -> list[kinds.Kind]:
    """The engine's; other tests may have registered theirs in this process."""
    return [kind for kind in kinds.all_kinds() if kind.run.startswith("compute.")]


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## `([^`]+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@language
def test_every_kind_is_described(language: str) -> None:
    found = sections(page("kinds", language))
    assert sorted(found) == [kind.name for kind in own_kinds()]
    for kind in own_kinds():
        text = found[kind.name]
        assert sorted(names(table(text, "frame"))) == sorted(kind.frames), kind.name
        assert sorted(names(table(text, "result"))) == sorted(kind.result), kind.name
        controls = next(line for line in text.splitlines() if re.match("Controls:|控制：", line))
        assert set(codes(controls)) == kind.controls | kind.settable, kind.name
        assert f"`{kind.queue}`" in text and kind.deadline_s in numbers(text), kind.name


@language
def test_every_param_is_described_with_its_default_and_range(language: str) -> None:
    found = sections(page("kinds", language))
    for kind in own_kinds():
        schema = kinds.json_schema(kind)["params"]
        rows = table(found[kind.name], "param")
        assert sorted(names(rows)) == sorted(schema["properties"]), kind.name
        for name, default, limits, _ in rows:
            field = schema["properties"][codes(name)[0]]
            where = f"{kind.name} {name}"
            if codes(name)[0] in schema.get("required", []):
                assert default in ("required", "必填"), where
            else:
                assert default == f"`{json.dumps(field['default'])}`", where
            assert_limits(field, limits, where)


def assert_limits(field: dict[str, Any], limits: str, where: str) -> None:
    if "enum" in field:
        assert codes(limits) == [choice for choice in field["enum"] if choice is not None], where
        return
    named = (
        "minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems"
    )
    expected = {float(field[key]) for key in named.split() if key in field}
    assert numbers(limits) == expected, where


# The API


@language
def test_every_endpoint_is_described(language: str) -> None:
    paths = api.get_openapi_schema(path_prefix="/api/v1/")["paths"]
    there = {f"{method.upper()} {path}" for path, found in paths.items() for method in found}
    assert set(names(table(page("api", language), "request"))) == there


@language
def test_the_job_object_is_described(language: str) -> None:
    job = queries.as_json(Job(id="0" * 20, kind="lab.verb", owner_id=1), lang="en")
    rows = table(page("api", language), "field")
    assert sorted(names(rows)) == sorted(job)
    assert set(codes(next(row[1] for row in rows if row[0] == "`urls`"))) == set(job["urls"])


@language
def test_every_state_reason_and_event_type_is_described(language: str) -> None:
    text = page("api", language)
    moves = {codes(row[0])[0]: frozenset(codes(row[2])) for row in table(text, "state")}
    assert moves == dict(states.MOVES)
    assert sorted(names(table(text, "reason"))) == sorted(REASONS)
    assert names(table(text, "type")) == list(EVENT_TYPES)


@language
def test_every_problem_is_described_with_its_status(language: str) -> None:
    rows = table(page("api", language), "code")
    told = {codes(code)[0]: int(status) for code, status, _ in rows}
    assert told == {code: spec.status for code, spec in PROBLEMS.items()}


@language
def test_the_socket_is_described(language: str) -> None:
    text = page("api", language)
    told = {int(row[0]) for row in table(text, "close code")}
    assert told == set(socket.CLOSE_CODES) | PROTOCOL_CLOSE_CODES
    assert set(socket.ERRORS) <= set(codes(text))
    source = (ROOT / "playground/jobs/socket.py").read_text(encoding="utf-8")
    said = set(re.findall(r'"op": ?"(\w+)"', source))
    assert set(names(table(text, "you get"))) == said
    heard = set(re.findall(r'op == "(\w+)"', source))
    sent = {json.loads(row)["op"] for row in names(table(text, "you send"))}
    assert sent == heard


# Settings


class Setting(NamedTuple):
    default: str | None  # as the page writes it, None where it is no constant
    numbers: set[float]
    choices: list[str]


def declared_settings() -> dict[str, Setting]:
    """Every call of a helper of `playground.env` in the settings."""
    tree = ast.parse((ROOT / "playground/settings.py").read_text(encoding="utf-8"))
    found = {}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not is_helper(call.func):
            continue
        name = ast.literal_eval(call.args[0])
        given = call.args[1] if len(call.args) > 1 else None
        default = given.value if isinstance(given, ast.Constant) else None
        limits = {float(ast.literal_eval(word.value)) for word in call.keywords}
        choices = list(ast.literal_eval(call.args[2])) if len(call.args) > 2 else []
        shown = str(int(default)) if isinstance(default, bool) else default
        found[name] = Setting(None if shown is None else str(shown), limits, choices)
    return found


def is_helper(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == "env"


def is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def read_variables() -> set[str]:
    """Every variable of the environment that the code names, and those that scripts expand."""
    found = set()
    sources = [ROOT / "manage.py", *(ROOT / "tests").glob("*.py")]
    sources += [f for room in ("compute", "playground") for f in (ROOT / room).rglob("*.py")]
    for path in sources:
        if path != ROOT / "playground/env.py":  # the helpers, given names by the settings
            found |= python_variables(path)
    for path in (ROOT / "script").iterdir():
        found |= shell_variables(path.read_text(encoding="utf-8"))
    return found


def python_variables(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    loops = {
        node.target.id: ast.literal_eval(node.iter)
        for node in ast.walk(tree)
        if isinstance(node, ast.comprehension)
        and isinstance(node.target, ast.Name)
        and isinstance(node.iter, ast.Tuple)
        and all(is_constant(item) for item in node.iter.elts)
    }
    found = set()
    for node in ast.walk(tree):
        key = environment_key(node)
        if key is None:
            continue
        if isinstance(key, ast.Constant):
            found.add(str(key.value))
        elif isinstance(key, ast.Name) and key.id in constants:
            found.add(str(constants[key.id]))
        elif isinstance(key, ast.Name) and key.id in loops:
            found |= set(loops[key.id])
        else:
            pytest.fail(f"{path}:{node.lineno}: which variable is {ast.unparse(key)}?")  # type: ignore[attr-defined]
    return found


def environment_key(node: ast.AST) -> ast.expr | None:
    """The key in `os.environ[…]`, `os.environ.get(…)`, `….setdefault(…)` or `os.getenv(…)`."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        return node.slice
    if isinstance(node, ast.Call) and node.args:
        function = ast.unparse(node.func)
        if function in ("os.environ.get", "os.environ.setdefault", "os.environ.pop", "os.getenv"):
            return node.args[0]
    return None


def shell_variables(text: str) -> set[str]:
    return set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)", text)) - {"HOME", "PATH"}


def test_the_scan_of_variables_sees_what_it_should() -> None:
    found = read_variables()
    expected = {"COMPUTE_KINDS", "LC_ALL", "LANG", "CHROMIUM", "TORCH_INDEX_URL", "PYTHON"}
    assert expected <= found
    assert {"PORT", "DATABASE_URL", "LEASE_S", "TRAINING_DEVICES"} <= set(declared_settings())


@language
def test_every_setting_is_described(language: str) -> None:
    rows = {codes(row[0])[0]: row for row in table(page("settings", language), "variable")}
    declared = declared_settings()
    given = {"OMP_NUM_THREADS", "OMP_WAIT_POLICY"}  # by the site to its runners
    assert set(rows) == set(declared) | read_variables() | given
    for name, setting in declared.items():
        _, default, values, _ = rows[name]
        if setting.default is not None:
            assert default == f"`{setting.default}`", name
        if setting.numbers:
            assert numbers(values) == setting.numbers, name
        if setting.choices:
            assert codes(values) == setting.choices, name


# Examples


def test_the_notebook_examples_run(tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text("\n".join(fences(page("notebook", "en"), "python")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "model.safetensors" in done.stdout and "/heads" in done.stdout
