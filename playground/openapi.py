"""The OpenAPI document: what ninja knows of each operation, and what only its author knows.

`OPERATIONS` says for each view what it answers, which headers it reads and how it can fail; a view
that is missing there is an error when the document is made.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from playground import shapes
from playground.problem_codes import PROBLEMS
from playground.problems import CONTENT_TYPE, body

JSON = "application/json"
REF = "#/components/schemas/{model}"
BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
EVENT_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}

# What can befall any request, and any with a body.
ALWAYS = (
    "bad_request token_needed not_signed_in foreign_host foreign_origin forwarded scope_needed "
    "too_many_requests internal store_unavailable"
)
WRITE = "not_json"
BODY = "invalid_json too_large not_json invalid_request"

SENT = {  # headers of requests
    "Idempotency-Key": ("The same key and body again get the first answer, for a day.", "4f1c-77"),
    "Prefer": ("wait=N: answer when it has ended, N seconds at most, N up to 10.", "wait=10"),
    "Cancel-After": ("End it if it is not over by then: seconds, or 90s, 5m, 2h.", "5m"),
    "If-None-Match": ("The ETag that you have: 304 if it is still the same.", '"abc"'),
    "Last-Event-ID": ("Of a stream: the last event that you have; wins over `after`.", "1-42"),
    "Range": ("bytes=a-b, bytes=a- or bytes=-n: one part of the file.", "bytes=0-7"),
    "If-Range": ("The ETag that the part must belong to.", '"abc"'),
}
GOT = {  # headers of answers
    "Location": "Where the new thing is.",
    "ETag": "Names this version of it.",
    "Link": 'RFC 8288: rel="next" and rel="prev", where there are such pages.',
    "Preference-Applied": "What was made of `Prefer`.",
    "Idempotent-Replayed": "true: this is the first answer, said again.",
    "Retry-After": "Seconds to wait before another try.",
    "X-Request-ID": "Names the request in the log.",
    "RateLimit": "What is left of the limit; only where there is one.",
    "RateLimit-Policy": "The limit; only where there is one.",
    "Content-Range": "Which part it is, of how many bytes.",
    "WWW-Authenticate": "How to show who you are.",
}
WORDS: dict[str, Any] = {  # that fill the examples of problems
    "all": "This value is not valid.",
    "why": "This is not a text.",
    "scope": "submit",
    "used_mb": 4096,
    "limit_mb": 4096,
    "limit": 120,
    "waiting": 200,
    "wait_s": 3,
    "kind": "transformer.tain",
    "got": "succeeded",
    "action": "pause",
    "expected": "starting, running or paused",
    "allowed": "cancel",
    "state": "running",
    "jobs": "01m8qa988yrt842eah4b",
    "size": 1024,
    "seconds": 30,
    "method": "PUT",
}
COMMON = ("X-Request-ID", "RateLimit", "RateLimit-Policy")


class Answer(NamedTuple):
    shape: type[BaseModel] | None = None
    headers: str = ""
    more: Mapping[str, Any] = {}  # other types of content


class Told(NamedTuple):
    """One operation: its answers by status, headers that it reads, codes of its problems."""

    answers: Mapping[int, Answer]
    fails: str = ""
    reads: str = ""


FILE_FAILS = "job_not_found artifact_not_found range_not_satisfiable"
FILE_HEADERS = "ETag"
OPERATIONS: Mapping[str, Told] = {
    "create_job": Told(
        {
            status: Answer(shapes.Job, "Location Preference-Applied Idempotent-Replayed")
            for status in (200, 202)
        },
        f"{BODY} invalid_params unknown_kind quota_exceeded too_many_waiting job_not_found "
        "idempotency_in_progress idempotency_mismatch",
        "Idempotency-Key Prefer Cancel-After",
    ),
    "list_jobs": Told({200: Answer(shapes.Jobs, "Link")}, "invalid_request"),
    "get_job": Told(
        {200: Answer(shapes.Job, "ETag"), 304: Answer(headers="ETag")},
        "job_not_found",
        "If-None-Match",
    ),
    "control_job": Told(
        {200: Answer(shapes.Job), 202: Answer(shapes.Job)},
        f"{BODY} job_not_found invalid_params illegal_state control_not_offered",
    ),
    "cancel_job": Told(
        {200: Answer(shapes.Job), 202: Answer(shapes.Job)}, f"{WRITE} job_not_found"
    ),
    "delete_job": Told({204: Answer()}, f"{WRITE} job_not_found not_ended"),
    "get_events": Told(
        {200: Answer(shapes.Events, "Link", EVENT_STREAM), 204: Answer()},
        "job_not_found invalid_request not_acceptable",
        "Last-Event-ID",
    ),
    "list_artifacts": Told({200: Answer(shapes.Artifacts)}, "job_not_found"),
    "get_artifact": Told(
        {
            200: Answer(None, FILE_HEADERS, BINARY),
            206: Answer(None, f"{FILE_HEADERS} Content-Range", BINARY),
            304: Answer(None, FILE_HEADERS),
        },
        FILE_FAILS,
        "Range If-Range If-None-Match",
    ),
    "head_artifact": Told(
        {200: Answer(None, FILE_HEADERS), 206: Answer(), 304: Answer()},
        FILE_FAILS,
        "Range If-Range If-None-Match",
    ),
    "list_kinds": Told({200: Answer(shapes.Kinds)}),
    "get_kind": Told({200: Answer(shapes.Kind)}, "kind_not_found"),
    "get_queue": Told({200: Answer(shapes.Queues)}),
    "get_quota": Told({200: Answer(shapes.Quota)}),
    "create_upload": Told(
        {201: Answer(shapes.Upload, "Location")},
        "header_needed not_multipart invalid_request upload_too_large upload_refused "
        "upload_stalled quota_exceeded no_space",
    ),
    "list_uploads": Told({200: Answer(shapes.Uploads, "Link")}, "invalid_request"),
    "get_upload": Told({200: Answer(shapes.Upload)}, "upload_not_found"),
    "delete_upload": Told({204: Answer()}, f"{WRITE} upload_not_found upload_in_use"),
    "create_token": Told({201: Answer(shapes.NewToken)}, BODY),
    "list_tokens": Told({200: Answer(shapes.Tokens)}),
    "revoke_token": Told({204: Answer()}, f"{WRITE} token_not_found"),
}


class Api(NinjaAPI):
    """ninja's, with a document that says all there is."""

    def get_openapi_operation_id(self, operation: Any) -> str:
        """The view's name: it stays when modules move."""
        return str(operation.view_func.__name__)

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**options)
        for methods in document["paths"].values():
            if "head" in methods:  # ninja lets several methods share one description
                methods["head"] = copy.deepcopy(methods["head"])
                methods["head"]["operationId"] = methods["head"]["operationId"].replace(
                    "get", "head"
                )
            for operation in methods.values():
                _complete(operation)
        components = document["components"]
        components["schemas"].update(_schemas())
        components["headers"] = {name: _text(words) for name, words in GOT.items()}
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "pg_…, or LOCAL_TOKEN's."},
            "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
        }
        # Local mode asks for neither; a server with accounts for one of them.
        document["security"] = [{"token": []}, {"session": []}, {}]
        return document


def _complete(operation: dict[str, Any]) -> None:
    told = OPERATIONS[operation["operationId"]]
    for name in told.reads.split():
        words, example = SENT[name]
        operation["parameters"].append(
            {"in": "header", "name": name, "required": False, "example": example} | _text(words)
        )
    answers = {str(status): _answer(status, told.answers[status]) for status in told.answers}
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(f"{ALWAYS} {told.fails}".split()):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    for status in sorted(by_status):
        answers[str(status)] = _failure(status, by_status[status])
    operation["responses"] = answers


def _answer(status: int, answer: Answer) -> dict[str, Any]:
    content = dict(answer.more)
    if answer.shape is not None:
        content[JSON] = {"schema": {"$ref": REF.format(model=answer.shape.__name__)}}
    described = {
        "description": HTTPStatus(status).phrase,
        "headers": _headers(*answer.headers.split(), *COMMON),
    }
    return described | ({"content": content} if content else {})


def _failure(status: int, codes: list[str]) -> dict[str, Any]:
    extra = ("Retry-After",) if status in (409, 429, 503) else ()
    if status == 401:
        extra = ("WWW-Authenticate",)
    examples = {
        code: {
            "value": body(
                code, lang="en", instance="/api/v1/…", request_id="55e5f0c1a9b0c2d4", **WORDS
            )
        }
        for code in codes
    }
    return {
        "description": " · ".join(PROBLEMS[code].title.get("en") for code in codes),
        "headers": _headers(*extra, *COMMON),
        "content": {
            CONTENT_TYPE: {"schema": {"$ref": REF.format(model="Problem")}, "examples": examples}
        },
    }


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _text(words: str) -> dict[str, Any]:
    return {"description": words, "schema": {"type": "string"}}


def _schemas() -> dict[str, Any]:
    """Of every shape, by its name."""
    found = {told.shape for each in OPERATIONS.values() for told in each.answers.values()}
    models = sorted((m for m in {*found, shapes.Problem} if m), key=lambda m: m.__name__)
    _, made = models_json_schema(
        [(model, "serialization") for model in models], ref_template=REF, by_alias=True
    )
    return dict(made["$defs"])
