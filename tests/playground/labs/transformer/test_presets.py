"""Presets must be params the kind accepts, and page data must fit the page."""

from __future__ import annotations

import json

import pytest
from django.utils import translation

from compute.core import kinds
from compute.text import corpora
from playground.labs.transformer import presets


@pytest.mark.parametrize(("name", "values"), presets.PRESETS, ids=[p[0] for p in presets.PRESETS])
def test_each_preset_is_valid(name: str, values: dict[str, object]) -> None:
    kinds.validate("transformer.train", values)


def test_the_first_preset_is_the_plain_default() -> None:
    assert presets.PRESETS[0] == ("default", {})


def test_each_preset_has_words_in_both_languages() -> None:
    with translation.override("en"):
        english = presets.titles()
    with translation.override("zh-hans"):
        chinese = presets.titles()
    assert set(english) == set(chinese) == {name for name, _ in presets.PRESETS}
    assert all(english[name] != chinese[name] for name in english)


def test_page_data_is_small_and_true() -> None:
    data = presets.page_data()
    assert len(json.dumps(data)) < 16_000
    for text in data["texts"]:
        facts = corpora.facts(text["name"])
        assert text["tokens"] == facts.tokens
        assert text["vocabulary"] == len(set(corpora.read(text["name"])))
        assert set(text["probe"]) <= set(facts.vocabulary)
