"""Files that are no plain text, told by how they begin, each with words for who picked it."""

from __future__ import annotations

import re

from compute.core.errors import UserError
from compute.core.texts import Text

HEAD = 64 * 1024  # bytes of a file's beginning that are looked at

REFUSED = Text("This is {what}, not plain text. {instead}", "这是{what}，不是纯文本。{instead}")
OPEN_IT = Text(
    "Open it, copy its text, and save that as a plain text file (.txt).",
    "请打开它，复制其中的文字，另存为纯文本文件（.txt）。",
)
UNPACK_IT = Text("Unpack it and give the text file inside.", "请先解压，再选择里面的文本文件。")
NO_TEXT = Text("Choose a file that holds text.", "请选择内容是文字的文件。")
WEB_PAGE = Text(
    "This is a web page (HTML), with its tags and scripts. Save its text: open it in a browser, "
    "copy what you want to keep, and save that as a plain text file (.txt).",
    "这是一个网页（HTML），里面有标签和脚本。请保存它的文字：用浏览器打开，"
    "复制要用的内容，另存为纯文本文件（.txt）。",
)

WORD = Text("a Word document", "一份 Word 文档")
OFFICE = Text("an Office document", "一份 Office 文档")
SPREADSHEET = Text("a spreadsheet", "一份电子表格")
SLIDES = Text("a slide deck", "一份演示文稿")
ZIP = Text("a zip archive", "一个 zip 压缩包")
IMAGE = Text("an image", "一张图片")
SOUND = Text("a sound or video file", "一个音频或视频文件")
PACKED = Text("a compressed file", "一个压缩文件")

# Signatures from the formats' specifications: (offset, bytes, what it is, what to do instead).
_SIGNATURES: tuple[tuple[int, bytes, Text, Text], ...] = (
    (0, b"%PDF-", Text("a PDF document", "一份 PDF 文档"), OPEN_IT),
    (0, b"{\\rtf", Text("a rich text (RTF) document", "一份 RTF 文档"), OPEN_IT),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OFFICE, OPEN_IT),
    (0, b"\x1f\x8b", PACKED, UNPACK_IT),
    (0, b"BZh", PACKED, UNPACK_IT),
    (0, b"\xfd7zXZ\0", PACKED, UNPACK_IT),
    (0, b"\x28\xb5\x2f\xfd", PACKED, UNPACK_IT),
    (0, b"7z\xbc\xaf\x27\x1c", PACKED, UNPACK_IT),
    (0, b"Rar!\x1a\x07", PACKED, UNPACK_IT),
    (257, b"ustar", Text("a tar archive", "一个 tar 归档"), UNPACK_IT),
    (0, b"\x89PNG\r\n\x1a\n", IMAGE, NO_TEXT),
    (0, b"\xff\xd8\xff", IMAGE, NO_TEXT),
    (0, b"GIF87a", IMAGE, NO_TEXT),
    (0, b"GIF89a", IMAGE, NO_TEXT),
    (0, b"II*\0", IMAGE, NO_TEXT),
    (0, b"MM\0*", IMAGE, NO_TEXT),
    (8, b"WEBP", IMAGE, NO_TEXT),
    (8, b"WAVE", SOUND, NO_TEXT),
    (4, b"ftyp", SOUND, NO_TEXT),
    (0, b"ID3", SOUND, NO_TEXT),
    (0, b"OggS", SOUND, NO_TEXT),
    (0, b"fLaC", SOUND, NO_TEXT),
    (0, b"SQLite format 3\0", Text("a database", "一个数据库文件"), NO_TEXT),
    (0, b"\x93NUMPY", Text("a NumPy array", "一个 NumPy 数组"), NO_TEXT),
    (0, b"\x7fELF", Text("a program", "一个可执行程序"), NO_TEXT),
)
# What stands in a zip's first entries tells which document it is.
_ZIPPED: tuple[tuple[bytes, Text], ...] = (
    (b"word/", WORD),
    (b"xl/", SPREADSHEET),
    (b"ppt/", SLIDES),
    (b"mimetypeapplication/epub+zip", Text("an e-book (EPUB)", "一本电子书（EPUB）")),
    (b"mimetypeapplication/vnd.oasis.opendocument.text", WORD),
    (b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", SPREADSHEET),
    (b"mimetypeapplication/vnd.oasis.opendocument.presentation", SLIDES),
)
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_SAVED_PAGE = re.compile(
    r"[\s\ufeff]*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b"
    r"|\s*From: <Saved by ",
    re.IGNORECASE | re.DOTALL,
)


def refuse_other_formats(head: bytes) -> None:
    """Raises UserError, in words, when a file that begins with `head` is a document, an archive,
    an image and so on rather than plain text."""
    if head.startswith(_ZIP_STARTS):
        what = next((noun for mark, noun in _ZIPPED if mark in head), ZIP)
        raise UserError(REFUSED.format(what=what, instead=UNPACK_IT if what is ZIP else OPEN_IT))
    for offset, signature, what, instead in _SIGNATURES:
        if head.startswith(signature, offset) and _sure(head, signature):
            raise UserError(REFUSED.format(what=what, instead=instead))


def refuse_web_page(text: str) -> None:
    """Raises UserError when a text is a page saved from a browser."""
    if _SAVED_PAGE.match(text[:HEAD]):
        raise UserError(WEB_PAGE)


def _sure(head: bytes, signature: bytes) -> bool:
    """A signature made of letters could begin a text; a file of that format has zeros, too."""
    return not signature.isalnum() or b"\0" in head
