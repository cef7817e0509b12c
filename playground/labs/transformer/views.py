from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from playground.labs.transformer import presets
from playground.web.csp import with_plotly

STYLES = (
    "css/elements/params-form.css",
    "css/elements/upload-field.css",
    "css/elements/job-status.css",
    "css/elements/live-chart.css",
    "css/elements/token-strip.css",
    "css/elements/matrix-view.css",
    "css/elements/step-player.css",
    "css/labs/transformer.css",
    "css/labs/transformer-step.css",
    "css/labs/transformer-next.css",
)


@require_safe
@with_plotly
def page(request: HttpRequest) -> HttpResponse:
    """The Transformer lab. Everything that moves on it comes by the API and the socket."""
    context = {"data": presets.page_data(), "styles": STYLES}
    return render(request, "labs/transformer.html", context)
