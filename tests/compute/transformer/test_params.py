from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from compute.core.errors import InvalidParams, Problem
from compute.core.kinds import get, json_schema, validate
from compute.text import corpora
from compute.transformer.config import parameter_count
from compute.transformer.estimate import config_of
from compute.transformer.params import TrainParams


def refused(name: str, **raw: Any) -> list[Problem]:
    with pytest.raises(InvalidParams) as caught:
        validate(name, raw)
    return caught.value.problems


def test_the_defaults_are_valid_and_small_enough_for_two_cores() -> None:
    params = validate("transformer.train", {})
    assert isinstance(params, TrainParams)
    config = config_of(params, len(corpora.facts("lee").vocabulary))
    assert parameter_count(config) == 469_329
    assert config.d_ff == 4 * params.d_model


@pytest.mark.parametrize("data", corpora.CORPORA)
def test_every_data_set_is_valid_as_it_stands(data: str) -> None:
    assert validate("transformer.train", {"data": data})
    assert validate("transformer.train", {"data": data, "block": 8})  # shorter than the probe


def test_d_model_that_heads_do_not_divide() -> None:
    width, count = refused("transformer.train", d_model=100, heads=8)
    assert (width.pointer, width.nearest) == ("/d_model", [96, 104])
    assert (count.pointer, count.nearest) == ("/heads", [5, 10])
    for text in (width.text.en, width.text.zh):
        assert all(number in text for number in ("100", "8", "96", "104", "5", "10"))


def test_text_shorter_than_the_block() -> None:
    (problem,) = refused("transformer.train", data="text", text="x" * 64, block=64)
    assert problem.pointer == "/text"
    assert "length is 64" in problem.text.en and "at least 65 characters" in problem.text.en
    assert "65" in problem.text.zh
    assert validate("transformer.train", {"data": "text", "text": "x" * 65, "block": 64})
    (problem,) = refused("transformer.train", data="text")
    assert "length is 0" in problem.text.en


def test_a_probe_that_does_not_fit() -> None:
    (problem,) = refused("transformer.train", probe="x" * 65)
    assert problem.pointer == "/probe" and "65" in problem.text.en
    (problem,) = refused("transformer.train", probe="the 汉 fire")
    assert problem.pointer == "/probe" and "“汉” (4)" in problem.text.en
    assert validate("transformer.train", {"probe": "the fire", "data": "lee"})


def test_half_a_character_is_refused() -> None:
    (problem,) = refused("transformer.train", data="text", text="\ud800" * 100)
    assert problem.pointer == "/text"


def test_a_run_that_would_fill_the_disk() -> None:
    big = {"layers": 8, "heads": 16, "block": 256, "data": "text"}
    text = "the quick brown fox " * 20
    (problem,) = refused(
        "transformer.train", **big, text=text, probe=text[:256], steps=5000, snapshot_every=10
    )
    assert problem.pointer == "/snapshot_every" and problem.nearest is not None
    fits = {"snapshot_every": problem.nearest[0], "text": text, "probe": text[:256]}
    assert validate("transformer.train", {**big, **fits, "steps": 5000})
    large = {"layers": 8, "d_model": 512, "steps": 5000}
    (problem,) = refused("transformer.train", **large, checkpoint_every=100)
    assert problem.pointer == "/checkpoint_every" and problem.nearest is not None
    assert validate("transformer.train", {**large, "checkpoint_every": problem.nearest[0]})
    with pytest.raises(InvalidParams):
        validate("transformer.train", {**large, "checkpoint_every": problem.nearest[0] - 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layers", 0),
        ("layers", 9),
        ("heads", 17),
        ("d_model", 8),
        ("block", 257),
        ("lr", 0),
        ("lr", float("nan")),
        ("norm", "middle"),
        ("data", "shakespeare"),
        ("family", "encoder-only"),
        ("dropout", 1.0),
        ("steps", 1.5),
    ],
)
def test_values_out_of_range(name: str, value: object) -> None:
    (problem,) = refused("transformer.train", **{name: value})
    assert problem.pointer == f"/{name}"


def test_sampling_params() -> None:
    for name, value in [("temperature", -1), ("temperature", 6), ("top_k", -1), ("top_p", 0)]:
        (problem,) = refused("transformer.generate", model="m", **{name: value})
        assert problem.pointer == f"/{name}"
    assert validate("transformer.generate", {"model": "m", "temperature": 0, "top_p": 1})


@pytest.mark.parametrize("kind", ["train", "trace", "check", "generate"])
def test_every_field_has_words_in_both_languages(kind: str) -> None:
    schema = json_schema(get(f"transformer.{kind}"))
    for name, field in schema["params"]["properties"].items():
        for words in ("x-label", "x-help"):
            assert field[words]["en"] and field[words]["zh-hans"], name


def test_declaring_kinds_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "import compute.transformer.jobs, compute.transformer.estimate\n"
        "from compute.core.kinds import validate\n"
        "validate('transformer.train', {})\n"
        "heavy = {'torch', 'numpy', 'safetensors', 'gensim', 'django'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
