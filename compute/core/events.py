"""Events: what a job says while it runs, one JSON object a line.

JSON has no NaN and no Infinity, so they travel as `{"$num": "NaN"}`, `{"$num": "Infinity"}`
and `{"$num": "-Infinity"}`. A line never holds a character that any reader takes for a line end.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from compute.core.texts import Text

MAX_PAYLOAD_BYTES = 16_384

EVENT_TYPES: Mapping[str, Text] = {
    "state": Text(
        "The job's state changed: state, attempt, and step when a pause set it.",
        "任务状态改变：state、attempt；暂停时还有 step。",
    ),
    "log": Text(
        "A line for people: level (debug, info, warning, error), text, and text_zh if translated.",
        "给人看的一行：level (debug, info, warning, error)、text，有译文时还有 text_zh。",
    ),
    "metric": Text(
        "Numbers of one step: step, then each metric by name (loss, lr, …).",
        "某一步的数值：step，以及各指标 (loss、lr 等)。",
    ),
    "progress": Text(
        "How far it is: done, total, eta_s (seconds, or null).",
        "进度：done、total、eta_s（秒，或 null）。",
    ),
    "frame": Text(
        "A picture of the moment: name, then its data, small inline or an artifact's name.",
        "当下的一帧：name 及其数据，小的直接内联，大的给出产物名。",
    ),
    "artifact": Text(
        "A file is ready: name, type (media type), size (bytes), sha256.",
        "文件已就绪：name、type（媒体类型）、size（字节）、sha256。",
    ),
    "control": Text(
        "A control took effect: action, step, and values for set; replayed after a resume.",
        "控制生效：action、step，set 时还有 values；恢复后重放的带 replayed。",
    ),
    "resumed": Text(
        "A new attempt continues: from_step; metrics beyond it are superseded.",
        "新的尝试接着运行：from_step；其后的旧指标作废。",
    ),
    "error": Text(
        "Why it failed: reason, message, message_zh, and problems for invalid params.",
        "失败原因：reason、message、message_zh；参数无效时还有 problems。",
    ),
    "gap": Text(
        "Earlier events have expired: first is the oldest id still there.",
        "更早的事件已过期：first 是仍保留的最早 id。",
    ),
    "end": Text(
        "The last event: state (succeeded, failed, canceled, aborted), reason, message, "
        "message_zh, result.",
        "最后一个事件：state (succeeded, failed, canceled, aborted)、reason、message、"
        "message_zh、result。",
    ),
}

_TAGS = ("NaN", "Infinity", "-Infinity")
# U+0085, U+2028 and U+2029 end a line for str.splitlines; halves of a surrogate pair are no text.
_LINE_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


class PayloadTooLarge(ValueError):
    """An event's data is over 16 KB: it belongs into an artifact."""


def encode(event: Mapping[str, Any]) -> str:
    """One JSON line, without its line end.

    Raises PayloadTooLarge when `data` takes more than 16,384 bytes, ValueError for a "$num" key
    that tags no number, TypeError for a value that JSON can't say (a tensor, a set, bytes).
    """
    data = dumps(event.get("data", {}))
    size = len(data.encode())
    if size > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(
            f"the data of a {event.get('type')!r} event takes {size} bytes, "
            f"the limit is {MAX_PAYLOAD_BYTES}: write it to an artifact and name that"
        )
    head = dumps({key: value for key, value in event.items() if key != "data"})
    return f'{{"data":{data}}}' if head == "{}" else f'{head[:-1]},"data":{data}}}'


def decode(line: str | bytes) -> dict[str, Any]:
    """The event of a line; tagged numbers stay tagged. Raises ValueError if it is no event."""
    try:
        event = json.loads(line, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the line is nested too deeply") from None
    if not isinstance(event, dict):
        raise ValueError(f"an event is a JSON object, this is a {type(event).__name__}")
    return event


def dumps(value: Any) -> str:
    """`value` as compact JSON on one line, with non-finite numbers tagged."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = _LONE_SURROGATES.sub("\ufffd", text)
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: Any) -> Any:
    """`value` in JSON's own types: scalars of numpy and torch become numbers, NaN becomes a tag."""
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, Text):
        return value.as_dict()
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item") and not getattr(value, "shape", ()):  # a scalar of numpy or torch
        return plain(value.item())
    raise TypeError(f"JSON can't say a {type(value).__name__}; {value!r:.60}")


def _plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"a JSON object's keys are strings, this one is {key!r:.60}")
    if "$num" in value and (len(value) != 1 or value["$num"] not in _TAGS):
        raise ValueError(f'the key "$num" is kept for non-finite numbers: {dict(value)!r:.60}')
    return {key: plain(item) for key, item in value.items()}


def _number(value: float) -> Any:
    if math.isfinite(value):
        return value
    return {"$num": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; non-finite numbers travel tagged")
