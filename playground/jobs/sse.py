"""Server-sent events: the REST twin of the socket, good for `curl -N`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from playground.accounts.owner import Actor
from playground.accounts.watch import Open, classes_of, watch
from playground.jobs import database, history
from playground.jobs.follow import News, follow
from playground.jobs.hub import Hub, Reader
from playground.jobs.models import Job

KEEP_ALIVE_S = 15.0
RETRY_MS = 2000


async def response(hub: Hub, job: Job, after: str, actor: Actor) -> HttpResponseBase:
    """The stream of a job's events after `after`, as long as `actor` may read. A client that
    comes back with the id of the `end` gets 204, which tells a browser's EventSource to stop
    asking."""
    if job.ended and job.log_closed and not await history.read(hub.client, job.pk, after, 1):
        return HttpResponse(status=204)
    classes = await database.call(classes_of, actor.user_id)
    answer = StreamingHttpResponse(
        _lines(hub, job.pk, after, actor, classes), content_type="text/event-stream; charset=utf-8"
    )
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"  # a proxy must not hold lines back
    return answer


async def _lines(
    hub: Hub, job_id: str, after: str, actor: Actor, classes: frozenset[int]
) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    reader = Reader(job_id, after)

    async def leave(code: int) -> None:
        reader.leave()

    with watch().holding(Open(actor, leave, classes)):
        news_of = follow(hub, job_id, after, idle_s=KEEP_ALIVE_S, reader=reader)
        async with contextlib.aclosing(news_of) as all_news:
            async for news in all_news:
                yield _text(job_id, news)


def _text(job_id: str, news: News) -> str:
    if news.what == "events":
        return "".join(f"id: {entry.id}\ndata: {entry.line}\n\n" for entry in news.entries)
    if news.what == "gap":
        first = news.entries[0].id
        data = f'{{"job":"{job_id}","type":"gap","data":{{"first":"{first}"}}}}'
        return f"event: gap\ndata: {data}\n\n"
    return f": {news.what}\n\n"
