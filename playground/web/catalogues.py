"""Message catalogues: `python -m playground.web.catalogues extract | compile | check`.

Babel does the work, so no system gettext is needed. Two domains, as Django has them: `django`
for templates and Python, `djangojs` for scripts. `extract` adds new messages to
`locale/zh_Hans/LC_MESSAGES/*.po` and drops those no longer used; `check` names every message
without a Chinese text and every placeholder that differs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir, extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[2]
LOCALE = "zh_Hans"
FOLDER = ROOT / "locale" / LOCALE / "LC_MESSAGES"

_PYTHON_WORDS: dict[str, tuple[int, ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
}
_SCRIPT_WORDS: dict[str, tuple[int, ...] | None] = {
    "t": None,
    "msg": None,
    "parts": None,
    "tn": (1, 2),
}
# (folder, pattern → method) of each domain. Folders keep Babel out of .venv and var.
_SOURCES: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {
    "django": [
        ("playground", [("**.py", "python")]),
        ("templates", [("**.html", "playground.web.catalogues:extract_template")]),
    ],
    "djangojs": [("static/js", [("**.js", "javascript")])],
}
DOMAINS = tuple(_SOURCES)
_PLACEHOLDERS = {
    "django": re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}"),
    "djangojs": re.compile(r"\{\w+\}"),
}
# Dates and empty names: they would change the file with every call and tell nobody anything.
_HEADER_NOISE = re.compile(
    rb'^"(?:Project-Id-Version|Report-Msgid|POT-Creation|PO-Revision|Last-Tr|Language-Team|Generated)'
    rb".*\n",
    re.MULTILINE,
)


def extract_template(
    file: IO[bytes], keywords: Any, comment_tags: Any, options: Any
) -> Iterator[tuple[int, str | tuple[str, ...], list[str], str | None]]:
    """Babel's extraction method for Django templates.

    Django turns a template into the Python that calls gettext; the indentation it leaves would
    confuse Python's tokeniser, so lines are stripped.
    """
    source = templatize(file.read().decode("utf-8"))
    lines = "\n".join(line.strip() for line in source.splitlines())
    yield from extract_python(BytesIO(lines.encode("utf-8")), _PYTHON_WORDS, (), {})


def extracted(domain: str) -> Catalog:
    """Every message that the sources of a domain use, with the files it stands in."""
    catalogue = Catalog(project="playground", charset="utf-8")
    words = _SCRIPT_WORDS if domain == "djangojs" else _PYTHON_WORDS
    for folder, methods in _SOURCES[domain]:
        found = extract_from_dir(
            ROOT / folder, method_map=methods, keywords=words, comment_tags=("Translators:",)
        )
        for name, _line, message, comments, context in found:
            # File names only: line numbers would change the catalogue with every edit.
            catalogue.add(
                message, None, [(f"{folder}/{name}", 0)], auto_comments=comments, context=context
            )
    return catalogue


def stored(domain: str) -> Catalog:
    """The catalogue in the tree; an empty one when there is none yet."""
    file = _file(domain)
    if not file.exists():
        return Catalog(locale=LOCALE, domain=domain, charset="utf-8")
    with file.open("rb") as source:
        return read_po(source, locale=LOCALE, domain=domain)


def extract(domain: str) -> None:
    """Brings the stored catalogue up to date with the sources."""
    catalogue = stored(domain)
    catalogue.update(extracted(domain), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.header_comment = "# Simplified Chinese of the playground."
    catalogue.fuzzy = False
    _file(domain).parent.mkdir(parents=True, exist_ok=True)
    buffer = BytesIO()
    write_po(buffer, catalogue, width=98, sort_output=True, include_lineno=False)
    _file(domain).write_bytes(_HEADER_NOISE.sub(b"", buffer.getvalue()))


def compile_all(target: Path | None = None) -> list[Path]:
    """Writes the `.mo` files that Django reads, beside the `.po` files or into `target`."""
    written = []
    for domain in DOMAINS:
        file = (target or FOLDER) / f"{domain}.mo"
        file.parent.mkdir(parents=True, exist_ok=True)
        buffer = BytesIO()
        write_mo(buffer, stored(domain))
        file.write_bytes(buffer.getvalue())
        written.append(file)
    return written


def problems(domain: str) -> list[str]:
    """What is wrong with a catalogue, one sentence each. Empty when all is well."""
    have = stored(domain)
    found = []
    for message in _messages(extracted(domain)):
        kept = have.get(message.id)
        where = ", ".join(name for name, _line in message.locations)
        if kept is None or not all(_texts(kept.string)):
            found.append(f"{_first(message.id)!r} ({where}) has no Chinese text")
        elif kept.fuzzy:
            found.append(f"{_first(message.id)!r} ({where}) is marked fuzzy")
        else:
            found += _placeholder_problems(domain, kept)
    return found


def _placeholder_problems(domain: str, message: Message) -> list[str]:
    names = _PLACEHOLDERS[domain]
    # The singular may leave the count out ("one step"), so the last form is the measure.
    wanted = set(names.findall(_texts(message.id)[-1]))
    return [
        f"{text!r}: placeholders {sorted(set(names.findall(text)))} are not {sorted(wanted)}"
        for text in _texts(message.string)
        if set(names.findall(text)) != wanted
    ]


def _messages(catalogue: Catalog) -> Iterable[Message]:
    return (message for message in catalogue if message.id)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _first(value: Any) -> str:
    return _texts(value)[0]


def _file(domain: str) -> Path:
    return FOLDER / f"{domain}.po"


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0, 1 when `check` found something, 2 for a wrong call."""
    acts: dict[str, Callable[[], list[str]]] = {
        "extract": lambda: [extract(domain) or f"{_file(domain)}" for domain in DOMAINS],  # type: ignore[func-returns-value]
        "compile": lambda: [str(file) for file in compile_all()],
        "check": lambda: [line for domain in DOMAINS for line in problems(domain)],
    }
    if len(arguments) != 1 or arguments[0] not in acts:
        sys.stderr.write("usage: python -m playground.web.catalogues extract|compile|check\n")
        return 2
    lines = acts[arguments[0]]()
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if arguments[0] == "check" and lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
