"""Nothing inline; the two style hashes are those of the installed Plotly."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse

from playground.web import csp

TEMPLATES = Path(settings.BASE_DIR) / "templates"


def source_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_hashes_are_of_the_empty_sheet_and_of_the_map_librarys_sheet() -> None:
    script = Path(finders.find("vendor/plotly.min.js") or "").read_text("utf-8")
    sheets = re.findall(r"""\.textContent=(["'`])(\.maplibregl.*?)\1""", script, re.DOTALL)
    assert len(sheets) == 1
    quote, raw = sheets[0]
    assert quote != "`" or "${" not in raw
    sheet = raw.encode().decode("unicode_escape") if "\\" in raw else raw
    assert (source_hash(""), source_hash(sheet)) == csp.PLOTLY_STYLE_HASHES


def test_plotly_pages_loosen_styles_and_nothing_else() -> None:
    def page(request: HttpRequest) -> HttpResponse:
        return HttpResponse("")

    response = csp.with_plotly(page)(HttpRequest())
    assert set(response._csp_update) == {"style-src-attr", "style-src-elem"}


def test_no_template_has_inline_styles_handlers_or_scripts() -> None:
    for file in TEMPLATES.rglob("*.html"):
        text = file.read_text("utf-8")
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|javascript:", text), file
        for tag in re.findall(r"<script[^>]*>", text):
            assert " src=" in tag or "application/json" in tag, f"{file}: {tag}"


def test_no_script_parses_html_or_sets_a_style_attribute() -> None:
    scripts = Path(settings.BASE_DIR) / "static" / "js"
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        r"|DOMParser|createContextualFragment|setHTML"
        r"""|setAttribute\(\s*["']style|style:\s*["'`]"""
    )
    for file in scripts.rglob("*.js"):
        text = file.read_text("utf-8")
        if file.name == "formula.js":  # MathML of our own server's TeX is parsed, as XML
            text = text.replace('new DOMParser().parseFromString(mathml, "application/xml")', "")
        if file.name == "operations.js":  # the page's own next state, from our own template
            text = text.replace('new DOMParser().parseFromString(html, "text/html")', "")
        found = forbidden.search(text)
        assert found is None, f"{file.name}: {found and found.group()}"
