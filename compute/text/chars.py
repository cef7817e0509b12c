"""A character tokeniser: one token is one Unicode code point.

Nothing is normalised, folded or dropped: what goes in comes out. A text's vocabulary is its set of
code points in code point order, so the same text always gives the same ids.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

# Characters without a shape of their own, and the glyph that stands for each in sentences.
GLYPHS = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u3000": "□", "\u200d": "ZWJ"}


def visible(char: str) -> str:
    """The character as people can see it: a glyph for white space, U+XXXX for other controls.

    >>> visible("a"), visible(" "), visible(chr(7))
    ('a', '␣', 'U+0007')
    """
    if char in GLYPHS:
        return GLYPHS[char]
    return char if char.isprintable() else f"U+{ord(char):04X}"


class UnseenCharacters(ValueError):
    """A text holds characters outside the vocabulary; `found` maps each to its positions."""

    def __init__(self, found: dict[str, list[int]]) -> None:
        self.found = found
        super().__init__(f"characters outside the vocabulary: {self.listed()}")

    def listed(self, *, limit: int = 8) -> str:
        """The characters with their first positions, as in “汉” (3), “?” (7, 9)."""
        parts = []
        for char, positions in list(self.found.items())[:limit]:
            where = ", ".join(map(str, positions[:4])) + (", …" if len(positions) > 4 else "")
            parts.append(f"“{visible(char)}” ({where})")
        more = len(self.found) - limit
        return ", ".join(parts) + (f" +{more}" if more > 0 else "")


def unseen(text: str, vocabulary: Iterable[str]) -> dict[str, list[int]]:
    """Characters of `text` that `vocabulary` lacks, each with its positions in the text."""
    known = frozenset(vocabulary)
    found: dict[str, list[int]] = {}
    for position, char in enumerate(text):
        if char not in known:
            found.setdefault(char, []).append(position)
    return found


@dataclass(frozen=True)
class CharTokenizer:
    """Characters ⇄ ids; `vocabulary[i]` is the character with id i."""

    vocabulary: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> CharTokenizer:
        """The tokeniser whose vocabulary is exactly the characters of `text`."""
        return cls(tuple(sorted(set(text))))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {char: i for i, char in enumerate(self.vocabulary)}

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> array[int]:
        """Ids of the text, one a code point, as 64-bit integers.

        Raises UnseenCharacters when the vocabulary lacks one.
        """
        try:
            return array("q", map(self._ids.__getitem__, text))
        except KeyError:
            raise UnseenCharacters(unseen(text, self.vocabulary)) from None

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.vocabulary[i] for i in ids)

    def to_json(self) -> dict[str, object]:
        return {"version": 1, "kind": "characters", "vocabulary": list(self.vocabulary)}

    @classmethod
    def from_json(cls, text: str) -> CharTokenizer:
        """Read what `to_json` gave. Raises ValueError for anything else."""
        data = json.loads(text)
        head = (data.get("kind"), data.get("version")) if isinstance(data, dict) else None
        if head != ("characters", 1):
            raise ValueError("not a character tokeniser of version 1")
        return cls(tuple(data["vocabulary"]))
