"""Server mode is closed unless a view says otherwise: pages ask for a sign-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest
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
