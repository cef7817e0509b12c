"""Encodings are told by what is in a file, and what is no text is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute.core.errors import UserError
from compute.text import corpora
from compute.text.decoding import decode, read_text, reads_as_chinese

# The opening of the Analects, Li Bai's poem, a modern sentence, a list of names.
CLASSIC = "學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？人不知而不慍，不亦君子乎？"
POEM = "床前明月光疑是地上霜舉頭望明月低頭思故鄉"
MODERN = "我们的老师说：学习机器学习要先动手。\n第二行。\n"
NAMES = "王伟 张敏 李娜 刘洋 陈杰 杨柳"
# Universal Declaration, constitutions, novels: other encodings that GB18030 would swallow.
KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему."
FRENCH = "Longtemps, je me suis couché de bonne heure. Parfois, à peine ma bougie éteinte"


def refused(data: bytes) -> str:
    with pytest.raises(UserError) as caught:
        decode(data)
    assert caught.value.text.zh != caught.value.text.en
    return caught.value.text.en


@pytest.mark.parametrize("text", [CLASSIC, POEM, MODERN, NAMES, "He said “yes” — and left…"])
def test_gb18030_is_told_from_little(text: str) -> None:
    assert decode(text.encode("gb18030")) == (text, "gb18030")
    assert decode(text.encode("utf-8")) == (text, "utf-8")


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (KOREAN, "euc-kr"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "shift-jis"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "cp1251"),
        (FRENCH, "latin-1"),
        (CLASSIC, "big5"),
    ],
)
def test_other_encodings_are_not_taken_for_it(text: str, codec: str) -> None:
    said = refused(text.encode(codec))
    assert "UTF-8 or GB18030" in said and "save it as UTF-8" in said
    assert decode(text.encode("utf-8")).text == text


def test_the_byte_that_can_not_be_read_is_named() -> None:
    assert "byte 5 is 0xFF" in refused(b"hello\xff world")
    # The same place as Python's own decoder says, in the encoding that fits.
    data = (MODERN * 10).encode("gb18030")
    broken = data[:80] + b"\xff\xff" + data[80:]
    with pytest.raises(UnicodeDecodeError) as caught:
        broken.decode("gb18030")
    assert f"as GB18030: byte {caught.value.start} " in refused(broken)
    assert "breaks off inside a character at byte 2" in refused("naï".encode()[:-1])
    assert "UTF-16 LE" in refused(b"\xff\xfea\0b")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["lee", "zh"])
def test_utf16_without_a_mark_is_told_by_its_zeros(name: str, codec: str) -> None:
    text = corpora.read(name)
    assert decode(text.encode(codec)) == (text, codec)


@given(st.text(min_size=1, max_size=200), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_a_text_comes_back_as_it_was_but_for_line_ends(text: str, codec: str) -> None:
    kept = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    try:
        found = decode(text.encode(codec)).text
    except UserError:
        # Blank, control characters, or letters that happen to be another format's signature.
        assert not kept.strip() or not kept.isprintable() or text[:1] in "%{BGIMORWf7P<\ufeff"
        return
    assert found == kept


def test_reading_twice_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"\xef\xbb\xbf\xef\xbb\xbf" + b"one\r\ntwo\rthree\n\r")
    once = read_text(file)
    assert once == "one\ntwo\nthree\n\n"
    file.write_text(once, encoding="utf-8", newline="")
    assert read_text(file) == once


def test_a_file_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        read_text(tmp_path / "none.txt")


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html>\n<title>x</title>",
        "\ufeff  <HTML lang=en>",
        "<!-- saved from url=(0014)about:internet -->\r\n<html>",
        '<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">',
        "From: <Saved by Blink>\nSnapshot-Content-Location: x",
    ],
)
def test_saved_web_pages(page: str) -> None:
    assert "web page" in refused(page.encode()) or "saved" in refused(page.encode())


@pytest.mark.parametrize(
    "text",
    [
        "In <html> documents the tag comes first.",
        "<htmlish> is no tag",
        "PK is a mark of graphic novels",
        "BZh is not a word",
        "ID3 is an algorithm for decision trees",
        "GIF89a is a format",
        "\x1b[31mred\x1b[0m and plain " * 3,
    ],
)
def test_text_about_formats_is_text(text: str) -> None:
    try:
        assert decode(text.encode()).text == text
    except UserError as error:  # these two begin exactly as the format does
        assert text.startswith(("GIF89a", "BZh")), error


def test_what_counts_as_chinese() -> None:
    assert reads_as_chinese(MODERN) and reads_as_chinese(CLASSIC)
    assert not reads_as_chinese("plain ASCII") and not reads_as_chinese("")
    assert not reads_as_chinese(KOREAN.encode("euc-kr").decode("gb18030"))
