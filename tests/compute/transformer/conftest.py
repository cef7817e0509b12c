from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from compute.core import Run, run

# Markup, Chinese, an emoji of several code points and white space, all of it data.
TEXT = (
    'the cat "><img src=x onerror=alert(1)> sat\n\t我说你倒是快点啊。👨‍👩‍👧 a<b<c  the dog ran\n'
    * 12
)
SMALL: dict[str, Any] = {
    "data": "text",
    "text": TEXT,
    "layers": 2,
    "heads": 2,
    "d_model": 16,
    "block": 16,
    "batch": 4,
    "steps": 30,
    "eval_every": 10,
    "snapshot_every": 10,
    "checkpoint_every": 10,
    "warmup": 5,
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small models are fastest, and bit for bit repeatable, on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    """Params of a run that takes a second."""
    return dict(SMALL)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run with these params."""
    return run("transformer.train", SMALL, dir=tmp_path_factory.mktemp("trained"), threads=1)


@pytest.fixture(scope="session")
def trained_post(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Post-LN, sinusoidal positions, an odd number of columns a head."""
    changes = {"norm": "post", "positions": "sinusoidal", "heads": 4, "d_model": 20, "d_ff": 30}
    folder = tmp_path_factory.mktemp("trained-post")
    return run("transformer.train", {**SMALL, **changes, "steps": 12}, dir=folder, threads=1)


@pytest.fixture(params=["trained", "trained_post"])
def either(request: pytest.FixtureRequest) -> Path:
    """The folder of each of the two runs in turn."""
    folder: Path = request.getfixturevalue(request.param).dir
    return folder
