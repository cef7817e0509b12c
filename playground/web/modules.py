"""The site's ES modules: which there are, what they import, and the one import map.

Scripts use bare specifiers only (`import {t} from "core/i18n"`). The specifier is the file's
path below `static/js` without `.js`; the map gives its hashed address. Django's own rewriting of
imports is left off: it breaks on re-exports.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static

from playground.web.messages import script_url

_FOLDERS = ("core", "elements", "labs")
_STATIC_IMPORT = re.compile(
    r"""^\s*(?:import|export)\s+(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']""", re.MULTILINE
)
VENDOR = {"vendor/plotly": "vendor/plotly.min.js"}


def specifiers() -> dict[str, str]:
    """Bare specifier → path below the static root, for every script of the site."""
    found: dict[str, str] = {}
    for root in settings.STATICFILES_DIRS:
        base = Path(str(root)) / "js"
        for folder in _FOLDERS:
            for file in sorted((base / folder).rglob("*.js")):
                name = file.relative_to(base).with_suffix("").as_posix()
                found[name] = f"js/{name}.js"
    return found | VENDOR


def imports_of(specifier: str) -> list[str]:
    """The specifiers that a module imports statically, in order. Empty for vendor files."""
    if specifier in VENDOR:
        return []
    file = finders.find(f"js/{specifier}.js")
    if not file:
        return []
    return _STATIC_IMPORT.findall(Path(file).read_text(encoding="utf-8"))


def import_map(language: str) -> str:
    """The import map as JSON, safe inside a script element."""
    return _import_map(language) if _cached() else _import_map.__wrapped__(language)


def preloads(specifier: str) -> tuple[str, ...]:
    """Addresses of everything a module needs before it runs, so that nothing loads in a chain."""
    return _preloads(specifier) if _cached() else _preloads.__wrapped__(specifier)


def _cached() -> bool:
    return not settings.DEBUG


@lru_cache
def _import_map(language: str) -> str:
    imports = {name: static(path) for name, path in specifiers().items()}
    imports["core/catalogue"] = script_url(language)
    text = json.dumps({"imports": imports}, separators=(",", ":"))
    return text.replace("<", "\\u003c")


@lru_cache
def _preloads(specifier: str) -> tuple[str, ...]:
    known = specifiers()
    seen: dict[str, None] = {}
    waiting = [specifier]
    while waiting:
        for name in imports_of(waiting.pop(0)):
            if name in known and name not in seen:
                seen[name] = None
                waiting.append(name)
    return tuple(static(known[name]) for name in seen)
