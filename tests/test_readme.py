"""What README.md and the guide tell people to paste into a shell works when it is pasted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.stack import Stack

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "http://127.0.0.1:8000"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")


def blocks(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"the example no longer says {old!r}"
    return text.replace(old, new)


def shell(script: str, **environment: str) -> str:
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout[-2000:]}"
    return done.stdout


def objects(line: str) -> list[dict[str, Any]]:
    """JSON objects, one behind the other: curl adds no line end, a header ends in spaces."""
    found = []
    while line:
        value, end = json.JSONDecoder().raw_decode(line)
        found.append(value)
        line = line[end:].strip()
    return found


def until_ended(stack: Stack, job: dict[str, Any]) -> dict[str, Any]:
    """The job once it has ended: a busy machine may need longer than the request waits."""
    until = time.monotonic() + 60
    while job["ended_at"] is None and time.monotonic() < until:
        time.sleep(0.2)
        with urllib.request.urlopen(stack.url + job["urls"]["self"], timeout=10) as answer:
            job = json.load(answer)
    return job


@needs_curl
def test_the_flow_by_curl(stack: Stack) -> None:
    (block,) = [block for block in blocks(ROOT / "README.md") if "curl" in block]
    block = replaced(replaced(block, ADDRESS, stack.url), '"steps": 200', '"steps": 10')
    said = shell(block)
    assert '"name":"transformer.train"' in said
    events = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: ")]
    assert [event["data"]["step"] for event in events if event["type"] == "metric"][-1] == 10
    assert events[-1]["type"] == "end" and events[-1]["data"]["state"] == "succeeded"
    written = until_ended(stack, json.loads(said.splitlines()[-1]))
    assert written["state"] == "succeeded", written
    assert written["result"]["prompt"] == "The " and written["result"]["tokens"] == 40


def test_the_flow_without_a_server(tmp_path: Path) -> None:
    (block,) = [block for block in blocks(ROOT / "README.md") if "-m compute" in block]
    block = replaced(block, ".venv/bin/python", sys.executable)
    block = replaced(replaced(block, "--steps 200", "--steps 3"), '"steps": 50', '"steps": 3')
    block = replaced(block, "/tmp/run", str(tmp_path / "run"))
    said = shell(block, OMP_NUM_THREADS="1", TMPDIR=str(tmp_path))
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert "'steps': 3" in said


def test_the_guide_without_a_server(tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "playground/web/docs/notebook.en.md")
    block = replaced(block, ".venv/bin/python", sys.executable)
    block = replaced(block, "/tmp/run", str(tmp_path / "run"))
    said = shell(block, OMP_NUM_THREADS="1", LC_ALL="C.UTF-8")
    assert "transformer.check" in said and "--d-model" in said
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert "tokens = 40" in said


@needs_curl
def test_the_api_page_by_curl(stack: Stack) -> None:
    script = "\necho\n".join(blocks(ROOT / "playground/web/docs/api.en.md"))
    said = shell(replaced(script, ADDRESS, stack.url))
    lines = said.splitlines()
    ids = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
    # The whole story, then once more from the third event on.
    again = ids.index("1-4", ids.index("1-4") + 1)
    assert ids[:again] == [f"1-{n}" for n in range(1, again + 1)]
    assert ids[again:] == ids[3:again]
    answers = [answer for line in lines if line.startswith("{") for answer in objects(line)]
    short = next(answer for answer in answers if answer.get("params", {}).get("steps") == 5)
    assert until_ended(stack, short)["state"] == "succeeded"
    (page,) = [answer for answer in answers if answer.get("next") == "1-5"]
    assert [event["id"] for event in page["items"]] == ["1-3", "1-4", "1-5"]
    header = answers[-1]
    assert header["attention"]["shape"][:2] == [1, 4]
