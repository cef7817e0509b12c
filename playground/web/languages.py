"""The site's two languages, their names in each notation, and how a request chooses one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation

LANGUAGES = {"en": "English", "zh-hans": "简体中文"}
_HTML_CODES = {"en": "en", "zh-hans": "zh-Hans"}
_YEAR_S = 365 * 24 * 3600


def html_code(code: str) -> str:
    """`zh-hans` → `zh-Hans`; anything unknown is English."""
    return _HTML_CODES.get(code, "en")


def switch_url(request: HttpRequest, code: str) -> str:
    """The present address in another language; everything else in the query string stays."""
    query = request.GET.copy()
    query["lang"] = code
    return f"{request.path}?{query.urlencode()}"


class LanguageInAddress:
    """Middleware, after LocaleMiddleware: `?lang=zh-hans` wins and is remembered in the cookie.

    A shared link thus opens in the language it was shared in. Unknown values change nothing.
    """

    sync_capable = True
    async_capable = True

    def __init__(
        self, get_response: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]
    ) -> None:
        self.get_response = get_response
        self.later = iscoroutinefunction(get_response)
        if self.later:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        code = request.GET.get("lang", "").lower()
        if self.later:
            return self._later(request, code)
        self._activate(request, code)
        response = self.get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _remember(response, code)

    async def _later(self, request: HttpRequest, code: str) -> HttpResponseBase:
        self._activate(request, code)
        waiting = self.get_response(request)
        assert isinstance(waiting, Awaitable)
        return _remember(await waiting, code)

    def _activate(self, request: HttpRequest, code: str) -> None:
        if code in LANGUAGES:
            translation.activate(code)
            request.LANGUAGE_CODE = code


def _remember(response: HttpResponseBase, code: str) -> HttpResponseBase:
    if code in LANGUAGES:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME, code, max_age=_YEAR_S, samesite="Lax", httponly=False
        )
        response.headers["Content-Language"] = html_code(code)
    return response
