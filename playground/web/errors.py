"""Error pages: a sentence that says what happened and one that says what to do next.

A page that cannot be rendered (a broken template, a missing catalogue) still gets an answer in
plain text, so the handler of an error never raises another.
"""

from __future__ import annotations

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

logger = logging.getLogger(__name__)

_PAGES: dict[int, tuple[str | Promise, str | Promise]] = {
    400: (
        _("The server did not understand this request"),
        _("Check the address, or go back and try again."),
    ),
    403: (
        _("You may not open this"),
        _("It belongs to someone else, or the request came from another site."),
    ),
    404: (
        _("There is nothing at this address"),
        _("The link may be old or misspelled. The labs are one click away."),
    ),
    500: (
        _("The server made a mistake"),
        _("It has been written to the log. Try again; your runs are safe."),
    ),
}


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _page(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return _page(request, 500)


def _page(request: HttpRequest, status: int) -> HttpResponse:
    title, advice = _PAGES[status]
    context: dict[str, Any] = {"status": status, "heading": title, "advice": advice}
    try:
        return render(request, "web/error.html", context, status=status)
    except Exception:
        logger.exception("the page for status %d could not be rendered", status)
        text = f"{title}\n{advice}\n"
        return HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")
