"""The message catalogue of the scripts, served as one small module a language.

`core/catalogue` in the import map points at `/i18n/<language>.<hash>.js`, so a browser keeps it
for good and a changed translation has a new address.
"""

from __future__ import annotations

import gettext
import hashlib
import json
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.translation import to_locale

from playground.web.languages import LANGUAGES

DOMAIN = "djangojs"


def script_messages(language: str) -> dict[str, str | list[str]]:
    """Message id → text, or a list of plural forms. Empty for English, the language of the ids.

    Reads the compiled catalogue. Raises FileNotFoundError when it has not been compiled.
    """
    if language == "en":
        return {}
    found: dict[str, str | list[str]] = {}
    for folder in settings.LOCALE_PATHS:
        translations = gettext.translation(
            DOMAIN, localedir=Path(str(folder)), languages=[to_locale(language)]
        )
        catalogue = translations._catalog  # type: ignore[attr-defined]  # as Django's own view does
        for key, text in catalogue.items():
            if isinstance(key, tuple):
                found.setdefault(key[0], []).append(text)  # type: ignore[union-attr]
            elif key:
                found[key] = text
    return found


@lru_cache
def script(language: str) -> str:
    """The module's text. Raises KeyError for a language the site does not speak."""
    if language not in LANGUAGES:
        raise KeyError(language)
    messages = script_messages(language)
    return f"export default {json.dumps(messages, ensure_ascii=False, separators=(',', ':'))};\n"


@lru_cache
def digest(language: str) -> str:
    return hashlib.sha256(script(language).encode()).hexdigest()[:12]


def script_url(language: str) -> str:
    known = language if language in LANGUAGES else "en"
    return f"/i18n/{known}.{digest(known)}.js"
