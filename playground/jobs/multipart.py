"""A file out of a multipart body (RFC 7578), in pieces, as they come in.

Django reads a whole body into a temporary file before it calls a view, and copies files out of it
afterwards. That is twice the disk, and a refusal only when all has arrived. `Unspooled` hands the
body of some addresses to the view as it comes; all else, sessions, language, problems, is Django's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, MutableMapping
from typing import Any, Protocol, cast

from django.http import HttpRequest
from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from compute.core.errors import Problem
from compute.core.texts import Text, shorten
from playground.problems import MISSING, UNKNOWN, ApiProblem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

KEY = "playground.body"  # in the ASGI scope
FIELD = "file"
BATCH = 128 * 1024  # bytes that are handed to a thread at once
SILENCE_S = 30.0  # a client that sends nothing for so long has gone
OVERHEAD = 64 * 1024  # of a multipart body beside the file; ours has one field
NAME_LENGTH = 200

ONE_FILE = Text("Send one file at a time.", "一次只能上传一个文件。")


class Unspooled:
    """Around Django's application: POSTs to `paths` reach their views before their bodies."""

    def __init__(self, app: App, paths: Collection[str]) -> None:
        self.app, self.paths = app, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self.paths:
            body = Body(receive)
            await self.app({**scope, KEY: body}, body.for_django, send)
        else:
            await self.app(scope, receive, send)


class Body:
    """The body of a request that a view reads itself."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._told = False
        self._read = asyncio.Event()

    async def for_django(self) -> MutableMapping[str, Any]:
        """What Django hears: an empty body, then, once the view has read the true one, whatever
        comes after it, which is that the client has left."""
        if not self._told:
            self._told = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._read.wait()
        return await self._receive()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes, in batches. Raises the problem for a client that leaves or falls silent."""
        held, more = bytearray(), True
        while more:
            try:
                async with asyncio.timeout(SILENCE_S):
                    message = await self._receive()
            except TimeoutError:
                raise ApiProblem("upload_stalled", seconds=round(SILENCE_S)) from None
            if message["type"] == "http.disconnect":
                raise ApiProblem("bad_request")  # nobody hears it
            held += message.get("body", b"")
            more = message.get("more_body", False)
            if len(held) >= BATCH or not more:
                yield bytes(held)
                held.clear()
        self._read.set()


class Sink(Protocol):
    """Where a file's bytes go."""

    def write(self, data: bytes) -> None: ...


class FileField:
    """Takes the one field `file` out of a body and passes its bytes on. Blocking: for a thread."""

    def __init__(self, content_type: str, sink: Sink) -> None:
        kind, options = parse_options_header(content_type)
        if kind.lower() != "multipart/form-data" or not options.get("boundary"):
            raise ApiProblem("not_multipart")
        try:
            self._parser = PushMultipartParser(options["boundary"], max_segment_count=2)
        except MultipartError:
            raise ApiProblem("not_multipart") from None
        self._sink = sink
        self.name: str | None = None  # of the file, once its field has begun

    def feed(self, data: bytes) -> None:
        """Raises the problem with the body, or what the sink raises."""
        try:
            for found in self._parser.parse(data):
                if isinstance(found, MultipartSegment):
                    self._begin(found)
                elif found:
                    self._sink.write(bytes(found))
        except MultipartError:
            raise ApiProblem("bad_request") from None

    def end(self) -> str:
        """The file's name. Raises the problem with a body that is not whole, or has no file."""
        try:
            self._parser.close()
        except MultipartError:
            raise ApiProblem("bad_request") from None
        if self.name is None:
            raise ApiProblem("invalid_request", errors=[Problem(f"/{FIELD}", MISSING)])
        return self.name

    def _begin(self, field: MultipartSegment) -> None:
        if field.name != FIELD:
            pointer = f"/{shorten(field.name)}"
            raise ApiProblem("invalid_request", errors=[Problem(pointer, UNKNOWN)])
        if self.name is not None:
            raise ApiProblem("invalid_request", errors=[Problem(f"/{FIELD}", ONE_FILE)])
        self.name = plain_name(field.filename or "")


def body_of(request: HttpRequest) -> Body:
    """The body that a view reads itself. Its address must be one of `Unspooled`'s."""
    return cast(Body, cast(Any, request).scope[KEY])


def plain_name(given: str) -> str:
    """The last part of a path, without characters that don't show; what is too long loses its
    middle, so that the ending stays."""
    last = re.split(r"[/\\]", given)[-1]
    shown = "".join(c for c in last if c.isprintable()).strip()
    if len(shown) > NAME_LENGTH:
        shown = shown[: NAME_LENGTH - 21] + "…" + shown[-20:]
    return shown if shown.strip(".") else FIELD
