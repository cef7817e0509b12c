"""Words for people, always written in both of the product's languages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LANGUAGES = ("en", "zh-hans")


class Text(NamedTuple):
    """One piece of human text in English and in Simplified Chinese."""

    en: str
    zh: str

    def get(self, lang: str) -> str:
        """The text in `lang`: any Chinese tag ("zh", "zh-hans", "zh_CN") or else English."""
        return self.zh if lang.lower().startswith("zh") else self.en

    def as_dict(self) -> dict[str, str]:
        """The form that JSON carries."""
        return {"en": self.en, "zh-hans": self.zh}

    def format(self, **values: object) -> Text:
        """Fill `{name}` fields in both languages; a value that is a Text takes each language."""
        en = {name: v.en if isinstance(v, Text) else v for name, v in values.items()}
        zh = {name: v.zh if isinstance(v, Text) else v for name, v in values.items()}
        return Text(self.en.format(**en), self.zh.format(**zh))


def joined(texts: Iterable[Text], en: str = " ", zh: str = "") -> Text:
    """The texts one after the other, with `en` or `zh` between them.

    >>> joined([Text("One.", "一。"), Text("Two.", "二。")])
    Text(en='One. Two.', zh='一。二。')
    """
    found = list(texts)
    return Text(en.join(text.en for text in found), zh.join(text.zh for text in found))


def shorten(text: str, limit: int = 60) -> str:
    """`text` in at most `limit` characters; "…" stands for what is cut off its end."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
