"""An artifact over HTTP: whole or by Range (RFC 9110, 14), read in the background in pieces.

Django's FileResponse reads the whole file into memory under ASGI, and knows no Range.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import BinaryIO

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from playground.jobs import artifacts
from playground.jobs.artifacts import CHUNK
from playground.jobs.models import Artifact
from playground.problems import ApiProblem

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+")
# Types that a browser would run or render as a page of ours are handed out as plain bytes.
_ACTIVE = re.compile(r"text/(?!plain|csv)|.*(?:html|xml|svg|javascript|ecmascript|wasm|pdf)")


class NoSuchRange(Exception):
    """A range that lies outside the file."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """`bytes=a-b` as (first byte, one past the last). None for no range, for several, or for one
    that isn't well formed: the answer is then the whole file. Raises `NoSuchRange`."""
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match[1], match[2]
    if not first:
        length = int(last)
        if length == 0 or size == 0:
            raise NoSuchRange
        return max(0, size - length), size
    start = int(first)
    end = min(size, int(last) + 1) if last else size
    if last and int(last) < start:
        return None
    if start >= size:
        raise NoSuchRange
    return start, end


async def response(request: HttpRequest, row: Artifact) -> HttpResponseBase:
    """200, 206, 304 or 416. The ETag is the file's sha256."""
    try:
        size = await asyncio.to_thread(artifacts.size, row.job_id, row.attempt, row.name)
    except artifacts.BadName:
        size = None
    if size is None:
        raise ApiProblem("artifact_not_found")
    etag = f'"{row.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": f'inline; filename="{row.name.rpartition("/")[2]}"',
    }
    if etag in [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]:
        return HttpResponse(status=304, headers=headers)
    asked = request.headers.get("Range", "")
    if request.headers.get("If-Range", etag) != etag:
        asked = ""  # what the client holds is of another file
    try:
        span = parse_range(asked, size) if asked else None
    except NoSuchRange:
        raise ApiProblem(
            "range_not_satisfiable", size=size, headers={"Content-Range": f"bytes */{size}"}
        ) from None
    start, end = span or (0, size)
    headers["Content-Length"] = str(end - start)
    if span:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    kind, status = content_type(row.type), 206 if span else 200
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers, content_type=kind)
    file = await asyncio.to_thread(artifacts.open_file, row.job_id, row.attempt, row.name)
    if end - start <= CHUNK:
        data = await asyncio.to_thread(_read_and_close, file, start, end - start)
        return HttpResponse(data, status=status, headers=headers, content_type=kind)
    return StreamingHttpResponse(
        _pieces(file, start, end), status=status, headers=headers, content_type=kind
    )


def content_type(declared: str) -> str:
    if _TYPE.fullmatch(declared) is None or _ACTIVE.fullmatch(declared):
        return "application/octet-stream"
    return declared


def _read_and_close(file: BinaryIO, start: int, length: int) -> bytes:
    with file:
        file.seek(start)
        return file.read(length)


async def _pieces(file: BinaryIO, start: int, end: int) -> AsyncIterator[bytes]:
    try:
        await asyncio.to_thread(file.seek, start)
        left = end - start
        while left > 0:
            data = await asyncio.to_thread(file.read, min(CHUNK, left))
            if not data:
                return  # cut short under us: the length tells the client
            left -= len(data)
            yield data
    finally:
        file.close()
