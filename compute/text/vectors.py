"""Word vectors in files: the text and binary formats of word2vec, and GloVe's text.

Checked in one pass that holds a line at a time. word2vec's text and binary files begin with a line
"words dimensions" (Mikolov et al. 2013, the tool's `distance.c` reads them); a GloVe file
(Pennington et al. 2014) has rows alone. A row is a word, then its numbers with one space between.
"""

from __future__ import annotations

import codecs
import math
import re
import sys
from array import array
from collections import Counter
from pathlib import Path
from typing import BinaryIO, NamedTuple

from compute.core.errors import UserError
from compute.core.texts import Text, shorten

FORMATS = ("word2vec-text", "word2vec-binary", "glove")
MAX_DIMS = 10_000
MAX_LINE = 512 * 1024  # bytes
SHOWN_WORDS = 12
PARSED = 1_000  # rows at the start whose every number is parsed, and one in SPARSE after them;
SPARSE = 64  # the others are checked for their count and for what numbers are written with

_HEADER = re.compile(rb"([1-9]\d{0,9}) ([1-9]\d{0,4})[ \t]*\r?\n")
_NUMERIC = b"0123456789+-. "
_SPACE = b" \t\r\n"
_LOOKED_AT = 20  # rows that tell vectors from prose

WRONG_COUNT = Text(
    "Line {line} has {got} numbers after its word; the rows before it have {dims}.",
    "第 {line} 行在词后面有 {got} 个数，而前面各行有 {dims} 个。",
)
WRONG_COUNT_HEADER = Text(
    "Line {line} has {got} numbers after its word; the first line promises {dims}.",
    "第 {line} 行在词后面有 {got} 个数，而首行写明有 {dims} 个。",
)
NOT_A_NUMBER = Text(
    'Line {line}, the word "{word}": "{value}" is not a number.',
    "第 {line} 行（词“{word}”）：“{value}”不是数。",
)
NOT_FINITE = Text(
    'Line {line}, the word "{word}": its vector holds {value}. Every number must be finite.',
    "第 {line} 行（词“{word}”）：向量里有 {value}，每个数都必须有限。",
)
WORD_NOT_FINITE = Text(
    'Word {row} ("{word}"): its vector holds a NaN or an infinity. Every number must be finite.',
    "第 {row} 个词（“{word}”）：向量里有 NaN 或无穷大，每个数都必须有限。",
)
NO_WORD = Text("Line {line} is blank.", "第 {line} 行是空的。")
BAD_WORD = Text(
    "Line {line}: its word is not UTF-8. Save the file as UTF-8.",
    "第 {line} 行：词不是 UTF-8 编码。请把文件存成 UTF-8。",
)
BAD_BINARY_WORD = Text(
    "Word {row} can't be read: what stands there is not UTF-8 followed by a space. The file may be "
    "damaged, or of another format.",
    "第 {row} 个词无法读取：那里不是以空格结尾的 UTF-8 文字。文件可能已损坏，或是别的格式。",
)
LONG_LINE = Text(
    "Line {line} is longer than {limit} KB: no row of word vectors is.",
    "第 {line} 行超过 {limit} KB，词向量不会有这么长的行。",
)
TOO_MANY_DIMS = Text(
    "The vectors have {dims} dimensions; at most {limit} can be used.",
    "向量有 {dims} 维，最多只能用 {limit} 维。",
)
CUT_SHORT = Text(
    "The first line promises {promised} words, but the file ends after {words}: it was cut short.",
    "首行写明有 {promised} 个词，但文件在第 {words} 个词之后就结束了，可能不完整。",
)
TOO_LONG = Text(
    "The first line promises {promised} words, but the file goes on after them.",
    "首行写明有 {promised} 个词，但在它们之后还有内容。",
)


class About(NamedTuple):
    """What a file of vectors holds."""

    format: str  # of FORMATS
    words: int
    dims: int
    first: list[str]  # its first words


def recognise(head: bytes) -> str | None:
    """The format of a file that begins with `head`, or None when it holds no vectors.

    A row or two may be damaged: `check` says which. Rows of nothing but numbers are a text like any
    other, so without a header some row must begin with a word that is no number.
    """
    match = _HEADER.match(head)
    if match:
        body = head[match.end() :]
        if _numbers_in(body.partition(b"\n")[0]) >= 2:
            return "word2vec-text"
        return "word2vec-binary" if _begins_binary(body, int(match[2])) else None
    lines = head.split(b"\n")
    rows = [row for row in (lines[:-1] or lines)[:_LOOKED_AT] if row.strip()]
    counts = Counter(_numbers_in(row) for row in rows)
    if not rows or counts.most_common(1)[0][0] < 2 or counts.most_common(1)[0][1] * 2 <= len(rows):
        return None
    return None if all(_is_number(row.split()[0]) for row in rows) else "glove"


def check(path: Path, format: str) -> About:
    """Reads the whole file. Raises UserError that names the line or word which is wrong."""
    with path.open("rb") as file:
        if format == "word2vec-binary":
            return _check_binary(file)
        return _check_text(file, format)


# Text


def _check_text(file: BinaryIO, format: str) -> About:
    promised, dims, number = None, None, 0
    if format == "word2vec-text":
        match = _HEADER.match(file.readline(64))
        assert match is not None
        promised, dims, number = int(match[1]), _dims(int(match[2])), 1
    words, blank = 0, 0
    first: list[str] = []
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise UserError(LONG_LINE.format(line=number, limit=MAX_LINE // 1024))
        row = line.strip(_SPACE)
        if not row:
            blank = blank or number
            continue
        if blank:  # only at the end of the file is it fine
            raise UserError(NO_WORD.format(line=blank))
        if dims is None:
            dims = _dims(row.count(b" "))
        word = _row(row, dims, number, headed=promised is not None, parse=_parsed(words))
        words += 1
        if len(first) < SHOWN_WORDS:
            first.append(shorten(word, 30))
    if promised is not None and promised != words:
        text = CUT_SHORT if words < promised else TOO_LONG
        raise UserError(text.format(promised=promised, words=words))
    return About(format, words, dims or 0, first)


def _parsed(row: int) -> bool:
    return row < PARSED or row % SPARSE == 0


def _row(row: bytes, dims: int, line: int, *, headed: bool, parse: bool) -> str:
    """The word of one row, whose numbers are sound. Raises UserError."""
    word, _, numbers = row.partition(b" ")
    if row.count(b" ") != dims:
        word, numbers = _uneven(row, dims, line, headed=headed)
    if parse or numbers.translate(None, _NUMERIC):
        _finite(word, numbers, line)
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(BAD_WORD.format(line=line)) from None


def _uneven(row: bytes, dims: int, line: int, *, headed: bool) -> tuple[bytes, bytes]:
    """A row with more or fewer spaces than numbers. GloVe's largest file has words with spaces in
    them, such as ". . ."; what stands before the numbers is one as long as it ends in no number.
    """
    parts = row.split()
    word, numbers = parts[:-dims], parts[-dims:]
    if not word or (len(word) > 1 and _is_number(word[-1])):
        text = WRONG_COUNT_HEADER if headed else WRONG_COUNT
        raise UserError(text.format(line=line, got=len(parts) - 1, dims=dims))
    return b" ".join(word), b" ".join(numbers)


def _finite(word: bytes, numbers: bytes, line: int) -> None:
    shown = shorten(word.decode("utf-8", "replace"), 40)
    for part in numbers.split():
        try:
            if math.isfinite(float(part)):
                continue
        except ValueError:
            value = shorten(part.decode("utf-8", "replace"), 20)
            raise UserError(NOT_A_NUMBER.format(line=line, word=shown, value=value)) from None
        raise UserError(NOT_FINITE.format(line=line, word=shown, value=part.decode()))


def _numbers_in(line: bytes) -> int:
    """How many numbers stand after the word, 0 when not all of that are numbers."""
    numbers = line.split()[1:]
    return len(numbers) if all(map(_is_number, numbers)) else 0


def _is_number(part: bytes) -> bool:
    try:
        float(part)
    except ValueError:
        return False
    return b"_" not in part


def _dims(dims: int) -> int:
    if dims > MAX_DIMS:
        raise UserError(TOO_MANY_DIMS.format(dims=dims, limit=MAX_DIMS))
    return dims


# Binary: each word, a space, its numbers as 32-bit floats, little end first; then perhaps "\n"


def _begins_binary(body: bytes, dims: int) -> bool:
    if b"\0" not in body and _is_utf8(body):
        return False
    word, space, rest = body.partition(b" ")
    if not space or len(word) > 1_000 or b"\n" in word.lstrip(b"\n"):
        return False
    return math.isfinite(sum(_floats(rest[: 4 * min(dims, len(rest) // 4)])))


def _is_utf8(body: bytes) -> bool:
    """Whether `body` is, as far as it goes: its end may be in the middle of a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def _check_binary(file: BinaryIO) -> About:
    match = _HEADER.match(file.readline(64))
    assert match is not None
    promised, dims = int(match[1]), _dims(int(match[2]))
    first: list[str] = []
    for row in range(1, promised + 1):
        word = _binary_word(file, row, promised)
        data = file.read(4 * dims)
        if len(data) < 4 * dims:
            raise UserError(CUT_SHORT.format(promised=promised, words=row - 1))
        if not math.isfinite(sum(_floats(data))):  # of finite ones no sum is infinite
            raise UserError(WORD_NOT_FINITE.format(row=row, word=shorten(word, 40)))
        if len(first) < SHOWN_WORDS:
            first.append(shorten(word, 30))
    if file.read(64).strip():
        raise UserError(TOO_LONG.format(promised=promised))
    return About("word2vec-binary", promised, dims, first)


def _binary_word(file: BinaryIO, row: int, promised: int) -> str:
    """Up to the next space. Some writers end each vector with a line break, others don't."""
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter:
            raise UserError(CUT_SHORT.format(promised=promised, words=row - 1))
        if letter != b"\n" or letters:
            letters += letter
        if len(letters) > 1_000:
            raise UserError(BAD_BINARY_WORD.format(row=row))
    try:
        return letters.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(BAD_BINARY_WORD.format(row=row)) from None


def _floats(data: bytes) -> array[float]:
    found = array("f")
    found.frombytes(data)
    if sys.byteorder == "big":
        found.byteswap()
    return found
