"""Odd requests at every operation of the OpenAPI document: no 5xx, one shape of error, and answers
that are as the document says (status, type of content, headers, schema)."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from playground.api import api
from tests.playground.client import Client, problem_shape
from tests.stack import Stack

DOCUMENT = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
REAL: dict[str, str] = {}  # path parameters that lead somewhere
FEW = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=400, derandomize=False)

schema = schemathesis.openapi.from_dict(DOCUMENT)
schema.config.generation.update(modes=list(GenerationMode))


def _even(value: Any) -> bool:
    return zlib.crc32(repr(value).encode()) % 2 == 0


@schema.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Half of them lead to a job that is there."""
    if isinstance(path_parameters, dict) and _even(path_parameters):
        return {name: REAL.get(name, value) for name, value in path_parameters.items()}
    return path_parameters


@schema.hook
def map_body(context: Any, body: Any) -> Any:
    """Half of the jobs are of a kind that there is."""
    if isinstance(body, dict) and isinstance(body.get("kind"), str) and _even(body):
        return {**body, "kind": "pipe.echo"}
    return body


@pytest.fixture(scope="module")
def url(stack: Stack) -> str:
    job = Client(stack).submit("pipe.train", wait=10, steps=1, wait_ms=0)
    REAL["job_id"] = job["id"]
    return stack.url


def ask(case: Case, url: str) -> None:
    """Sends it, as this machine's own scripts would."""
    if isinstance(case.body, dict) and case.body.get("kind") == "transformer.train":
        case.body["kind"] = "pipe.echo"  # the document's example, but done at once
    answer = case.call(base_url=url, timeout=30)
    case.validate_response(answer, checks=CHECKS)
    if answer.status_code >= 400 and case.method != "HEAD":
        assert answer.headers["content-type"] == ["application/problem+json"]
        problem_shape(answer.json())


def test_the_document_is_valid() -> None:
    schema.validate()


def test_operation_ids_are_unique() -> None:
    ids = [o["operationId"] for found in DOCUMENT["paths"].values() for o in found.values()]
    assert len(ids) == len(set(ids))


@schema.parametrize()
@FEW
def test_odd_requests(case: Case, url: str) -> None:
    ask(case, url)


@pytest.mark.slow
@schema.parametrize()
@MANY
def test_many_odd_requests(case: Case, url: str) -> None:
    ask(case, url)
