from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute.text.chars import CharTokenizer, UnseenCharacters, unseen, visible

AWKWARD = '"><img src=x onerror=alert(1)>\n\ta  b 我说你倒是快点啊 👨‍👩‍👧 e\u0301 \u200b a<b<c'


@given(st.text(min_size=1))
def test_what_goes_in_comes_out(text: str) -> None:
    tokenizer = CharTokenizer.of(text)
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)  # one token a code point
    assert tokenizer.decode(ids) == text
    assert set(ids) == set(range(len(tokenizer)))


def test_awkward_text_survives_the_file_form() -> None:
    tokenizer = CharTokenizer.of(AWKWARD)
    again = CharTokenizer.from_json(json.dumps(tokenizer.to_json()))
    assert again == tokenizer
    assert again.decode(again.encode(AWKWARD)) == AWKWARD


def test_ids_follow_code_points() -> None:
    assert CharTokenizer.of("banana").vocabulary == ("a", "b", "n")
    assert list(CharTokenizer.of("汉a").encode("a汉")) == [0, 1]


def test_unseen_characters_are_named_with_their_positions() -> None:
    tokenizer = CharTokenizer.of("abc ")
    with pytest.raises(UnseenCharacters) as caught:
        tokenizer.encode("a?汉 ?\n")
    assert caught.value.found == {"?": [1, 4], "汉": [2], "\n": [5]}
    assert caught.value.listed() == "“?” (1, 4), “汉” (2), “↵” (5)"
    assert caught.value.listed(limit=1) == "“?” (1, 4) +2"
    assert unseen("abba", "ab") == {}


def test_every_character_has_something_to_see() -> None:
    assert [visible(c) for c in "a \n\t\u200d\u200b汉"] == [
        "a",
        "␣",
        "↵",
        "⇥",
        "ZWJ",
        "U+200B",
        "汉",
    ]


def test_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="not a character tokeniser"):
        CharTokenizer.from_json('{"version": 1, "kind": "bpe"}')
