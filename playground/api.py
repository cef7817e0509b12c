"""Assembles the REST API under `/api/v1/`: routers, and one shape for all that goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import Error as DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import HttpError, ValidationError

from compute.core.errors import InvalidParams, Problem, UnknownKind
from compute.core.texts import Text
from playground import problems, redis
from playground.accounts.api import router as tokens_router
from playground.accounts.owner import NotSignedIn, ScopeNeeded
from playground.jobs import queries, service, states, uploads
from playground.jobs.api import router as jobs
from playground.jobs.uploads_api import router as uploads_router
from playground.openapi import Api
from playground.problems import ApiProblem

log = logging.getLogger(__name__)

api = Api(
    title="Playground",
    version="1",
    description="Each computation is a job that emits events. Errors: application/problem+json.",
    urls_namespace="api",
)
api.add_router("", jobs)
api.add_router("", uploads_router)
api.add_router("", tokens_router)


def _translate(error: Exception) -> ApiProblem:
    """Any exception out of a view as the problem that it means."""
    if isinstance(error, ApiProblem):
        return error
    if isinstance(error, InvalidParams):
        return problems.invalid_params(error, prefix="/params")
    if isinstance(error, UnknownKind):
        nearest = error.nearest or None
        return ApiProblem(
            "unknown_kind", errors=[Problem("/kind", error.text, nearest)], all=error.text
        )
    if isinstance(error, ValidationError):
        return problems.from_validation(error.errors)
    if isinstance(error, uploads.NoSuchUpload):
        return ApiProblem("upload_not_found")
    if isinstance(error, queries.NoSuchJob):
        return ApiProblem("job_not_found")
    if isinstance(error, states.IllegalMove):
        expected = _one_of(error.expected)
        return ApiProblem("illegal_state", action=error.to, got=error.got, expected=expected)
    if isinstance(error, service.NotAllowed):
        return ApiProblem("control_not_offered", allowed=", ".join(error.allowed))
    if isinstance(error, service.NotEnded):
        return ApiProblem("not_ended", state=str(error))
    if isinstance(error, NotSignedIn):
        return ApiProblem("not_signed_in", headers={"WWW-Authenticate": "Bearer"})
    if isinstance(error, ScopeNeeded):
        return ApiProblem("scope_needed", scope=error.scope)
    if isinstance(error, RequestDataTooBig):
        return ApiProblem("too_large")
    if isinstance(error, Http404):
        return ApiProblem("not_found")
    if isinstance(error, HttpError):
        # ninja's own: a body that it can't parse
        return ApiProblem("invalid_json" if error.status_code == 400 else "bad_request")
    if isinstance(error, redis.RedisError | DatabaseError):
        log.warning("a store does not answer: %s", error)
        return ApiProblem("store_unavailable")
    log.error("unhandled", exc_info=error)
    return ApiProblem("internal")


def _one_of(found: Sequence[str]) -> Text:
    """States as a sentence has them, in the order of a job's life."""
    *most, last = sorted(found, key=lambda s: states.STATES.index(s) if s in states.STATES else -1)
    english = f"{', '.join(most)} or {last}" if most else last
    return Text(english, "、".join([*most, last]))


def _handle(request: HttpRequest, error: Any) -> HttpResponse:
    return problems.from_exception(request, _translate(error))


for _kind in (Exception, ValidationError, HttpError, Http404):
    api.add_exception_handler(_kind, _handle)
