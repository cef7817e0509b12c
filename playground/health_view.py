"""`GET /healthz`: is every part up."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, JsonResponse

from playground.jobs import health


def healthz(request: HttpRequest) -> JsonResponse:
    """200 with an object a part once everything is up, 503 with `down` naming what isn't."""
    parts = health.report()
    parts["web"]["version"] = settings.VERSION
    down = [name for name, part in parts.items() if not part["ok"]]
    content = {**parts, "down": down} if down else parts
    answer = JsonResponse(content, status=503 if down else 200)
    answer["Cache-Control"] = "no-store"
    if down:
        answer["Retry-After"] = "1"
        answer._has_been_logged = True  # type: ignore[attr-defined]  # asked for while starting
    return answer
