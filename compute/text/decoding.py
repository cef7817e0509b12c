"""The text in a file: its encoding found, its line ends made "\\n", and what is no text refused.

Tried in this order, so that the answer never depends on chance: a byte order mark; UTF-16 without
one, where zeros give it away; UTF-8; GB18030 (which contains GBK and GB2312), where the result
reads like Chinese. Nothing else is guessed: an encoding that takes any bytes, such as Latin-1,
would turn damage into letters. Nothing is normalised but the line ends.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compute.core.errors import UserError
from compute.core.texts import Text
from compute.text import magic

CONTROL_SHARE = 0.01  # of all characters; logs and old DOS texts have a few
LOOKED_AT = 200_000  # characters that tell whether a text is Chinese
FREQUENT_SHARE = 0.25  # of the characters beyond ASCII: prose has above a half, others below 0.17

EMPTY = Text("The file is empty.", "文件是空的。")
BLANK = Text(
    "The file holds nothing but white space: there is no text in it.",
    "文件里只有空白字符，没有文字。",
)
BINARY = Text(
    "This is a binary file, not text: {what}. Choose a plain text file (.txt).",
    "这是二进制文件，不是文本：{what}。请选择纯文本文件（.txt）。",
)
HAS_ZEROS = Text(
    "it holds zero bytes, the first at byte {at}", "其中有零字节，第一个在第 {at} 字节"
)
HAS_NULS = Text("its character {at} is zero", "其第 {at} 个字符为零")
HAS_CONTROLS = Text(
    "{percent} % of its characters are control characters", "其中 {percent}% 是控制字符"
)
UNDECODABLE = Text(
    "This text can't be read as {tried}: byte {at} is 0x{byte}. "
    "Open it in an editor and save it as UTF-8.",
    "这个文本不能按 {tried} 读取：第 {at} 字节是 0x{byte}。请用编辑器打开并另存为 UTF-8。",
)
EITHER = Text("UTF-8 or GB18030", "UTF-8 或 GB18030")
CUT_OFF = Text(
    "This text can't be read as {tried}: it breaks off inside a character at byte {at}. "
    "It may have been cut short; save it again as UTF-8.",
    "这个文本不能按 {tried} 读取：它在第 {at} 字节处断在一个字符中间，可能不完整。"
    "请重新保存为 UTF-8。",
)

# Byte order marks, with the names under which the result says what the file was.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8-bom"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be"),
)
_SHOWN = {"utf-8": "UTF-8", "utf-16-le": "UTF-16 LE", "utf-16-be": "UTF-16 BE"}
_PLAIN_CONTROLS = frozenset("\t\n\v\f\r\x1a\x1b\x85")  # layout, an old end of file, colours
# The most frequent characters of modern and of classical Chinese (after Jun Da, "Chinese text
# computing", 2004), their traditional forms, and the punctuation of both.
_FREQUENT = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之"
    "年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样"
    "理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将"
    "两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信"
    "表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔"
    "更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统"
    "区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品"
    "住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运百单转红改造流"
    "称准约派组快城众越步华满周究易影病孩谈医千石片专父李刘陈杨赵黄吴孙林算返输写读请语字符错"
    "误這個們來為國說時會對後裡過發種麼學現當沒動還進樣開從實無與長機關點業將兩間問並應戰頭體"
    "見產話給門兒東聲員義處幾認條係氣題爾別變總電數報結務場計資許統區隊決馬書則聽卻達強難權記"
    "曰乎哉矣焉吾汝故夫若乃亦皆云"
    "，。、；：？！“”‘’（）《》〈〉【】「」『』—…　·～〔〕"
)


class Decoded(NamedTuple):
    """A text with "\\n" at its line ends, and the encoding that it came in."""

    text: str
    encoding: str


def read_text(path: Path) -> str:
    """The text of a file. Raises UserError in words for what is none, or isn't there."""
    try:
        data = path.read_bytes()
    except OSError as error:
        words = Text("{path} can't be read: {why}.", "无法读取 {path}：{why}。")
        raise UserError(words.format(path=path, why=error.strerror)) from error
    return decode(data).text


def decode(data: bytes) -> Decoded:
    """The text that `data` holds. Raises UserError naming what is wrong, and where."""
    if not data:
        raise UserError(EMPTY)
    magic.refuse_other_formats(data[: magic.HEAD])
    text, encoding = _decoded(data)
    _refuse_binary(text)
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise UserError(BLANK)
    magic.refuse_web_page(text)
    return Decoded(text, encoding)


def _decoded(data: bytes) -> Decoded:
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            return Decoded(_strictly(data, codec, _SHOWN[codec]), name)
    if b"\0" in data:
        found = list(_as_utf16(data))
        if len(found) == 1:
            return found[0]
        raise UserError(BINARY.format(what=HAS_ZEROS.format(at=data.index(b"\0"))))
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        not_utf8 = error
    try:
        text = data.decode("gb18030")
    except UnicodeDecodeError as error:
        if reads_as_chinese(data[: error.start].decode("gb18030")):
            raise _undecodable(error, "GB18030") from None
        text = ""
    if not reads_as_chinese(text):
        raise _undecodable(not_utf8, "UTF-8" if _cut_off(not_utf8) else EITHER)
    return Decoded(text, "gb18030")


def _strictly(data: bytes, codec: str, shown: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        raise _undecodable(error, shown) from None


def _undecodable(error: UnicodeDecodeError, tried: Text | str) -> UserError:
    if _cut_off(error):
        return UserError(CUT_OFF.format(tried=tried, at=error.start))
    byte = f"{error.object[error.start]:02X}"
    return UserError(UNDECODABLE.format(tried=tried, at=error.start, byte=byte))


def _cut_off(error: UnicodeDecodeError) -> bool:
    """Everything up to a beginning of a character at the very end could be read."""
    return error.reason in ("unexpected end of data", "truncated data")


def _as_utf16(data: bytes) -> Iterator[Decoded]:
    """`data` as UTF-16 in both byte orders, where that gives nothing but assigned characters and
    white space or ASCII among them. Read in the wrong order, text gives characters at random."""
    if len(data) % 2:
        return
    for codec in ("utf-16-le", "utf-16-be"):
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        characters = set(text)
        odd = {c for c in characters if unicodedata.category(c) in ("Cn", "Co", "Cs", "Cc")}
        if odd - _PLAIN_CONTROLS or not any(c.isascii() for c in characters):
            continue
        # ASCII read the wrong way round lands on U+0A00, U+2000, U+6100…: rare letters, no ASCII.
        yield Decoded(text, codec)


def reads_as_chinese(text: str) -> bool:
    """Whether enough of what is beyond ASCII is what Chinese is mostly made of. Text in another
    encoding, read as GB18030, gives rare characters at random."""
    part = text[:LOOKED_AT]
    beyond = len(part) - len(part.encode("ascii", "ignore"))
    frequent = sum(part.count(c) for c in set(part) & _FREQUENT)
    return beyond > 0 and frequent / beyond >= FREQUENT_SHARE


def _refuse_binary(text: str) -> None:
    """Zeros, or more control characters than text has. Counted a character, not a byte."""
    controls = [
        c for c in set(text) if c < "\xa0" and c not in _PLAIN_CONTROLS and not c.isprintable()
    ]
    if "\0" in controls:
        raise UserError(BINARY.format(what=HAS_NULS.format(at=text.index("\0"))))
    share = sum(map(text.count, controls)) / max(1, len(text))
    if share > CONTROL_SHARE:
        raise UserError(BINARY.format(what=HAS_CONTROLS.format(percent=f"{share * 100:.2g}")))
