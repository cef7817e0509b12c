"""What every template may use: the labs of the navigation and the other language."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import get_language

from playground import labs
from playground.web.languages import LANGUAGES, html_code, switch_url


def page(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `nav_labs`, `server_mode`, `other_language`."""
    other = next(code for code in LANGUAGES if code != (get_language() or "en"))
    return {
        "nav_labs": labs.all(),
        "server_mode": settings.SERVER_MODE,
        "other_language": {
            "code": other,
            "html": html_code(other),
            "name": LANGUAGES[other],
            "url": switch_url(request, other),
        },
    }
