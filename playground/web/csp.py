"""The content security policy: nothing inline, nothing from elsewhere.

`POLICY` is what the settings give to django-csp. `with_plotly` loosens styles, and styles only,
on pages that draw with Plotly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from csp.constants import NONCE, NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp_update

POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],  # the nonce is for the one import map
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "worker-src": [SELF],
        "form-action": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# Plotly adds two <style> elements: an empty one, filled later through insertRule, and the sheet
# of its map library. Blocked, nothing throws, but the picture is false (colour bar lost, heat map
# smoothed). A test computes both hashes from the installed wheel.
PLOTLY_STYLE_HASHES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
)

_WITH_PLOTLY = {
    "style-src-attr": [UNSAFE_INLINE],
    "style-src-elem": [SELF, *PLOTLY_STYLE_HASHES],
}


View = TypeVar("View", bound=Callable[..., Any])


def with_plotly(view: View) -> View:
    """Decorator of a page view whose page draws with Plotly."""
    return cast(View, csp_update(_WITH_PLOTLY)(view))
