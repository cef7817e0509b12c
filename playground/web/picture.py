"""The home page's picture, made out of a real run: `python -m playground.web.picture FOLDER`.

FOLDER is the artifact folder of a `transformer.train` run; `events.jsonl` in it holds its events.
Writes `static/img/attention.u8` (the bytes that `<attention-film>` draws, frame after frame) and
`playground/web/picture.json` (what they show). Reads safetensors by hand, since the site imports
no numeric library.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from functools import lru_cache
from pathlib import Path
from typing import Any

FACTS = Path(__file__).with_name("picture.json")
FILM = Path(__file__).resolve().parents[2] / "static" / "img" / "attention.u8"
# Dense at first, where most of the change is.
STEPS = (0, 10, 20, 40, 80, 120, 160, 200, 280, 360, 480, 600, 800, 1000, 1240, 1500)


@lru_cache
def facts() -> dict[str, Any]:
    """What the picture shows: steps, layers, heads, probe, first and last loss."""
    loaded: dict[str, Any] = json.loads(FACTS.read_text(encoding="utf-8"))
    return loaded


def attention(file: Path) -> tuple[list[int], array[float]]:
    """Shape (L, h, T, T) and the weights of one snapshot."""
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8 : 8 + length])["attention"]
    start, end = entry["data_offsets"]
    values = array("f")
    values.frombytes(data[8 + length + start : 8 + length + end])
    return entry["shape"], values


def grey(shape: list[int], values: array[float]) -> bytes:
    """One byte a weight (255 is 1), row by row: layers below each other, heads side by side."""
    layers, heads, tokens, _ = shape
    frame = bytearray()
    for layer in range(layers):
        for query in range(tokens):
            for head in range(heads):
                start = ((layer * heads + head) * tokens + query) * tokens
                frame += bytes(round(255 * value) for value in values[start : start + tokens])
    return bytes(frame)


def make(folder: Path) -> None:
    """Writes the picture and its facts. Raises FileNotFoundError when a snapshot is missing."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    setup = next(e["data"] for e in events if e["type"] == "frame" and e["data"]["name"] == "setup")
    losses = {e["data"]["step"]: e["data"]["loss"] for e in events if e["type"] == "metric"}
    frames = [attention(folder / f"frames/attention-{step:06}.safetensors") for step in STEPS]
    FILM.write_bytes(b"".join(grey(shape, values) for shape, values in frames))
    shape, _ = frames[0]
    known = {
        "steps": list(STEPS),
        "layers": shape[0],
        "heads": shape[1],
        "tokens": shape[2],
        "probe": "".join(setup["probe"]),
        "first_loss": round(losses[min(losses)], 2),
        "last_loss": round(losses[max(losses)], 2),
    }
    FACTS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
