"""A file that somebody gives, from its beginning to what is kept of it.

`python -m compute.text.intake FOLDER` checks `FOLDER/sent`. A text is kept as `text.txt`, in UTF-8
with "\\n" line ends; vectors as they came, as `vectors.txt` or `vectors.bin`. `about.json` says
what was found. It prints one JSON object: `{"form", "encoding", "about"}`, or
`{"refused": {"en", "zh-hans"}}` when the file can't be used. A process of its own, so that whoever
asked stays small and responsive.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from compute.core.errors import UserError
from compute.core.texts import Text
from compute.text import decoding, magic, vectors

SENT = "sent"  # as it came
ABOUT = "about.json"
FILES = {  # what is kept, by form and then by format
    "text": "text.txt",
    "word2vec-text": "vectors.txt",
    "glove": "vectors.txt",
    "word2vec-binary": "vectors.bin",
}
HEAD = magic.HEAD  # bytes that are enough for `form_of`
MAX_BYTES = {"text": 20 * 10**6, "vectors": 2 * 10**9}
EXCERPT = 400  # characters
FIRST_WORDS = 32  # characters
SHORT_LINE = 8  # a first line shorter than this, a chapter's number say, shows too little

TOO_LARGE = {
    "text": Text(
        "The text is larger than 20 MB. Give a part of it.",
        "文本超过 20 MB，请只上传其中一部分。",
    ),
    "vectors": Text(
        "The file is larger than 2 GB. Give fewer words, or fewer dimensions.",
        "文件超过 2 GB，请减少词数或维数。",
    ),
}


def form_of(head: bytes) -> str:
    """ "text" or "vectors", told from how a file begins. Raises UserError for what is neither."""
    magic.refuse_other_formats(head)
    return "text" if vectors.recognise(head) is None else "vectors"


def first_words(text: str) -> str:
    """The beginning of a text for a glance: from the first character that shows, at most a line."""
    shown = text[:EXCERPT].lstrip()
    line = shown.partition("\n")[0].rstrip()
    return (line if len(line) >= SHORT_LINE else shown or text)[:FIRST_WORDS]


def take(folder: Path) -> dict[str, Any]:
    """Check `folder/sent` and keep what is usable. Raises UserError in words."""
    sent = folder / SENT
    with sent.open("rb") as file:
        head = file.read(HEAD)
    magic.refuse_other_formats(head)
    format = vectors.recognise(head)
    found = _text(folder, sent) if format is None else _vectors(folder, sent, format)
    (folder / ABOUT).write_text(json.dumps(found["facts"], ensure_ascii=False), encoding="utf-8")
    return {name: found[name] for name in ("form", "encoding", "about")}


def _text(folder: Path, sent: Path) -> dict[str, Any]:
    if sent.stat().st_size > MAX_BYTES["text"]:
        raise UserError(TOO_LARGE["text"])
    text, encoding = decoding.decode(sent.read_bytes())
    (folder / FILES["text"]).write_text(text, encoding="utf-8", newline="")
    sent.unlink()
    vocabulary = "".join(sorted(set(text)))
    about = {
        "characters": len(text),
        "distinct": len(vocabulary),
        "lines": text.count("\n") + (not text.endswith("\n")),
        "excerpt": text[:EXCERPT],
        "first": first_words(text),
    }
    facts = {**about, "vocabulary": vocabulary}
    return {"form": "text", "encoding": encoding, "about": about, "facts": facts}


def _vectors(folder: Path, sent: Path, format: str) -> dict[str, Any]:
    if sent.stat().st_size > MAX_BYTES["vectors"]:
        raise UserError(TOO_LARGE["vectors"])
    about = vectors.check(sent, format)._asdict()
    sent.rename(folder / FILES[format])
    encoding = "" if format == "word2vec-binary" else "utf-8"
    return {"form": "vectors", "encoding": encoding, "about": about, "facts": about}


def main(folder: Path) -> None:
    try:
        said: dict[str, Any] = take(folder)
    except UserError as error:
        said = {"refused": error.text.as_dict()}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
