"""A page with every shared element of the shell, for tests only. URLconf and view."""

from __future__ import annotations

from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import include, path

from playground.web.csp import with_plotly

ELEMENTS = ("params-form", "job-status", "live-chart", "token-strip")


@with_plotly
def gallery(request: HttpRequest) -> HttpResponse:
    source = Path(__file__).with_name("gallery.html").read_text("utf-8")
    context = {
        "styles": [f"css/elements/{name}.css" for name in ELEMENTS],
        "modules": [f"elements/{name}" for name in ELEMENTS],
    }
    return HttpResponse(engines["django"].from_string(source).render(context, request))


urlpatterns = [path("gallery", gallery), path("", include("playground.web.urls"))]
