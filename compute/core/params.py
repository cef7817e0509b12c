"""Params of a kind: a pydantic model whose every field carries words and a place in the form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from compute.core.errors import Problem
from compute.core.texts import Text

UPLOAD_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{20}")
PATH = re.compile(r"[/\\.]")


class ProblemError(ValueError):
    """Problems found by a params model's own check; they pass through pydantic unharmed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(" ".join(problem.text.en for problem in self.problems))


def problem(pointer: str, text: Text, nearest: list[Any] | None = None) -> ProblemError:
    """The error that a cross-field check raises: `raise problem("/heads", Text(…), [2, 4])`."""
    return ProblemError([Problem(pointer, text, nearest)])


class Params(BaseModel):
    """Base of every kind's params. Unknown fields, NaN and infinities are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse true and "4" where a number is meant; take numpy's scalars for what they are."""
        wanted = base_type(cls.model_fields[info.field_name or ""].annotation)
        if wanted not in (int, float):
            return value
        if isinstance(value, bool | str | bytes):
            raise PydanticCustomError("number_type", "not a number")
        if hasattr(value, "item") and not getattr(value, "shape", ()):
            return value.item()
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _choices_are_closed(cls, value: Any, info: ValidationInfo) -> Any:
        extra = cls.model_fields[info.field_name or ""].json_schema_extra
        if not isinstance(extra, dict) or "x-choices" not in extra or value is None:
            return value
        allowed = extra.get("enum", extra["x-choices"])
        known = isinstance(allowed, list | dict) and value in allowed
        if not known and not ("x-upload" in extra and names_upload(value)):
            raise PydanticCustomError("choice", "not one of the choices")
        return value


def names_upload(value: Any) -> bool:
    """Whether a value is the id of an upload, or the path of a file, by its looks alone.

    A path is for a notebook or a shell; the site takes ids only.
    """
    return isinstance(value, str) and bool(UPLOAD_ID.fullmatch(value) or PATH.search(value))


def param(
    default: Any,
    *,
    label: Text,
    help: Text,
    unit: str | None = None,
    choices: Mapping[str, Text] | Mapping[int, Text] | None = None,
    group: Text | None = None,
    advanced: bool = False,
    widget: str | None = None,
    upload: str | None = None,
    own: str | None = None,
    **constraints: Any,
) -> Any:
    """A field of a Params model; `...` as default makes it required.

    `constraints` are pydantic's: ge gt le lt multiple_of min_length max_length pattern.
    With `choices` any other value is refused. With `upload` ("text" or "vectors") beside them the
    id of an upload of that form is taken, too; the kind's `refs` says so as well. `own` is the
    choice that another param completes; forms offer uploading in its place.
    Label, help and the rest stand in the JSON Schema as x-label, x-help, x-unit, x-choices,
    x-group, x-advanced, x-widget, x-upload and x-own.
    """
    extra: dict[str, Any] = {"x-label": label.as_dict(), "x-help": help.as_dict()}
    if unit is not None:
        extra["x-unit"] = unit
    if choices is not None:
        extra["x-choices"] = {str(value): text.as_dict() for value, text in choices.items()}
        if upload is None:
            extra["enum"] = list(choices)
        else:  # one of the choices, or an id
            extra["anyOf"] = [{"enum": list(choices)}, {"pattern": f"^{UPLOAD_ID.pattern}$"}]
    if upload is not None:
        extra["x-upload"] = upload
    if own is not None:
        extra["x-own"] = own
    if group is not None:
        extra["x-group"] = group.as_dict()
    if advanced:
        extra["x-advanced"] = True
    if widget is not None:
        extra["x-widget"] = widget
    return Field(default, json_schema_extra=extra, **constraints)


def base_type(annotation: Any) -> Any:
    """The type of an annotation without its `| None`; the annotation itself if it is a union."""
    if get_origin(annotation) in (Union, UnionType):
        kept = [arg for arg in get_args(annotation) if arg is not type(None)]
        if len(kept) == 1:
            return kept[0]
    return annotation
