from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.compute.core import sample_kinds  # noqa: F401  (registers the kinds)
from tests.compute.core.harness import RunnerProcess


@pytest.fixture
def start() -> Iterator[Callable[..., RunnerProcess]]:
    """Starts runner processes and ends them."""
    started: list[RunnerProcess] = []

    def make(*args: str, **more: bool) -> RunnerProcess:
        started.append(RunnerProcess(*args, **more))
        return started[-1]

    yield make
    for runner in started:
        runner.close()


@pytest.fixture
def runner(start: Callable[..., RunnerProcess]) -> RunnerProcess:
    return start()
