"""A kind as JSON: what forms, `GET kinds`, the shell's help and the docs are made from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from compute.core.events import EVENT_TYPES
from compute.core.params import Params

if TYPE_CHECKING:
    from compute.core.kinds import Kind


def json_schema(kind: Kind) -> dict[str, Any]:
    """Everything a client needs to offer `kind`: words, controls, events, JSON Schema of params."""
    return {
        "name": kind.name,
        "title": kind.title.as_dict(),
        "summary": kind.summary.as_dict(),
        "queue": kind.queue,
        "controls": sorted(kind.controls),
        "settable": sorted(kind.settable),
        "refs": {name: list(allowed) for name, allowed in kind.refs.items()},
        "deadline_s": kind.deadline_s,
        "params": params_schema(kind.params),
        "events": {name: text.as_dict() for name, text in EVENT_TYPES.items()},
        "frames": {name: text.as_dict() for name, text in kind.frames.items()},
        "result": {name: text.as_dict() for name, text in kind.result.items()},
    }


@cache
def params_schema(params: type[Params]) -> dict[str, Any]:
    """JSON Schema (2020-12) of a params model, made plain for a form: one `type` a field.

    A field that may be null says `"type": ["integer", "null"]` instead of pydantic's anyOf.
    The result is shared: treat it as read-only.
    """
    schema = params.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    schema["properties"] = {
        name: _plain_property(field) for name, field in schema["properties"].items()
    }
    return schema


def choices_of(field: Mapping[str, Any]) -> list[Any]:
    """The values that a property lists, in the order of their declaration; beside them an upload
    may be allowed."""
    listed = field.get("enum") or field.get("anyOf", [{}])[0].get("enum", [])
    return [value for value in listed if value is not None]


def _plain_property(field: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in field.items() if key not in ("anyOf", "title")}
    options = field.get("anyOf", [])
    kept = [option for option in options if option != {"type": "null"}]
    if len(kept) == 1 and len(options) == 2 and isinstance(kept[0].get("type"), str):
        plain = {**kept[0], **plain, "type": [kept[0]["type"], "null"]}
        if "enum" in plain and None not in plain["enum"]:
            plain["enum"] = [*plain["enum"], None]
    elif options:
        plain["anyOf"] = options
    if "x-label" in plain:
        plain["title"] = plain["x-label"]["en"]
    return plain
