from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compute.core.events import (
    EVENT_TYPES,
    MAX_PAYLOAD_BYTES,
    PayloadTooLarge,
    decode,
    dumps,
    encode,
)
from compute.core.texts import Text


def strict(line: str) -> Any:
    """What a JSON reader that knows no NaN makes of a line."""
    return json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (math.nan, {"$num": "NaN"}),
        (math.inf, {"$num": "Infinity"}),
        (-math.inf, {"$num": "-Infinity"}),
        (np.float32("nan"), {"$num": "NaN"}),
        (np.float64("-inf"), {"$num": "-Infinity"}),
        (torch.tensor(math.inf), {"$num": "Infinity"}),
        ({"$num": "NaN"}, {"$num": "NaN"}),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array(3), 3),
        (torch.tensor(2.5), 2.5),
        (torch.tensor(3), 3),
        (-0.0, -0.0),
        (5e-324, 5e-324),
        (2**70, 2**70),
        (True, True),
        (None, None),
        ((1, [2.0, math.nan]), [1, [2.0, {"$num": "NaN"}]]),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Text("a", "甲"), {"en": "a", "zh-hans": "甲"}),
    ],
)
def test_values_travel_as_plain_json(value: object, sent: object) -> None:
    line = encode({"type": "metric", "t": 1.0, "data": {"v": value}})
    assert strict(line)["data"]["v"] == sent
    assert decode(line) == {"type": "metric", "t": 1.0, "data": {"v": sent}}


@pytest.mark.parametrize(
    "value", [{1, 2}, b"x", object(), torch.zeros(2), np.zeros((1,)), 1 + 2j, {1: "key"}]
)
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        encode({"type": "frame", "data": {"v": value}})


@pytest.mark.parametrize("value", [{"$num": "nan"}, {"$num": 3}, {"$num": "NaN", "x": 1}])
def test_the_tag_is_kept_for_numbers(value: Mapping[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\$num"):
        encode({"type": "frame", "data": {"v": value}})


def test_no_character_ends_a_line() -> None:
    text = "".join(map(chr, range(0x100))) + "\u2028\u2029\u200f词元😀"
    line = encode({"type": "log", "data": {"text": text}})
    assert len(line.splitlines()) == 1
    assert decode(line)["data"]["text"] == text
    assert "词元😀" in line  # text stays readable where it may


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    line = encode({"type": "log", "data": {"text": "a\ud800b"}})
    assert decode(line.encode())["data"]["text"] == "a\ufffdb"


def test_a_payload_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    frame = len('{"v":""}')
    encode({"type": "frame", "data": {"v": "x" * (MAX_PAYLOAD_BYTES - frame)}})
    with pytest.raises(PayloadTooLarge, match="16385 bytes"):
        encode({"type": "frame", "data": {"v": "x" * (MAX_PAYLOAD_BYTES - frame + 1)}})
    with pytest.raises(PayloadTooLarge):  # bytes count, not characters
        encode({"type": "frame", "data": {"v": "词" * 6000}})


@pytest.mark.parametrize(
    "line",
    ["", "{", "[1]", "3", '{"v":NaN}', '{"v":-Infinity}', "[" * 100_000, b"\xff\xfe{}"],
)
def test_what_is_no_event_is_refused(line: str | bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)


def test_every_event_type_says_what_its_data_holds_in_both_languages() -> None:
    assert list(EVENT_TYPES) == (
        "state log metric progress frame artifact control resumed error gap end".split()
    )
    assert all(text.en and text.zh for text in EVENT_TYPES.values())


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text().filter(lambda key: key != "$num"), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(values)
def test_any_json_value_comes_back_as_it_went(value: object) -> None:
    line = dumps(value)
    assert len((line + "x").splitlines()) == 1
    assert json.loads(line.encode()) == value


@given(st.floats())
def test_any_float_comes_back_or_is_tagged(value: float) -> None:
    back = json.loads(dumps(value))
    if math.isfinite(value):
        assert back == value
    else:
        assert float(back["$num"].replace("Infinity", "inf")) == pytest.approx(value, nan_ok=True)
