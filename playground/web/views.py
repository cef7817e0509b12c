"""Home, the guide's pages, and the scripts' message catalogue."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from playground import labs
from playground.web import documents as guide
from playground.web import messages, picture


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "web/home.html", {"labs": labs.all(), "picture": picture.facts()})


@require_safe
def documents(request: HttpRequest) -> HttpResponse:
    return render(request, "web/documents.html", {"rooms": guide.rooms(get_language() or "en")})


@require_safe
def document(request: HttpRequest, room: str, name: str) -> HttpResponse:
    language = get_language() or "en"
    try:
        page = guide.page(room, name, language)
    except KeyError as error:
        raise Http404(str(error)) from error
    context = {"page": page, "rooms": guide.rooms(language)}
    return render(request, "web/document.html", context)


@require_safe
def catalogue(request: HttpRequest, language: str, digest: str) -> HttpResponse:
    """The scripts' messages as a module. An outdated address is not found, never stale."""
    try:
        if digest != messages.digest(language):
            raise Http404("This catalogue has changed.")
        text = messages.script(language)
    except KeyError as error:
        raise Http404(f"No catalogue for {language}.") from error
    response = HttpResponse(text, content_type="text/javascript; charset=utf-8")
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response
