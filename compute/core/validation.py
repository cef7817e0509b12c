"""Pydantic's findings, said to a person in both languages and with the nearest valid value."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from compute.core.errors import DID_YOU_MEAN, Problem
from compute.core.params import Params, ProblemError
from compute.core.schema import choices_of, params_schema
from compute.core.texts import Text, joined, shorten

_WRONG = Text(
    "{label}: give {expected}; you gave {value}.", "{label}：请填{expected}，现在是 {value}。"
)
_MISSING = Text("{label} is missing: give {expected}.", "缺少{label}：请填{expected}。")
_CHOICE = Text(
    "{label}: choose one of {choices}; you gave {value}.",
    "{label}：请从 {choices} 中选一个，现在是 {value}。",
)
_OR_UPLOAD = Text(
    "{choices}, or the id of a file that you have uploaded", "{choices}，或你上传的文件的编号"
)
_UNKNOWN = Text('There is no parameter "{name}".', "没有名为“{name}”的参数。")
_ALL = Text("The parameters are {names}.", "可用的参数有 {names}。")
_NO_OBJECT = Text(
    "The params are one JSON object of names and values.",
    "参数应是一个 JSON 对象（名称和值）。",
)
_BROKEN_TEXT = Text(
    "{label}: the text holds half a character (a lone surrogate); paste it again.",
    "{label}：文本里有半个字符（孤立代理项），请重新粘贴。",
)


def problems_of(params: type[Params], error: ValidationError) -> list[Problem]:
    """Every finding of `error` as a Problem of `params`, in pydantic's order."""
    found: list[Problem] = []
    for item in error.errors(include_url=False):
        raised = item.get("ctx", {}).get("error")
        if isinstance(raised, ProblemError):
            found.extend(raised.problems)
        else:
            found.append(_problem(params, dict(item), raised))
    return found


def unknown_name(name: str, known: Iterable[str]) -> Problem:
    """`name` is none of `known`: name the nearest, or all of them when nothing is near."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3)
    text = _UNKNOWN.format(name=shorten(name))
    if near:
        text = joined([text, DID_YOU_MEAN.format(near=near[0])])
    elif names:
        text = joined([text, _ALL.format(names=", ".join(names))])
    return Problem(pointer_of([name]), text, near or None)


def pointer_of(parts: Sequence[str | int]) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def shown(value: Any) -> str:
    """A value as a person sees it in a message: JSON, cut to 60 characters."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        return shorten(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        return shorten(repr(value))


def expected(field: dict[str, Any]) -> Text:
    """What a field takes, in words, read from its JSON Schema: "a whole number from 1 to 8"."""
    types = field.get("type", "")
    nullable = isinstance(types, list)
    name = types[0] if nullable else types
    if name in ("integer", "number"):
        text = _expected_number(field, whole=name == "integer")
    elif name == "string":
        text = _expected_amount(
            field, "Length", Text("text", "文本"), Text("character(s)", "个字符")
        )
    elif name == "array":
        text = _expected_amount(field, "Items", Text("a list", "列表"), Text("item(s)", "项"))
    elif name == "boolean":
        text = Text("true or false", " true 或 false")
    else:
        text = Text("a value of another form", "另一种形式的值")
    if nullable:
        text = Text(text.en + ", or null for the default", text.zh + "，或用 null 表示默认")
    return text


def _problem(params: type[Params], item: dict[str, Any], raised: object) -> Problem:
    where = list(item["loc"])
    fields: dict[str, dict[str, Any]] = params_schema(params)["properties"]
    kind, value = item["type"], item["input"]
    if not where:
        return Problem("", Text(str(raised), str(raised)) if raised else _NO_OBJECT)
    name = str(where[0])
    if (kind == "extra_forbidden" and len(where) == 1) or name not in fields:
        return unknown_name(name, fields)
    field = fields[name]
    label = _label(name, field)
    if kind == "missing" and len(where) == 1:
        return Problem(pointer_of(where), _MISSING.format(label=label, expected=expected(field)))
    if kind == "string_unicode":
        return Problem(pointer_of(where), _BROKEN_TEXT.format(label=label))
    if kind in ("choice", "literal_error") or "enum" in field or "x-choices" in field:
        return _choice(pointer_of(where), label, field, value)
    if kind == "value_error" and raised is not None:
        said = str(raised)
        return Problem(pointer_of(where), Text(f"{label.en}: {said}", f"{label.zh}：{said}"))
    text = _WRONG.format(label=label, expected=expected(field), value=shown(value))
    return Problem(pointer_of(where), text, _nearest_number(field, value))


def _label(name: str, field: dict[str, Any]) -> Text:
    words = field.get("x-label", {"en": name, "zh-hans": name})
    return Text(words["en"], words["zh-hans"])


def _choice(pointer: str, label: Text, field: dict[str, Any], value: Any) -> Problem:
    allowed = choices_of(field)
    near = difflib.get_close_matches(str(value), [str(choice) for choice in allowed], n=3)
    names = ", ".join(map(str, allowed))
    choices = _OR_UPLOAD.format(choices=names) if "x-upload" in field else Text(names, names)
    text = _CHOICE.format(label=label, choices=choices, value=shown(value))
    if near:
        text = joined([text, DID_YOU_MEAN.format(near=near[0])])
    return Problem(pointer, text, [c for c in allowed if str(c) in near] if near else allowed)


def _expected_number(field: dict[str, Any], *, whole: bool) -> Text:
    noun = Text("a whole number", "整数") if whole else Text("a number", "数")
    low, high = _bound(field, "minimum"), _bound(field, "maximum")
    above, below = _bound(field, "exclusiveMinimum"), _bound(field, "exclusiveMaximum")
    text = noun
    if low is not None and high is not None:
        text = Text(f"{noun.en} from {low} to {high}", f" {low} 到 {high} 之间的{noun.zh}")
    else:
        parts = [
            (low, Text("at least {}", "不小于 {}")),
            (above, Text("greater than {}", "大于 {}")),
            (high, Text("at most {}", "不大于 {}")),
            (below, Text("less than {}", "小于 {}")),
        ]
        bounds = [
            Text(words.en.format(bound), words.zh.format(bound))
            for bound, words in parts
            if bound is not None
        ]
        if bounds:
            text = Text(
                f"{noun.en} {' and '.join(b.en for b in bounds)}",
                f"{'、'.join(b.zh for b in bounds)} 的{noun.zh}",
            )
    step = field.get("multipleOf")
    if step is not None:
        text = Text(f"{text.en}, a multiple of {step}", f"{text.zh}，且是 {step} 的倍数")
    return text


def _bound(field: dict[str, Any], name: str) -> Any:
    """A limit as people write it: 1 rather than 1.0."""
    value = field.get(name)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _expected_amount(field: dict[str, Any], suffix: str, noun: Text, unit: Text) -> Text:
    """A length: "text of 1 to 500 characters". `suffix` picks minLength or minItems."""
    low, high = field.get(f"min{suffix}"), field.get(f"max{suffix}")
    one = (low or 0) <= 1 and high in (None, 1)
    unit_en = unit.en.replace("(s)", "" if one else "s")
    text = noun
    if low is not None and high is not None:
        text = Text(
            f"{noun.en} of {low} to {high} {unit_en}", f" {low} 到 {high} {unit.zh}的{noun.zh}"
        )
    elif low is not None:
        text = Text(f"{noun.en} of at least {low} {unit_en}", f"至少 {low} {unit.zh}的{noun.zh}")
    elif high is not None:
        text = Text(f"{noun.en} of at most {high} {unit_en}", f"不超过 {high} {unit.zh}的{noun.zh}")
    if "pattern" in field:
        rule = field["pattern"]
        text = Text(f"{text.en} that matches {rule}", f"{text.zh}，且匹配 {rule}")
    return text


def _nearest_number(field: dict[str, Any], value: Any) -> list[Any] | None:
    """The nearest valid numbers to one out of range, off the grid, or not whole."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    types = field.get("type")
    whole = types == "integer" or (isinstance(types, list) and types[0] == "integer")
    low, high = field.get("minimum", -math.inf), field.get("maximum", math.inf)
    if "exclusiveMinimum" in field and value <= field["exclusiveMinimum"]:
        return None  # an open bound has no nearest number
    if "exclusiveMaximum" in field and value >= field["exclusiveMaximum"]:
        return None
    inside = min(max(value, low), high)
    if math.isinf(inside):
        return None
    step = field.get("multipleOf", 1 if whole else None)
    if step is None:
        return [inside] if inside != value else None
    grid = {math.floor(inside / step) * step, math.ceil(inside / step) * step}
    return [n for n in sorted(grid) if low <= n <= high] or None
