"""Server mode is closed unless a view says otherwise: pages ask for a sign-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase

from playground.problems import is_api

OPEN = ("/healthz", "/metrics", "/docs/", "/i18n/")  # say nothing private, or ask on their own


class SignInFirst(LoginRequiredMiddleware):
    """Sends visitors of a page to the sign-in. The API answers 401 by itself."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if is_api(request.path) or request.path == "/" or request.path.startswith(OPEN):
            return None
        return super().process_view(request, view, args, kwargs)

    def handle_no_permission(
        self, request: HttpRequest, view: Callable[..., Any]
    ) -> HttpResponseRedirect:
        """What a form sent is lost, and its address may have no page: then back to the start."""
        if request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view)
        return HttpResponseRedirect(settings.LOGIN_URL)
