"""The guide: Markdown files beside the labs, one a language.

`playground/labs/<room>/docs/<name>.<language>.md`, and `playground/web/docs/` for what belongs
to no lab. The first heading is the title; files are sorted by name. Raw HTML is not rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from markdown_it import MarkdownIt

from playground import labs

GENERAL = "playground"
_LABS = Path(labs.__file__).parent
_SENTENCE_END = re.compile(r"(?<=[.?!]) (?=\S)|(?<=[。？！])")
_CJK_BREAK = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff])"
)  # a line break, no word
_FOLDERS = {GENERAL: Path(__file__).parent / "docs"}


class Link(NamedTuple):
    title: str
    url: str
    lead: str  # the page's first sentence


class Room(NamedTuple):
    title: str | Promise
    pages: list[Link]


class Page(NamedTuple):
    title: str
    url: str
    html: SafeString


def rooms(language: str) -> list[Room]:
    """Every page of the guide in this language, by room; rooms without a page are left out."""
    titles: dict[str, str | Promise] = {GENERAL: _("The playground")}
    titles |= {lab.slug: lab.title for lab in labs.all()}
    found = [
        Room(
            title,
            [
                Link(_title(file), _url(slug, name), _lead(file, file.stat().st_mtime_ns))
                for name, file in _files(slug, language)
            ],
        )
        for slug, title in titles.items()
    ]
    return [room for room in found if room.pages]


def page(room: str, name: str, language: str) -> Page:
    """One page, rendered. Raises KeyError when there is none in any language."""
    file = dict(_files(room, language)).get(name) or dict(_files(room, "en")).get(name)
    if file is None:
        raise KeyError(f"{room}/{name}")
    return Page(_title(file), _url(room, name), _html(file, file.stat().st_mtime_ns))


def _folder(room: str) -> Path:
    return _FOLDERS.get(room) or _LABS / room / "docs"


def _files(room: str, language: str) -> Iterator[tuple[str, Path]]:
    suffix = f".{language}.md"
    for file in sorted(_folder(room).glob(f"*{suffix}")):
        yield file.name.removesuffix(suffix), file


def _url(room: str, name: str) -> str:
    return f"/docs/{room}/{name}"


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next(lines, "").lstrip("# ").strip()


@lru_cache(maxsize=256)
def _lead(file: Path, _changed_ns: int) -> str:
    """The first sentence of the first paragraph, as plain text. "" for a page without one."""
    tokens = MarkdownIt("commonmark", {"html": False}).parse(file.read_text(encoding="utf-8"))
    inline = next((after for at, after in pairwise(tokens) if at.type == "paragraph_open"), None)
    if inline is None:
        return ""
    parts = (" " if one.type == "softbreak" else one.content for one in inline.children or [])
    text = _CJK_BREAK.sub("", "".join(parts))
    return _SENTENCE_END.split(text, maxsplit=1)[0]


@lru_cache(maxsize=256)
def _html(file: Path, _changed_ns: int) -> SafeString:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    html: str = markdown.render(file.read_text(encoding="utf-8"))
    return mark_safe(html)
