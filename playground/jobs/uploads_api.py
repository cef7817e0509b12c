"""REST: uploads. A file comes in pieces to the disk, is checked, and only then has a row."""

from __future__ import annotations

import asyncio
import errno
import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compute.core.errors import Problem, UserError
from compute.core.texts import Text
from compute.text.intake import MAX_BYTES, TOO_LARGE
from playground.accounts.owner import current_owner_id
from playground.jobs import database, intake, multipart, pages, quota, uploads
from playground.jobs.upload_files import Incoming, NoRoom, TooLarge, sweep
from playground.problems import ApiProblem

router = Router(tags=["uploads"])
PATH = "/api/v1/uploads"
HEADER = "X-Playground"
BAD_CURSOR = Text("This is not a cursor of this list.", "这不是此列表的游标。")
NO_FORM = Text("The forms are text and vectors.", "form 只能是 text 或 vectors。")
DESCRIBED = {
    "parameters": [
        {
            "in": "header",
            "name": HEADER,
            "required": True,
            "schema": {"type": "string", "enum": ["1"]},
            "description": "Shows that no form of another site sends this.",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [multipart.FIELD],
                    "additionalProperties": False,
                    "properties": {multipart.FIELD: {"type": "string", "format": "binary"}},
                }
            }
        },
    },
}


@router.post("uploads", summary="Upload a file of text or word vectors", openapi_extra=DESCRIBED)
async def create_upload(request: HttpRequest) -> HttpResponse:
    """Multipart with one field `file`, and the header `X-Playground: 1`. 201 with the upload once
    the file is checked and kept; its id is a param of jobs. Nothing is left of what is refused."""
    owner_id = await database.call(current_owner_id, request, scope="submit")
    if request.headers.get(HEADER) != "1":
        raise ApiProblem("header_needed")
    declared = request.headers.get("Content-Length", "")
    if _says_more(declared, max(MAX_BYTES.values())):
        raise _refused("upload_too_large", TOO_LARGE["vectors"])
    try:
        return _json(await _receive(request, owner_id, declared), status=201)
    except TooLarge as error:
        raise _refused("upload_too_large", error.words) from error
    except UserError as error:
        raise _refused("upload_refused", error.text) from error
    except NoRoom as error:
        used = await database.call(quota.used_bytes, owner_id)
        raise ApiProblem(
            "quota_exceeded", used_mb=round(used / quota.MB), limit_mb=settings.QUOTA_MB
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ApiProblem("no_space") from error
        raise


async def _receive(request: HttpRequest, owner_id: int, declared: str) -> dict[str, Any]:
    """From the body to the row; whatever goes wrong on the way, no file is left."""
    room = await database.call(quota.remaining_bytes, owner_id)
    if room is not None and _says_more(declared, room):
        raise NoRoom
    await asyncio.to_thread(sweep)
    coming = await asyncio.to_thread(Incoming, room)
    try:
        field = multipart.FileField(request.headers.get("Content-Type", ""), coming)
        async for piece in multipart.body_of(request).pieces():
            await asyncio.to_thread(field.feed, piece)
            _refuse_early(coming, declared)
        name = field.end()
        await asyncio.to_thread(coming.end)
        found = await intake.check(coming.folder)
        row = await database.call(
            uploads.create, owner_id=owner_id, coming=coming, name=name, found=found
        )
        return uploads.as_json(row)
    finally:
        # Not awaited: a request that is cancelled must leave no file either.
        asyncio.get_running_loop().run_in_executor(None, coming.discard)


def _refuse_early(coming: Incoming, declared: str) -> None:
    """A text that says to be too large need not be read to its limit."""
    if coming.form and _says_more(declared, MAX_BYTES[coming.form]):
        raise TooLarge(TOO_LARGE[coming.form])


def _says_more(declared: str, limit: int) -> bool:
    """Whether a Content-Length leaves no doubt that the file has more bytes than `limit`."""
    return declared.isdecimal() and int(declared) > limit + multipart.OVERHEAD


@router.get("uploads", summary="List uploads, newest first")
def list_uploads(
    request: HttpRequest,
    form: str = "",
    cursor: str = "",
    limit: int = Query(50, ge=1, le=200),  # type: ignore[type-arg]
) -> HttpResponse:
    owner_id = current_owner_id(request)
    if form and form not in uploads.FORMS:
        problem = Problem("/form", NO_FORM, list(uploads.FORMS))
        raise ApiProblem("invalid_request", errors=[problem])
    try:
        page = uploads.page(owner_id=owner_id, form=form, cursor=cursor, limit=limit)
    except ValueError as error:
        problem = Problem("/cursor", BAD_CURSOR)
        raise ApiProblem("invalid_request", errors=[problem]) from error
    items = [uploads.as_json(row) for row in page.items]
    return pages.listed(request, items, next=page.next, prev=page.prev)


@router.get("uploads/{upload_id}", summary="One upload")
def get_upload(request: HttpRequest, upload_id: str) -> HttpResponse:
    found = uploads.upload(owner_id=current_owner_id(request), upload_id=upload_id)
    return _json(uploads.as_json(found))


@router.delete(
    "uploads/{upload_id}", summary="Delete an upload that no waiting or running job needs"
)
def delete_upload(request: HttpRequest, upload_id: str) -> HttpResponse:
    owner_id = current_owner_id(request, scope="submit")
    try:
        uploads.delete(upload=uploads.upload(owner_id=owner_id, upload_id=upload_id))
    except uploads.InUse as error:
        raise ApiProblem("upload_in_use", jobs=error) from error
    return HttpResponse(status=204)


def _refused(code: str, words: Text) -> ApiProblem:
    return ApiProblem(code, errors=[Problem(f"/{multipart.FIELD}", words)], why=words)


def _json(content: dict[str, Any], *, status: int = 200) -> HttpResponse:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    answer = HttpResponse(text, content_type="application/json", status=status)
    answer["Cache-Control"] = "no-cache"
    if status == 201:
        answer["Location"] = content["urls"]["self"]
    return answer
