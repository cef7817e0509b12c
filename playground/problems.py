"""Errors of the API: one shape, `application/problem+json` (RFC 9457), for every way to fail.

The codes and their words: `playground.problem_codes`.
"""

from __future__ import annotations

import json
import logging
import random
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.translation import get_language

from compute.core.errors import InvalidParams, Problem
from compute.core.texts import Text
from playground import logs
from playground.problem_codes import PROBLEMS

log = logging.getLogger(__name__)
access = logging.getLogger("playground.access")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
CONTENT_TYPE = "application/problem+json"


# For answers that Django or ninja made on their own: which code says the same.
_BY_STATUS = {
    400: "bad_request",
    401: "not_signed_in",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "not_json",
    422: "invalid_request",
    500: "internal",
    503: "store_unavailable",
}
MISSING = Text("This field is missing.", "缺少此字段。")
UNKNOWN = Text("There is no such field.", "没有此字段。")
NOT_VALID = Text("This value is not valid.", "此值无效。")
_OBJECT = Text("Give a JSON object: names and values.", "应是一个 JSON 对象（名称和值）。")
_WHOLE = Text("Give a whole number.", "请填整数。")
# Pydantic's types of error, of those that our bodies and queries can meet; `{…}` is their context.
_VALIDATION = {
    "missing": MISSING,
    "extra_forbidden": UNKNOWN,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "string_type": Text("Give text.", "请填文本。"),
    "string_too_long": Text("Give at most {max_length} characters.", "最多 {max_length} 个字符。"),
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "greater_than_equal": Text("Give at least {ge}.", "不能小于 {ge}。"),
    "less_than_equal": Text("Give at most {le}.", "不能大于 {le}。"),
    "literal_error": Text("Give one of these: {expected}.", "请从中选一个：{expected}。"),
}


class ApiProblem(Exception):
    """Raised by a view; becomes the response. `words` fill the code's detail."""

    def __init__(
        self,
        code: str,
        *,
        errors: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
        **words: object,
    ) -> None:
        self.code, self.errors, self.words = code, list(errors), words
        self.headers = dict(headers or {})
        super().__init__(code)


def language() -> str:
    return get_language() or "en"


def body(
    code: str,
    *,
    lang: str,
    instance: str,
    request_id: str,
    errors: Iterable[Problem] = (),
    **words: object,
) -> dict[str, Any]:
    """The JSON object of a problem."""
    spec = PROBLEMS[code]
    listed = []
    for error in errors:
        item: dict[str, Any] = {"pointer": error.pointer, "detail": error.text.get(lang)}
        if error.nearest is not None:
            item["nearest"] = error.nearest
        listed.append(item)
    return {
        "type": f"/problems/{code}",
        "title": spec.title.get(lang),
        "status": spec.status,
        "detail": spec.detail.format(**words).get(lang),
        "instance": instance,
        "code": code,
        "errors": listed,
        "request_id": request_id,
    }


def response(
    request: HttpRequest,
    code: str,
    *,
    errors: Iterable[Problem] = (),
    headers: Mapping[str, str] | None = None,
    **words: object,
) -> HttpResponse:
    content = body(
        code,
        lang=language(),
        instance=request.path,
        request_id=request_id(request),
        errors=errors,
        **words,
    )
    answer = HttpResponse(
        json.dumps(content, ensure_ascii=False, allow_nan=False),
        content_type=CONTENT_TYPE,
        status=content["status"],
    )
    answer["Cache-Control"] = "no-store"
    if content["status"] in (429, 503):
        answer["Retry-After"] = str(jittered(1))
    for name, value in (headers or {}).items():
        answer[name] = value
    return answer


def jittered(seconds: int) -> int:
    """`seconds` or up to four more: those who were turned away together come back apart."""
    return seconds + random.randint(0, 4)


def from_exception(request: HttpRequest, problem: ApiProblem) -> HttpResponse:
    return response(
        request, problem.code, errors=problem.errors, headers=problem.headers, **problem.words
    )


def invalid_params(error: InvalidParams, *, prefix: str) -> ApiProblem:
    """Pointers of params, moved to where the params stand in the request's body."""
    errors = [Problem(f"{prefix}{p.pointer}", p.text, p.nearest) for p in error.problems]
    return ApiProblem("invalid_params", errors=errors, all=error.text)


def from_validation(found: list[dict[str, Any]]) -> ApiProblem:
    """ninja's list of what is wrong with a body, a path or a query."""
    errors = []
    for item in found:
        where = [str(part) for part in item.get("loc", ())]
        # ("body", name of the argument, field…) or ("query", field)
        parts = where[2:] if where[:1] == ["body"] else where[1:]
        words = _VALIDATION.get(item.get("type", ""), NOT_VALID)
        context = {name: str(value) for name, value in item.get("ctx", {}).items()}
        if "expected" in context:  # "'cancel', 'pause' or 'set'"
            context["expected"] = context["expected"].replace("'", "").replace(" or ", ", ")
        text = words.format(**context)
        errors.append(Problem("".join(f"/{part}" for part in parts), text))
    return ApiProblem("invalid_request", errors=errors)


def request_id(request: HttpRequest) -> str:
    """Names the request in the answer and in the log: as the client calls it in `X-Request-ID`,
    where that is a plain word, else a name of our own."""
    known = getattr(request, "request_id", None)
    if known is None:
        given = request.headers.get("X-Request-ID", "")
        known = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        request.request_id = known  # type: ignore[attr-defined]
    return str(known)


def is_api(path: str) -> bool:
    return path.startswith("/api/")


def unknown_address(request: HttpRequest, rest: str = "") -> HttpResponse:
    """The view of every address under /api/ that isn't one."""
    return response(request, "not_found")


def _finish(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    """Gives every failed answer under /api/ the one shape, whoever made it."""
    kind = answer.headers.get("Content-Type", "")
    if is_api(request.path) and answer.status_code >= 400 and not kind.startswith(CONTENT_TYPE):
        code = _BY_STATUS.get(answer.status_code, "bad_request")
        kept = {k: v for k, v in answer.headers.items() if k in ("Allow", "Retry-After")}
        answer = response(request, code, headers=kept, method=request.method)
    answer.headers["X-Request-ID"] = request_id(request)
    return answer


@sync_and_async_middleware
def problem_middleware(get_response: Callable[[HttpRequest], Any]) -> Callable[..., Any]:
    if iscoroutinefunction(get_response):
        awaited: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def middleware(request: HttpRequest) -> HttpResponseBase:
            with logs.about(request_id=request_id(request)):
                started = time.monotonic()
                return _told(request, _finish(request, await awaited(request)), started)

        return middleware

    def sync_middleware(request: HttpRequest) -> HttpResponseBase:
        with logs.about(request_id=request_id(request)):
            started = time.monotonic()
            return _told(request, _finish(request, get_response(request)), started)

    return sync_middleware


def _told(request: HttpRequest, answer: HttpResponseBase, started: float) -> HttpResponseBase:
    """The log of the API's writes, refused ones too. Reads are too many to be worth a line."""
    if is_api(request.path) and request.method not in ("GET", "HEAD", "OPTIONS"):
        where = quote(request.path[:200])
        milliseconds = 1000 * (time.monotonic() - started)
        access.info("%s %s %s %.0f ms", request.method, where, answer.status_code, milliseconds)
    return answer


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400 and its like: Django's own refusals, for the API here, for pages by the shell."""
    from playground.web import errors

    return response(request, "bad_request") if is_api(request.path) else errors.bad_request(request)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    from playground.web import errors

    return response(request, "forbidden") if is_api(request.path) else errors.forbidden(request)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    from playground.web import errors

    return response(request, "not_found") if is_api(request.path) else errors.not_found(request)


def server_error(request: HttpRequest) -> HttpResponse:
    from playground.web import errors

    return response(request, "internal") if is_api(request.path) else errors.server_error(request)
