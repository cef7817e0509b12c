"""What the Transformer page can fill in for you, and what it knows before any run exists."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from compute.text import corpora

PRESETS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("default", {}),
    ("small", {"layers": 2, "heads": 2, "d_model": 48, "block": 48, "steps": 600}),
    ("one-head", {"layers": 1, "heads": 1, "d_model": 64, "steps": 1000}),
    ("bible", {"data": "kjv"}),
    ("chinese", {"data": "zh"}),
    ("paper", {"norm": "post", "positions": "sinusoidal", "lr": 1e-3}),
    ("diverge", {"lr": 10.0, "steps": 300}),
)


def titles() -> dict[str, tuple[str, str]]:
    """Title and one line of explanation of each preset, in the active language."""
    return {
        "default": (_("English news"), _("4 layers, 4 heads. About a minute on two cores.")),
        "small": (_("Small and fast"), _("2 layers, 2 heads. Done in seconds.")),
        "one-head": (_("One layer, one head"), _("The least that can attend at all.")),
        "bible": (_("King James Bible"), _("A longer text with its own old words.")),
        "chinese": (_("Chinese"), _("Interface messages, one token a character.")),
        "paper": (_("As in 2017"), _("Norm after each sum, sine positions.")),
        "diverge": (_("Too fast"), _("Learning rate 10: see a run fail.")),
    }


def presets() -> list[dict[str, Any]]:
    words = titles()
    return [
        {"id": name, "title": words[name][0], "summary": words[name][1], "values": params}
        for name, params in PRESETS
    ]


def texts() -> list[dict[str, Any]]:
    """Each training text's facts: length, vocabulary, probe sentence, beginning."""
    found = []
    for name, corpus in corpora.CORPORA.items():
        facts = corpora.facts(name)
        found.append(
            {
                "name": name,
                "title": corpus.title.as_dict(),
                "source": corpus.source.as_dict(),
                "licence": corpus.licence,
                "tokens": facts.tokens,
                "vocabulary": len(facts.vocabulary),
                "probe": facts.probe,
                "excerpt": facts.excerpt[:220],
            }
        )
    return found


def page_data() -> dict[str, Any]:
    """The JSON that the page script starts from."""
    return {"presets": presets(), "texts": texts()}
