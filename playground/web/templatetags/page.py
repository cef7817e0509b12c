"""Template tags of every page: `import_map`, `module`, `icon`, `html_lang`."""

from __future__ import annotations

from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from playground.web import modules
from playground.web.languages import html_code

register = template.Library()


@register.simple_tag(takes_context=True)
def import_map(context: dict[str, Any]) -> SafeString:
    """The page's one import map, with the nonce that the security policy asks for."""
    request = context.get("request")
    nonce = getattr(request, "csp_nonce", "")
    text = modules.import_map(get_language() or "en")
    return format_html(
        '<script type="importmap" nonce="{}">{}</script>',
        str(nonce),
        mark_safe(text),  # JSON of our own file names, "<" escaped
    )


@register.simple_tag
def module(specifier: str) -> SafeString:
    """A script element for a module, and preloads for all it imports.

    `{% module "labs/transformer" %}`. Raises KeyError for a module that does not exist.
    """
    path = modules.specifiers()[specifier]
    links = format_html_join(
        "\n",
        '<link rel="modulepreload" href="{}">',
        ((url,) for url in modules.preloads(specifier)),
    )
    return format_html('{}\n<script type="module" src="{}"></script>', links, static(path))


@register.simple_tag
def icon(name: str, classes: str = "") -> SafeString:
    """One icon of the sprite. It is decoration: the control around it carries the name."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        classes,
        static("img/icons.svg"),
        name,
    )


@register.simple_tag
def html_lang() -> str:
    """The page's language as HTML names it (`en`, `zh-Hans`)."""
    return html_code(get_language() or "en")
