"""The figures in words and units, for people."""

from __future__ import annotations

import threading
import time
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from compute.core import kinds
from compute.core.texts import Text
from playground.accounts.owner import current_actor
from playground.jobs import health, retention
from playground.jobs.counts import counts
from playground.operations import figures
from playground.operations.figures import Figures

MAX_AGE_S = 1.5  # the page asks every two seconds
RATE_S = 2.0  # the least time that a rate is taken over
PRUNE_S = 60.0  # looking through the folders takes a while on a full disk
MB = 2**20

NAMES = {
    "web": gettext_lazy("Web server"),
    "database": gettext_lazy("Database"),
    "redis": gettext_lazy("Redis"),
    "dispatcher": gettext_lazy("Dispatcher"),
    "worker.interactive": gettext_lazy("Worker for short jobs"),
    "worker.training": gettext_lazy("Worker for training"),
}
# `playground.jobs.health`'s words; what a store says of itself stays as it is.
DETAILS = {
    health.SILENT: gettext_lazy("no sign of life for 10 s"),
    health.WEDGED: gettext_lazy("a runner does not answer"),
    health.STUCK: gettext_lazy("jobs wait beside free slots, and none has started for 60 s"),
}
QUEUES = {"interactive": gettext_lazy("Short jobs"), "training": gettext_lazy("Training")}
VENDORS = {"sqlite": "SQLite", "mysql": "MySQL / MariaDB"}


def context(request: HttpRequest) -> dict[str, Any]:
    found = figures.current(max_age_s=MAX_AGE_S)
    down = [name for name, part in found.parts.items() if not part["ok"]]
    return {
        "at": found.at,
        "well": not down,
        "parts": [_part(name, part) for name, part in found.parts.items()],
        "queues": [_queue(queue) for queue in found.queues],
        "latencies": [_latency(each) for each in found.latencies if each.count],
        "failures": _failures(request) if found.parts["database"]["ok"] else [],
        "streams": _streams(),
        "runners": _runners(found),
        "stores": _stores(found),
        "prune": _prune(),
    }


def _part(name: str, part: dict[str, Any]) -> dict[str, Any]:
    detail = part.get("detail", "")
    return {"name": NAMES[name], "ok": part["ok"], "detail": DETAILS.get(detail, detail)}


def _queue(queue: figures.Queue) -> dict[str, Any]:
    return {
        "name": QUEUES.get(queue.name, queue.name),
        "waiting": queue.waiting,
        "oldest": seconds(queue.oldest_s),
        "running": queue.running,
        "slots": queue.slots,
        "no_op": seconds(queue.no_op_age_s),
        "busy": queue.busy,
        "ok": queue.ok,
    }


def _latency(found: figures.Latency) -> dict[str, Any]:
    title: Text = kinds.get(found.kind).title
    return {
        "kind": found.kind,
        "title": title.get(get_language() or "en"),
        "count": found.count,
        "first": [seconds(found.first_event.get(q)) for q in figures.QUANTILES],
        "end": [seconds(found.end.get(q)) for q in figures.QUANTILES],
    }


def _failures(request: HttpRequest) -> list[dict[str, Any]]:
    """A message may quote what its owner has typed in: others see the reason only."""
    me, lang = current_actor(request).user_id, get_language() or "en"
    try:
        rows = figures.failures()
    except DatabaseError:
        return []
    return [
        {
            **row,
            "mine": row["owner_id"] == me,
            "message": Text(row["message"], row["message_zh"]).get(lang),
            "page": f"/labs/{row['kind'].partition('.')[0]}?run={row['id']}",
        }
        for row in rows
    ]


class _Rates:
    """Events a second between this look and one at least two seconds ago."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before = (time.monotonic(), counts.events_read, counts.events_delivered)
        self._rates: tuple[float, float] | None = None

    def now(self) -> tuple[float, float] | None:
        with self._lock:
            moment, read, delivered = self._before
            spent = time.monotonic() - moment
            if spent >= RATE_S:
                new = (time.monotonic(), counts.events_read, counts.events_delivered)
                self._rates = ((new[1] - read) / spent, (new[2] - delivered) / spent)
                self._before = new
            return self._rates


_rates = _Rates()


def _streams() -> list[tuple[str, str, str]]:
    """(name, figure, what it means)"""
    rates = _rates.now()
    read, delivered = (f"{rates[0]:.1f}/s", f"{rates[1]:.1f}/s") if rates else ("–", "–")
    return [
        (_("Open sockets"), f"{counts.sockets}", _("One a browser tab.")),
        (_("Readers"), f"{counts.followers}", _("Of one job's events each.")),
        (_("Events read"), read, _("From Redis, once for all readers.")),
        (_("Events delivered"), delivered, _("To all readers together.")),
        (
            _("Catch-ups"),
            f"{counts.catch_ups}",
            _("Times a reader went to the log, since the start."),
        ),
        (
            _("Overflows"),
            f"{counts.overflows}",
            _("Readers too slow for their queue. Nothing is lost."),
        ),
        (_("Gaps"), f"{counts.gaps}", _("Readers told that early events are gone.")),
    ]


def _runners(found: Figures) -> list[dict[str, Any]]:
    return [
        {
            "worker": QUEUES.get(runner.worker, runner.worker),
            "pid": runner.pid,
            "busy": runner.busy,
            "mb": round(runner.resident_mb),
            "limit": settings.JOB_MEMORY_MB,
        }
        for runner in found.runners
    ]


def _stores(found: Figures) -> list[tuple[str, str, str]]:
    store = found.redis
    limit = size(store.limit_bytes) if store.limit_bytes else _("no limit")
    rows = [
        (
            _("Database"),
            VENDORS.get(connection.vendor, connection.vendor),
            _("Jobs, people, files' names."),
        )
    ]
    if store.ok:
        rows += [
            (
                _("Redis memory"),
                f"{size(store.used_bytes)} / {limit}",
                _("Live streams and the queues."),
            ),
            (_("Redis keys"), f"{store.keys}", _("Most are streams of jobs.")),
            (_("Redis connections"), f"{store.clients}", _("Of all parts together.")),
        ]
    return [
        *rows,
        (_("Web memory"), size(found.resident_bytes), _("Of the web server's process.")),
        (_("Web processor time"), seconds(found.cpu_s), _("Since the web server started.")),
    ]


_pruned: tuple[float, dict[str, Any]] | None = None


def _prune() -> dict[str, Any] | None:
    global _pruned
    if _pruned is None or time.monotonic() - _pruned[0] > PRUNE_S:
        try:
            found = retention.find()
        except (DatabaseError, OSError):
            return None
        told = {"jobs": len(found.jobs), "rest": len(found.leftovers), "size": size(found.bytes)}
        _pruned = (time.monotonic(), told)
    return _pruned[1]


def seconds(value: float | None) -> str:
    """`–` for none; milliseconds below a second."""
    if value is None:
        return "–"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 100:
        return f"{value:.1f} s"
    if value < 6000:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h"


def size(value: float) -> str:
    """Bytes in MB or GB (2^20, 2^30)."""
    if value < 1024 * MB:
        return f"{value / MB:.1f} MB"
    return f"{value / MB / 1024:.1f} GB"
