"""Errors of the API: one shape, `application/problem+json` (RFC 9457), for every way to fail.

`PROBLEMS` is the list of codes; what a person reads is in their language.
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
from typing import Any, NamedTuple
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.translation import get_language

from compute.core.errors import InvalidParams, Problem
from compute.core.texts import Text
from playground import logs

log = logging.getLogger(__name__)
access = logging.getLogger("playground.access")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
CONTENT_TYPE = "application/problem+json"


class Spec(NamedTuple):
    status: int
    title: Text
    detail: Text


def _spec(status: int, title: tuple[str, str], detail: tuple[str, str]) -> Spec:
    return Spec(status, Text(*title), Text(*detail))


PROBLEMS: Mapping[str, Spec] = {
    "bad_request": _spec(
        400, ("Bad request", "请求有误"), ("The request can't be read.", "无法读取该请求。")
    ),
    "invalid_json": _spec(
        400, ("Not JSON", "不是 JSON"), ("The body is not valid JSON.", "请求体不是有效的 JSON。")
    ),
    "token_needed": _spec(
        401,
        ("Token needed", "需要令牌"),
        ("Open the address that the start printed.", "请打开启动时打印的地址。"),
    ),
    "not_signed_in": _spec(
        401,
        ("Not signed in", "未登录"),
        (
            "Sign in on the site, or send Authorization: Bearer with a token that is valid.",
            "请在网站上登录，或带上 Authorization: Bearer 和有效的令牌。",
        ),
    ),
    "foreign_host": _spec(
        403,
        ("Foreign host", "主机名不符"),
        (
            "Local mode answers at 127.0.0.1, localhost and [::1] with its port only.",
            "本地模式只在 127.0.0.1、localhost 和 [::1] 的本端口上应答。",
        ),
    ),
    "foreign_origin": _spec(
        403,
        ("Foreign origin", "来源不符"),
        ("This request comes from another site.", "该请求来自其他站点。"),
    ),
    "forwarded": _spec(
        403,
        ("Forwarded request", "经转发的请求"),
        (
            "Local mode refuses requests that came through a proxy. Use server mode for that.",
            "本地模式拒绝经代理转发的请求；请改用服务器模式。",
        ),
    ),
    "scope_needed": _spec(
        403,
        ("Scope needed", "权限不足"),
        (
            'This token lacks the scope "{scope}".',
            "这个令牌没有“{scope}”权限。",
        ),
    ),
    "forbidden": _spec(403, ("Forbidden", "禁止访问"), ("You may not do this.", "你无权这样做。")),
    "quota_exceeded": _spec(
        403,
        ("Quota used up", "配额已用完"),
        (
            "Your files take {used_mb} MB; the limit is {limit_mb} MB. Delete old runs or uploads.",
            "你的文件占用 {used_mb} MB，上限为 {limit_mb} MB。请删除旧的运行或上传文件。",
        ),
    ),
    "header_needed": _spec(
        403,
        ("Header needed", "缺少请求头"),
        (
            "Send the header X-Playground: 1 with an upload.",
            "上传时请带上请求头 X-Playground: 1。",
        ),
    ),
    "not_found": _spec(
        404, ("Not found", "未找到"), ("There is nothing at this address.", "此地址没有内容。")
    ),
    "job_not_found": _spec(
        404,
        ("No such job", "没有此任务"),
        ("You have no job with this id.", "你没有这个编号的任务。"),
    ),
    "artifact_not_found": _spec(
        404,
        ("No such file", "没有此文件"),
        ("The job has not made a file of this name.", "该任务没有产生这个名称的文件。"),
    ),
    "token_not_found": _spec(
        404,
        ("No such token", "没有此令牌"),
        ("You have no token with this id.", "你没有这个编号的令牌。"),
    ),
    "upload_not_found": _spec(
        404,
        ("No such upload", "没有此上传文件"),
        ("You have no uploaded file with this id.", "你没有这个编号的上传文件。"),
    ),
    "kind_not_found": _spec(
        404,
        ("No such kind", "没有此类型"),
        ('There is no kind "{kind}".', "没有名为“{kind}”的任务类型。"),
    ),
    "method_not_allowed": _spec(
        405,
        ("Method not allowed", "方法不允许"),
        ("This address does not take {method}.", "此地址不接受 {method}。"),
    ),
    "not_acceptable": _spec(
        406,
        ("Not acceptable", "无法按要求返回"),
        (
            "Ask for application/json or text/event-stream.",
            "请接受 JSON 或 text/event-stream。",
        ),
    ),
    "upload_stalled": _spec(
        408,
        ("Upload stalled", "上传中断"),
        (
            "Nothing came for {seconds} seconds, so the upload was ended. Send it again.",
            "{seconds} 秒没有收到数据，上传已中断，请重新上传。",
        ),
    ),
    "illegal_state": _spec(
        409,
        ("Wrong state", "状态不符"),
        (
            "The job is {got}; {action} has a use only while it is {expected}.",
            "任务处于 {got}；只有处于 {expected} 时才能 {action}。",
        ),
    ),
    "control_not_offered": _spec(
        409,
        ("No such control", "没有此控制"),
        ("This kind takes only: {allowed}.", "此类任务只接受：{allowed}。"),
    ),
    "not_ended": _spec(
        409,
        ("Not ended", "尚未结束"),
        ("The job is {state}. Cancel it first.", "任务处于 {state}，请先取消。"),
    ),
    "idempotency_in_progress": _spec(
        409,
        ("Still being answered", "仍在处理"),
        (
            "The first request with this Idempotency-Key is still being answered.",
            "使用这个 Idempotency-Key 的第一个请求仍在处理中。",
        ),
    ),
    "upload_in_use": _spec(
        409,
        ("In use", "正在使用"),
        (
            "Jobs that have not ended need this file: {jobs}. Cancel them or wait, then delete it.",
            "还有未结束的任务需要这个文件：{jobs}。请取消或等它们结束，再删除。",
        ),
    ),
    "too_large": _spec(413, ("Too large", "过大"), ("The body is over 1 MB.", "请求体超过 1 MB。")),
    "upload_too_large": _spec(413, ("File too large", "文件过大"), ("{why}", "{why}")),
    "not_json": _spec(
        415,
        ("JSON only", "只收 JSON"),
        (
            "Send writes with Content-Type: application/json.",
            "写入请求须带 Content-Type: application/json。",
        ),
    ),
    "not_multipart": _spec(
        415,
        ("Not multipart", "不是 multipart"),
        (
            "Send the file as multipart/form-data, in a field named file.",
            "请以 multipart/form-data 发送文件，字段名为 file。",
        ),
    ),
    "range_not_satisfiable": _spec(
        416,
        ("Range not satisfiable", "范围无效"),
        ("The file has {size} bytes.", "该文件有 {size} 字节。"),
    ),
    "invalid_request": _spec(
        422, ("Invalid request", "请求无效"), ("Some values are not valid.", "有些值无效。")
    ),
    "invalid_params": _spec(422, ("Invalid parameters", "参数无效"), ("{all}", "{all}")),
    "idempotency_mismatch": _spec(
        422,
        ("Key used before", "幂等键已用过"),
        (
            "This Idempotency-Key was used for another request. Take a new key for a new request.",
            "这个 Idempotency-Key 已用于另一个请求；新的请求请换一个新键。",
        ),
    ),
    "upload_refused": _spec(422, ("File refused", "文件不能用"), ("{why}", "{why}")),
    "unknown_kind": _spec(422, ("Unknown kind", "未知类型"), ("{all}", "{all}")),
    "too_many_requests": _spec(
        429,
        ("Too many requests", "请求过多"),
        (
            "At most {limit} of these requests a minute. Go on in {wait_s} s.",
            "这类请求每分钟最多 {limit} 次，请在 {wait_s} 秒后继续。",
        ),
    ),
    "too_many_waiting": _spec(
        429,
        ("Too many waiting", "排队过多"),
        (
            "{waiting} of your jobs wait already; {limit} may. Wait for some to start.",
            "你已有 {waiting} 个任务在排队，最多 {limit} 个。请等一些任务开始后再提交。",
        ),
    ),
    "internal": _spec(
        500,
        ("Internal error", "内部错误"),
        ("The server made a mistake; it is in the log.", "服务器出错，已记入日志。"),
    ),
    "store_unavailable": _spec(
        503,
        ("Store unavailable", "存储不可用"),
        ("A store does not answer. Try again in a moment.", "存储暂无应答，请稍后再试。"),
    ),
    "no_space": _spec(
        507,
        ("Disk full", "磁盘已满"),
        (
            "The server's disk is full. Tell whoever runs it.",
            "服务器磁盘已满，请告知管理员。",
        ),
    ),
}
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
