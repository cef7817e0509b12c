from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from playground import problems
from playground.operations import access, metrics, page


@require_safe
def operations(request: HttpRequest) -> HttpResponse:
    """The page; with `HX-Request` only the part that changes."""
    try:
        if not access.may_look(request):
            raise PermissionDenied
    except access.NotSignedIn as error:
        raise PermissionDenied from error
    part = request.headers.get("HX-Request") == "true"
    template = "operations/live.html" if part else "operations/page.html"
    answer = render(request, template, page.context(request))
    answer["Cache-Control"] = "no-store"
    return answer


@require_safe
def scrape(request: HttpRequest) -> HttpResponse:
    try:
        if not access.may_scrape(request):
            return problems.response(request, "forbidden")
    except access.NotSignedIn:
        answer = problems.response(request, "not_signed_in")
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    answer = HttpResponse(metrics.text(), content_type=CONTENT_TYPE_LATEST)
    answer["Cache-Control"] = "no-store"
    return answer
