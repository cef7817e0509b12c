"""Bare specifiers only; each resolves through the one import map; preloads follow imports."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders

from playground.web import modules

SCRIPTS = Path(settings.BASE_DIR) / "static" / "js"
IMPORT = re.compile(r"""(?:\bfrom\s+|\bimport\s*\(?\s*)["']([^"']+)["']""")


def scripts() -> list[Path]:
    return [file for file in sorted(SCRIPTS.rglob("*.js")) if file.name != "boot.js"]


@pytest.mark.parametrize("file", scripts(), ids=lambda file: file.relative_to(SCRIPTS).as_posix())
def test_every_import_is_a_specifier_of_the_map(file: Path) -> None:
    known = {*modules.specifiers(), "core/catalogue"}
    source = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text("utf-8"), flags=re.DOTALL)
    assert [name for name in IMPORT.findall(source) if name not in known] == []


def test_every_specifier_leads_to_a_file() -> None:
    missing = [path for path in modules.specifiers().values() if not finders.find(path)]
    assert missing == []


@pytest.mark.usefixtures("plain_static")
def test_the_map_is_json_that_cannot_end_its_script() -> None:
    text = modules.import_map("zh-hans")
    imports = json.loads(text)["imports"]
    assert imports["core/jobs"] == "/static/js/core/jobs.js"
    assert imports["vendor/plotly"] == "/static/vendor/plotly.min.js"
    assert re.fullmatch(r"/i18n/zh-hans\.[0-9a-f]{12}\.js", imports["core/catalogue"])
    assert "<" not in text


def test_a_lab_page_weighs_little() -> None:
    """Cold, compressed, without Plotly and the math font. The budget is 300 KB for everything."""
    known = modules.specifiers()
    waiting, names = ["labs/transformer", "core/shell"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known and name not in names:
            names.add(name)
            waiting += modules.imports_of(name)
    files = [SCRIPTS.parent / known[name] for name in names]
    files += sorted((SCRIPTS.parent / "css").rglob("*.css"))
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 200_000


@pytest.mark.usefixtures("plain_static")
def test_preloads_are_all_that_a_module_imports_and_no_vendor() -> None:
    urls = modules.preloads("elements/live-chart")
    assert "/static/js/elements/chart-data.js" in urls
    assert "/static/js/core/format.js" in urls  # by way of chart-data
    assert not [url for url in urls if "vendor" in url]
    assert len(urls) == len(set(urls))
