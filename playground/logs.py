"""Log lines that say whom they are about: the request, the job and its attempt, where there is one.

`about` names them for all that is logged inside it, in this thread or task and in what is started
from there with the same context. The formatters write them: `line` for people, `json` for
programs, one object a line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

NAMES = ("request_id", "job", "attempt")

_about: ContextVar[dict[str, Any]] = ContextVar("about", default={})  # noqa: B039 (never changed)


@contextmanager
def about(**names: Any) -> Iterator[None]:
    """Inside, every line carries these; an empty value is left out."""
    assert set(names) <= set(NAMES), names
    token = _about.set({**_about.get(), **{k: v for k, v in names.items() if v}})
    try:
        yield
    finally:
        _about.reset(token)


class About(logging.Filter):
    """Puts the names on each record; one that brings its own (`extra=`) keeps them."""

    def filter(self, record: logging.LogRecord) -> bool:
        known = _about.get()
        for name in NAMES:
            if not hasattr(record, name):
                setattr(record, name, known.get(name))
        return True


class Line(logging.Formatter):
    """`2026-11-30T12:00:00.123Z INFO playground.api: words [request_id=… job=… attempt=…]`"""

    def format(self, record: logging.LogRecord) -> str:
        told = [f"{name}={value}" for name, value in _names(record)]
        record.message = record.getMessage()
        line = f"{_moment(record)} {record.levelname} {record.name}: {record.message}"
        line += f" [{' '.join(told)}]" if told else ""
        trace = _trace(self, record)
        return f"{line}\n{trace}" if trace else line


class Json(logging.Formatter):
    """One object a line: `t level logger message`, the names, and `trace` after an exception."""

    def format(self, record: logging.LogRecord) -> str:
        found = {
            "t": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **dict(_names(record)),
        }
        if trace := _trace(self, record):
            found["trace"] = trace
        return json.dumps(found, ensure_ascii=False, default=str)


def readable(text: str, limit: int) -> str:
    """Somebody else's words for one log line: without control characters, and not too long."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:limit])
    return f"{shown}… ({len(text)} characters)" if len(text) > limit else shown


def _names(record: logging.LogRecord) -> list[tuple[str, Any]]:
    found = [(name, getattr(record, name, None)) for name in NAMES]
    return [(name, value) for name, value in found if value]


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info and not record.exc_text:
        record.exc_text = formatter.formatException(record.exc_info)
    parts = [record.exc_text, formatter.formatStack(record.stack_info) if record.stack_info else ""]
    return "\n".join(part for part in parts if part)
