"""REST: jobs, events, artifacts, kinds, queues. Thin: reads in `queries`, writes in `service`."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from compute.core import kinds
from compute.core.errors import InvalidParams, Problem, UnknownKind
from compute.core.texts import Text, shorten
from playground.accounts.owner import current_actor, current_owner_id
from playground.jobs import (
    database,
    files,
    history,
    idempotency,
    pages,
    places,
    queries,
    quota,
    service,
    sse,
    states,
)
from playground.jobs.asked import asked
from playground.jobs.follow import follow
from playground.jobs.hub import hub
from playground.jobs.ids import EVENT_ID, START
from playground.jobs.models import Job
from playground.problems import ApiProblem, language, request_id

router = Router(tags=["jobs"])
MAX_WAIT_S = 10
BAD_CURSOR = Text("This is not a cursor of this list.", "这不是此列表的游标。")
NO_CHOICE = Text(
    '"{value}" is none of the choices: {choices}.', "“{value}”不在可选值之中：{choices}。"
)
BAD_EVENT_ID = Text("An event's id looks like 1-42.", "事件编号形如 1-42。")


# Nothing is read from it, but as every write it says that it is JSON.
NO_BODY = {"required": False, "content": {"application/json": {"schema": {"type": "object"}}}}


class JobIn(Schema):
    model_config = ConfigDict(extra="forbid")

    kind: str = Field(max_length=64, examples=["transformer.train"])
    params: dict[str, Any] = Field(default_factory=dict)
    group: int | None = Field(None, alias="class", description="A class that you are in.")
    start_at: str | None = Field(
        None, max_length=40, description="Not before this time, with its zone (RFC 3339)."
    )


class ControlIn(Schema):
    model_config = ConfigDict(extra="forbid")

    action: Literal["cancel", "pause", "resume", "step", "set"]
    values: dict[str, Any] | None = None


@router.post("jobs", summary="Submit a job")
async def create_job(request: HttpRequest, payload: JobIn) -> HttpResponse:
    """202 with the queued job. With `Prefer: wait=N` (at most 10) the answer waits up to N
    seconds for the end and is 200 if it saw it. With an `Idempotency-Key` the same request may be
    sent again: it gets the first answer. `Cancel-After: 5m` ends the job if it isn't over by then.
    """
    prefer = request.headers.get("Prefer", "")
    wait_s = preferred_wait(prefer)
    content, known, replayed = await database.call(_submit, request, payload)
    if replayed is not None:
        return replayed
    ended = False
    try:
        if wait_s:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await _until_end(content["id"])
                    ended = True
            content = await database.call(_shown, request, content["id"])
    finally:  # also when the client has gone away: it may ask again
        answer = _json(content, status=200 if ended else 202)
        answer["Location"] = content["urls"]["self"]
        applied = [f"wait={wait_s}"] if wait_s else []
        if re.search(r"(?:^|[,;\s])respond-async(?:$|[,;\s])", prefer) and not ended:
            applied.insert(0, "respond-async")
        if applied:
            answer["Preference-Applied"] = ", ".join(applied)
        if known is not None:
            await asyncio.shield(database.call(idempotency.remember, known, answer))
    return answer


@router.get("jobs", summary="List jobs, newest first")
def list_jobs(
    request: HttpRequest,
    kind: str = "",
    state: str = "",
    group: int | None = Query(None, alias="class", ge=1, lt=2**63),  # type: ignore[type-arg]
    cursor: str = "",
    limit: int = Query(50, ge=1, le=200),  # type: ignore[type-arg]
) -> HttpResponse:
    owner_id = current_owner_id(request)
    _refuse_unknown("state", state, states.STATES)
    _refuse_unknown("kind", kind, [known.name for known in kinds.all_kinds()])
    try:
        page = queries.jobs(
            owner_id=owner_id, kind=kind, state=state, group=group, cursor=cursor, limit=limit
        )
    except ValueError as error:
        problem = Problem("/cursor", BAD_CURSOR)
        raise ApiProblem("invalid_request", errors=[problem]) from error
    items = queries.with_places(page.items, lang=language())
    return pages.listed(request, items, next=page.next, prev=page.prev)


@router.get("jobs/{job_id}", summary="One job, with ETag")
def get_job(request: HttpRequest, job_id: str) -> HttpResponse:
    answer = _json(_shown(request, job_id))
    etag = f'"{hashlib.sha256(answer.content).hexdigest()[:20]}"'
    known = request.headers.get("If-None-Match", "")
    if etag in [tag.strip().removeprefix("W/") for tag in known.split(",")]:
        answer = HttpResponse(status=304)
    answer["ETag"] = etag
    answer["Vary"] = "Accept-Language, Cookie"
    return answer


@router.post("jobs/{job_id}/control", summary="cancel, pause, resume, step or set")
def control_job(request: HttpRequest, job_id: str, payload: ControlIn) -> HttpResponse:
    """202: it is on its way to the job. A `control` event says when it took effect."""
    job = queries.job(owner_id=current_owner_id(request, scope="submit"), job_id=job_id)
    try:
        job = service.control(job=job, action=payload.action, values=payload.values)
    except InvalidParams as error:
        errors = [Problem(f"/values{p.pointer}", p.text, p.nearest) for p in error.problems]
        raise ApiProblem("invalid_params", errors=errors, all=error.text) from error
    return _json(_as_json(job), status=200 if job.ended else 202)


@router.post(
    "jobs/{job_id}/cancel",
    summary="Cancel; the same answer however often",
    openapi_extra={"requestBody": NO_BODY},
)
def cancel_job(request: HttpRequest, job_id: str) -> HttpResponse:
    job = queries.job(owner_id=current_owner_id(request, scope="submit"), job_id=job_id)
    job = service.cancel(job=job)
    return _json(_as_json(job), status=200 if job.ended else 202)


@router.delete("jobs/{job_id}", summary="Delete a job that has ended, with its files")
def delete_job(request: HttpRequest, job_id: str) -> HttpResponse:
    owner_id = current_owner_id(request, scope="submit")
    service.delete(job=queries.job(owner_id=owner_id, job_id=job_id))
    return HttpResponse(status=204)


@router.get("jobs/{job_id}/events", summary="Events: a JSON page, or text/event-stream")
async def get_events(
    request: HttpRequest,
    job_id: str,
    after: str = START,
    limit: int = Query(500, ge=1, le=5000),  # type: ignore[type-arg]
) -> HttpResponseBase:
    """`after` is the id of the last event you have. `next` is the `after` of the next page, null
    once the log has ended. As text/event-stream the live events follow; `Last-Event-ID` counts."""
    streaming = wants_stream(request.headers.get("Accept", "*/*"))
    if streaming:
        after = request.headers.get("Last-Event-ID") or after
    if EVENT_ID.fullmatch(after) is None:
        raise ApiProblem("invalid_request", errors=[Problem("/after", BAD_EVENT_ID)])
    job = await database.call(_job, request, job_id)
    if streaming:
        return await sse.response(hub(), job, after, current_actor(request))
    found = await history.read(hub().client, job_id, after, limit)
    following = found[-1].id if found else after
    over = found[-1].type == "end" if found else job.ended
    items = ",".join(entry.line for entry in found)
    next_, prev = None if over else following, None if after == START else START
    answer = HttpResponse(
        f'{{"items":[{items}],"next":{json.dumps(next_)},"prev":{json.dumps(prev)}}}',
        content_type="application/json",
    )
    pages.link(request, answer, "after", next=next_, prev=prev)
    return answer


@router.get("jobs/{job_id}/artifacts", summary="The files that the job has made")
def list_artifacts(request: HttpRequest, job_id: str) -> HttpResponse:
    job = queries.job(owner_id=current_owner_id(request), job_id=job_id)
    items = [
        {
            "name": row.name,
            "type": row.type,
            "size": row.size,
            "sha256": row.sha256,
            "attempt": row.attempt,
            "url": f"/api/v1/jobs/{job.pk}/artifacts/{row.name}",
        }
        for row in queries.artifacts(job.pk)
    ]
    return pages.listed(request, items)


@router.api_operation(
    ["GET", "HEAD"], "jobs/{job_id}/artifacts/{path:name}", summary="One file; HTTP Range"
)
async def get_artifact(request: HttpRequest, job_id: str, name: str) -> HttpResponseBase:
    owner_id = await database.call(current_owner_id, request)
    row = await database.call(queries.artifact, owner_id=owner_id, job_id=job_id, name=name)
    if row is None:
        raise ApiProblem("artifact_not_found")
    return await files.response(request, row)


@router.get("kinds", summary="Every kind of job", tags=["kinds"])
def list_kinds(request: HttpRequest) -> HttpResponse:
    return pages.listed(request, [kinds.json_schema(kind) for kind in kinds.all_kinds()])


@router.get("kinds/{name}", summary="A kind: params as JSON Schema, events, result", tags=["kinds"])
def get_kind(request: HttpRequest, name: str) -> HttpResponse:
    try:
        return _json(kinds.json_schema(kinds.get(name)))
    except UnknownKind as error:
        raise ApiProblem("kind_not_found", kind=name[:80]) from error


@router.get("queue", summary="Slots, who waits, and your place", tags=["queue"])
def get_queue(request: HttpRequest) -> HttpResponse:
    return _json({"queues": places.queues(owner_id=current_owner_id(request))})


@router.get("quota", summary="What you use, and your limits", tags=["queue"])
def get_quota(request: HttpRequest) -> HttpResponse:
    return pages.listed(request, quota.report(current_owner_id(request)))


def preferred_wait(header: str) -> int:
    """N out of `Prefer: wait=N`, at most ten; 0 without one."""
    match = re.search(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])", header)
    return min(MAX_WAIT_S, int(match[1])) if match else 0


def wants_stream(accept: str) -> bool:
    """Whether `Accept` asks for server-sent events. Raises the problem for what we can't give."""
    kinds_asked = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    if "text/event-stream" in kinds_asked:
        return True
    if {"application/json", "application/*", "*/*", ""} & set(kinds_asked):
        return False
    raise ApiProblem("not_acceptable")


def _refuse_unknown(name: str, value: str, choices: Sequence[str]) -> None:
    """A filter that matches nothing by its spelling would look like an empty list."""
    if value and value not in choices:
        near = difflib.get_close_matches(value, choices, n=3) or list(choices)
        words = NO_CHOICE.format(value=shorten(value), choices=", ".join(choices))
        raise ApiProblem("invalid_request", errors=[Problem(f"/{name}", words, near)])


async def _until_end(job_id: str) -> None:
    async with contextlib.aclosing(follow(hub(), job_id, START)) as all_news:
        async for _ in all_news:
            pass


def _submit(
    request: HttpRequest, payload: JobIn
) -> tuple[dict[str, Any], idempotency.Ticket | None, HttpResponse | None]:
    """The job; the key to remember the answer by; and, for a key that came before, that answer."""
    owner_id = current_owner_id(request, scope="submit")

    def submit() -> Job:
        # Looked at only the first time: a planned start may be over when a key comes again.
        wishes = asked(
            owner_id=owner_id,
            group=payload.group,
            start_at=payload.start_at,
            cancel_after=request.headers.get("Cancel-After", ""),
        )
        return service.submit(
            owner_id=owner_id,
            kind=payload.kind,
            params=payload.params,
            wishes=wishes,
            request_id=request_id(request),
        )

    known = idempotency.ticket(request, owner_id)
    if known is None:
        return _as_json(submit()), None, None
    found = idempotency.once(known, submit, lambda job: _json(_as_json(job), status=202))
    if isinstance(found, Job):
        return _as_json(found), known, None
    return {}, None, found


def _job(request: HttpRequest, job_id: str) -> Job:
    return queries.job(owner_id=current_owner_id(request), job_id=job_id)


def _shown(request: HttpRequest, job_id: str) -> dict[str, Any]:
    return _as_json(_job(request, job_id))


def _as_json(job: Job) -> dict[str, Any]:
    return queries.as_json(job, lang=language(), place=places.place(job))


def _json(content: Any, *, status: int = 200) -> HttpResponse:
    """JSON without NaN: anything not finite in a row is tagged already, or this is a bug."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    answer = HttpResponse(text, content_type="application/json", status=status)
    answer["Cache-Control"] = "no-cache"
    return answer
