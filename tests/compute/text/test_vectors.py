"""Files of word vectors, against gensim's reader of the same files."""

from __future__ import annotations

import struct
from pathlib import Path

import gensim
import pytest
from gensim.models import KeyedVectors

from compute.core.errors import UserError
from compute.text import corpora, vectors

TEST_DATA = Path(gensim.__file__).parent / "test" / "test_data"
FILES = [
    ("test_glove.txt", "glove"),
    ("word2vec_pre_kv_c", "word2vec-text"),
    ("lee_fasttext.vec", "word2vec-text"),
    ("crime-and-punishment.vec", "word2vec-text"),
    ("euclidean_vectors.bin", "word2vec-binary"),
    ("poincare_vectors.bin", "word2vec-binary"),
]


# gensim leaves a file without a header open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("name", "format"), FILES)
def test_gensim_finds_the_same_in_its_own_files(name: str, format: str) -> None:
    path = TEST_DATA / name
    assert vectors.recognise(path.read_bytes()[:65536]) == format
    about = vectors.check(path, format)
    binary, bare = format == "word2vec-binary", format == "glove"
    known = KeyedVectors.load_word2vec_format(str(path), binary=binary, no_header=bare)
    assert (about.words, about.dims) == (len(known), known.vector_size)
    assert about.first == known.index_to_key[: len(about.first)]


@pytest.mark.parametrize("name", corpora.CORPORA)
def test_prose_is_no_vectors(name: str) -> None:
    assert vectors.recognise(corpora.read(name).encode()[:65536]) is None


@pytest.mark.parametrize(
    "text",
    [
        "12 3\nhello world this is prose\n",  # begins as a header does
        "1 2 3\n4 5 6\n7 8 9\n",  # numbers alone
        "the first line\nthe 1 2 3\n",
        "word\n",
        "\n\n",
        "x 1\ny 2\n",
    ],
)
def test_texts_that_look_a_little_like_vectors(text: str) -> None:
    assert vectors.recognise(text.encode()) is None


def said(tmp_path: Path, content: bytes) -> str:
    file = tmp_path / "v"
    file.write_bytes(content)
    format = vectors.recognise(content[:65536])
    assert format is not None
    with pytest.raises(UserError) as caught:
        vectors.check(file, format)
    assert caught.value.text.zh != caught.value.text.en
    return caught.value.text.en


ROWS = b"".join(b"word%d 0.5 -1e-3 2\n" % n for n in range(5_000))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"bad 1 2\n", "Line 3000 has 2 numbers"),
        (b"bad 1 2 3 4\n", "Line 3000 has 4 numbers"),
        (b"bad 1 2 inf\n", 'Line 3000, the word "bad": its vector holds inf'),
        (b"bad 1 nan 2\n", 'Line 3000, the word "bad": its vector holds nan'),
        (b"bad 1 1e999 2\n", "its vector holds 1e999"),
        (b"bad 1 x 2\n", '"x" is not a number'),
        (b"\n", "Line 3000 is blank"),
        (b"b\xffd 1 2 3\n", "Line 3000: its word is not UTF-8"),
        (b"x" * 600_000 + b" 1 2 3\n", "Line 3000 is longer than 512 KB"),
    ],
)
def test_the_wrong_line_is_named(tmp_path: Path, line: bytes, why: str) -> None:
    lines = ROWS.splitlines(keepends=True)
    assert why in said(tmp_path, b"".join([*lines[:2999], line, *lines[2999:]]))
    headed = b"5001 3\n" + b"".join([*lines[:2998], line, *lines[2998:]])
    if b"1 2 3 4" not in line and line != b"bad 1 2\n":
        assert why in said(tmp_path, headed)
    else:
        assert "the first line promises 3" in said(tmp_path, headed)


def test_words_with_spaces_as_in_the_largest_glove_file(tmp_path: Path) -> None:
    file = tmp_path / "v"
    file.write_bytes(ROWS + b". . . 1 2 3\nat name@domain.com 4 5 6\n\n")
    about = vectors.check(file, "glove")
    assert (about.words, about.dims) == (5_002, 3)


def test_a_file_cut_short_or_too_long(tmp_path: Path) -> None:
    assert "promises 6000 words, but the file ends after 5000" in said(tmp_path, b"6000 3\n" + ROWS)
    assert "goes on after them" in said(tmp_path, b"4999 3\n" + ROWS)
    binary = (TEST_DATA / "euclidean_vectors.bin").read_bytes()
    assert "promises 2747 words, but the file ends after" in said(tmp_path, binary[:-50])
    assert "goes on after them" in said(tmp_path, binary + b"more")
    assert "20000 dimensions" in said(tmp_path, b"2 20000\nw" + b" 1" * 20_000 + b"\n")


def test_binary_rows_are_all_checked(tmp_path: Path) -> None:
    rows = [b"w%d " % n + struct.pack("<3f", n, -n, 0.5) + b"\n" for n in range(3_000)]
    file = tmp_path / "v"
    file.write_bytes(b"3000 3\n" + b"".join(rows))
    assert vectors.check(file, "word2vec-binary").words == 3_000
    rows[2_345] = b"w2345 " + struct.pack("<3f", float("inf"), float("-inf"), 1) + b"\n"
    assert 'Word 2346 ("w2345")' in said(tmp_path, b"3000 3\n" + b"".join(rows))
    rows[2_345] = b"w\xff\xfe " + struct.pack("<3f", 1, 2, 3) + b"\n"
    assert "Word 2346 can't be read" in said(tmp_path, b"3000 3\n" + b"".join(rows))
