"""A model trained on a file: in a notebook by its path, on the site by an upload's id."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from compute.core import run
from compute.core.errors import InvalidParams, UserError
from compute.core.execution import Spec, execute
from compute.core.kinds import Source, get, json_schema, validate
from compute.text import intake
from compute.transformer.params import TrainParams

TINY: dict[str, Any] = {
    "layers": 1,
    "heads": 1,
    "d_model": 16,
    "block": 16,
    "batch": 2,
    "steps": 2,
    "warmup": 1,
}
POEM = "床前明月光，疑是地上霜。\r\n舉頭望明月，低頭思故鄉。\r\n" * 8


@pytest.fixture
def poem(tmp_path: Path) -> Path:
    file = tmp_path / "poem.txt"
    file.write_bytes(POEM.encode("gb18030"))
    return file


def test_a_path_in_a_notebook(tmp_path: Path, poem: Path) -> None:
    done = run("transformer.train", {**TINY, "data": str(poem)}, dir=tmp_path / "run")
    vocabulary = json.loads((done.dir / "tokenizer.json").read_text("utf-8"))["vocabulary"]
    assert vocabulary == sorted(set(POEM) - {"\r"})
    poem.unlink()
    written = run(
        "transformer.generate", {"model": str(done.dir), "prompt": "明月", "max_tokens": 4}
    )
    assert set(written.result["text"]) <= set(vocabulary)
    traced = run("transformer.trace", {"model": str(done.dir), "text": "明月"})
    assert traced.result["tokens"] == ["明", "月"]


def test_a_path_to_nothing_or_to_no_text(tmp_path: Path, poem: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        run("transformer.train", {**TINY, "data": str(tmp_path / "none.txt")})
    poem.write_bytes(b"%PDF-1.7\n")
    with pytest.raises(UserError, match="a PDF document"):
        run("transformer.train", {**TINY, "data": str(poem)})
    poem.write_text("short", encoding="utf-8")
    with pytest.raises(InvalidParams) as caught:
        run("transformer.train", {**TINY, "data": str(poem)})
    assert [problem.pointer for problem in caught.value.problems] == ["/data"]


def test_the_site_takes_no_paths(tmp_path: Path, poem: Path) -> None:
    """A runner outside a notebook reads what it is given as an input, and nothing else."""
    said: list[Any] = []
    spec = Spec("job", "transformer.train", {**TINY, "data": str(poem)}, tmp_path / "run")
    outcome = execute(spec, lambda type, data: said.append((type, data)))
    assert outcome.state == "failed" and "has been deleted" in str(outcome.raised)
    given = Spec(
        "job",
        "transformer.train",
        {**TINY, "data": "0" * 20},
        tmp_path / "run",
        inputs={"data": str(poem)},
    )
    assert execute(given, lambda type, data: None).state == "succeeded"


def test_the_check_and_the_job_watch_the_same_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "upload"
    folder.mkdir()
    text = "\n\n  I\nCall me Ishmael. Some years ago, never mind how long precisely.\n" * 9
    (folder / intake.SENT).write_text(text, encoding="utf-8")
    found = intake.take(folder)
    assert found["about"]["first"] == "I\nCall me Ishmael. Some years ag"
    kept = folder / "text.txt"
    done = run("transformer.train", {**TINY, "data": str(kept)}, dir=tmp_path / "run")
    setup = next(e["data"] for e in done.events if e["data"].get("name") == "setup")
    assert "".join(setup["probe"]) == found["about"]["first"][:16]
    # The check before queueing knows the same facts from about.json alone.
    kind = get("transformer.train")
    params = validate("transformer.train", {**TINY, "data": "0" * 20, "probe": "Ж"})
    assert isinstance(params, TrainParams) and kind.check is not None
    files = {path.name: path for path in folder.iterdir()}
    (problem,) = kind.check(params, {"data": Source(files, True)})
    assert problem.pointer == "/probe" and "Ж" in problem.text.en


@pytest.mark.parametrize("value", ["0" * 20, "/tmp/x.txt", "poem.txt", "..\\x"])
def test_ids_and_paths_are_possible_data(value: str) -> None:
    assert validate("transformer.train", {"data": value})


@pytest.mark.parametrize("value", ["shakespeare", "", "0" * 19, "i" * 20, 7, ["lee"]])
def test_other_names_are_not(value: Any) -> None:
    with pytest.raises(InvalidParams) as caught:
        validate("transformer.train", {"data": value})
    (problem,) = caught.value.problems
    assert problem.pointer == "/data" and "lee, kjv, zh, text" in problem.text.en
    assert "the id of a file that you have uploaded" in problem.text.en


def test_the_schema_says_what_the_param_takes() -> None:
    field = json_schema(get("transformer.train"))["params"]["properties"]["data"]
    validator = jsonschema_rs.validator_for(
        {key: value for key, value in field.items() if not key.startswith("x-")}
    )
    assert all(validator.is_valid(value) for value in ("lee", "text", "01m8qa988yrt842eah4b"))
    assert not any(validator.is_valid(value) for value in ("shakespeare", "", 7, "0" * 21))
    assert field["x-upload"] == "text" and field["x-own"] == "text"


def test_refs_and_params_agree_about_uploads() -> None:
    kind = get("transformer.train")
    for refs in ({}, {"data": ("upload:vectors",)}, {"data": ("upload:pictures",)}):
        with pytest.raises(ValueError, match="the same forms of uploads"):
            dataclasses.replace(kind, refs=refs)
    assert dataclasses.replace(kind, refs={"data": ("upload:text", "embeddings.train")})
