"""Every message has a Chinese text; placeholders match; the tooling finds what the sources use."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog

from playground.web import catalogues, messages

DOMAINS = ("django", "djangojs")


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_message_has_a_chinese_text(domain: str) -> None:
    assert catalogues.problems(domain) == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_nothing_is_kept_that_no_source_uses(domain: str) -> None:
    used = {message.id for message in catalogues.extracted(domain) if message.id}
    kept = {message.id for message in catalogues.stored(domain) if message.id}
    assert kept - used == set()


def test_words_follow_the_house_style() -> None:
    """No exclamation marks, and no half-width comma or stop after a Chinese character."""
    for domain in DOMAINS:
        for message in catalogues.stored(domain):
            for text in catalogues._texts(message.string):
                assert "!" not in text and "！" not in text, text
                assert not re.search(r"[\u4e00-\u9fff][,.;:?]", text), text
            for text in catalogues._texts(message.id):
                assert "!" not in text, text


def test_templates_give_their_messages_plurals_and_trimmed_blocks() -> None:
    source = b"""{% load i18n %}{% translate "One" %}{% trans 'Two' %}
    {% blocktranslate trimmed count n=n %}
        {{ n }} run
    {% plural %}
        {{ n }} runs
    {% endblocktranslate %}"""
    found = [
        message for _, _, message, _ in catalogues.extract_template(BytesIO(source), {}, (), {})
    ]
    assert found == ["One", "Two", ("%(n)s run", "%(n)s runs", None)]


def test_scripts_give_their_messages() -> None:
    found = {message.id for message in catalogues.extracted("djangojs")}
    assert "Theme: {theme}" in found  # t()
    assert "tokens" in found  # msg()
    assert ("{n} changed", "{n} changed") in found  # tn()


def test_a_wrong_placeholder_is_named() -> None:
    catalogue = Catalog(locale="zh_Hans")
    message = catalogue.add("{n} of {all}", "{n} 之 {total}")
    assert message is not None
    assert catalogues._placeholder_problems("djangojs", message) == [
        "'{n} 之 {total}': placeholders ['{n}', '{total}'] are not ['{all}', '{n}']"
    ]


def test_extracting_again_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {domain: catalogues._file(domain).read_bytes() for domain in DOMAINS}
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path)
    for domain, content in before.items():
        (tmp_path / f"{domain}.po").write_bytes(content)
        catalogues.extract(domain)
        assert (tmp_path / f"{domain}.po").read_bytes() == content


def test_scripts_get_the_compiled_catalogue() -> None:
    chinese = messages.script_messages("zh-hans")
    assert chinese["Cancel"] == "取消"
    assert chinese["{n} day ago"] == ["{n} 天前"]
    assert messages.script_messages("en") == {}


def test_usage_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert catalogues.main(["translate"]) == 2
    assert "extract|compile|check" in capsys.readouterr().err
    assert catalogues.main(["check"]) == 0
