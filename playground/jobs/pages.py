"""How every list answers: `{items, next, prev}`, and the same two as links (RFC 8288)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse


def listed(
    request: HttpRequest,
    items: Sequence[Any],
    *,
    next: str | None = None,
    prev: str | None = None,
) -> HttpResponse:
    """`next` and `prev` are what `cursor` is to be for those pages."""
    content = {"items": items, "next": next, "prev": prev}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    answer = HttpResponse(text, content_type="application/json")
    answer["Cache-Control"] = "no-cache"
    link(request, answer, "cursor", next=next, prev=prev)
    return answer


def link(
    request: HttpRequest, answer: HttpResponse, name: str, *, next: str | None, prev: str | None
) -> None:
    """Sets `Link`: this request's address with another value of the query's `name`."""
    links = []
    for rel, cursor in (("next", next), ("prev", prev)):
        if cursor is not None:
            query = request.GET.copy()
            query[name] = cursor
            links.append(f'<{request.path}?{query.urlencode()}>; rel="{rel}"')
    if links:
        answer["Link"] = ", ".join(links)
