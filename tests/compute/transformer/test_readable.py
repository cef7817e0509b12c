"""What a run's small files tell about its model, before a job is queued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compute.core import InvalidParams, Run, kinds, run
from compute.core.errors import Problem
from compute.core.kinds import Source


def check(kind: str, folder: Path, *, ended: bool = True, **params: Any) -> list[Problem]:
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    declared = kinds.get(kind)
    assert declared.check is not None
    valid = kinds.validate(kind, {"model": "x", **params})
    return declared.check(valid, {"model": Source(files, ended)})


CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("transformer.trace", {}, []),
    ("transformer.trace", {"text": "the cat"}, []),
    ("transformer.trace", {"text": "the cat sat the cat"}, ["/text"]),
    ("transformer.trace", {"text": "QQ"}, ["/text"]),
    ("transformer.trace", {"text": "Q" * 17}, ["/text", "/text"]),
    ("transformer.check", {"text": "Q", "tensor": "logits", "index": [0, 0]}, ["/text"]),
    ("transformer.generate", {"prompt": "the cat sat the cat"}, []),  # cropped, not refused
    ("transformer.generate", {"prompt": "Q"}, ["/prompt"]),
    ("transformer.trace", {"weights": "model.safetensors"}, []),
    ("transformer.trace", {"weights": "checkpoints/step-999999.safetensors"}, ["/weights"]),
    ("transformer.generate", {"weights": "config.json"}, ["/weights"]),
    ("transformer.trace", {"weights": "../model.safetensors"}, ["/weights"]),
    ("transformer.trace", {"weights": "checkpoints/../model.safetensors"}, ["/weights"]),
    ("transformer.trace", {"weights": "/etc/passwd"}, ["/weights"]),
]


@pytest.mark.parametrize(("kind", "params", "pointers"), CASES)
def test_the_text_fits_the_model(
    trained: Run, kind: str, params: dict[str, Any], pointers: list[str], tmp_path: Path
) -> None:
    found = check(kind, trained.dir, **params)
    assert [problem.pointer for problem in found] == pointers
    if found:  # and the job says the same, where nothing was checked before
        with pytest.raises(InvalidParams) as refused:
            run(kind, {"model": str(trained.dir), **params}, dir=tmp_path)
        assert refused.value.problems == found[:1]


def test_a_run_without_weights(trained: Run, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((trained.dir / name).read_bytes())
    (found,) = check("transformer.trace", tmp_path, ended=False)
    assert found.pointer == "/model" and "no weights yet" in found.text.en
    (found,) = check("transformer.generate", tmp_path, ended=True)
    assert found.pointer == "/model" and "ended before" in found.text.en
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/step-000010.safetensors").touch()
    assert check("transformer.trace", tmp_path, ended=False) == []


def test_damaged_files_are_left_to_the_job(tmp_path: Path) -> None:
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("[]")
    assert check("transformer.trace", tmp_path, text="a") == []
