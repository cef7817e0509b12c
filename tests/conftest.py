"""Fixtures for every test that needs the real parts."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playground.web import catalogues
from tests.stack import RedisServer, Stack


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="the slow tests too")
    parser.addoption(
        "--slow-sample", type=int, default=0, metavar="N", help="N of the slow tests, by the seed"
    )
    parser.addoption(
        "--database", choices=["sqlite", "mysql"], default="sqlite", help="of the running stack"
    )
    parser.addoption("--slow-seed", default="", help="default: the commit that is checked out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out slow tests and soaks, but for those asked for: all, a sample, or by name."""
    by_name = any("::" in argument for argument in config.args)
    if config.getoption("--all") or by_name or "slow" in config.getoption("-m"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    soak = [item for item in items if item.get_closest_marker("soak")]
    chosen = _sample(slow, config.getoption("--slow-sample"), config.getoption("--slow-seed"))
    dropped = [item for item in (*slow, *soak) if item not in chosen]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def _sample(slow: list[pytest.Item], number: int, seed: str) -> list[pytest.Item]:
    if not number:
        return []
    if not seed:
        command = ["git", "rev-parse", "HEAD"]
        seed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    chosen = random.Random(seed).sample(slow, min(number, len(slow)))
    names = ", ".join(item.nodeid for item in chosen)
    print(f"of {len(slow)} slow tests, --slow-seed {seed} takes: {names}")
    return chosen


@pytest.fixture(scope="session", autouse=True)
def compiled_catalogues() -> None:
    """The catalogues as they are in the tree now, not as they were compiled last, if ever."""
    catalogues.compile_all()


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A running playground: `.url`, `.port`, `.var`, `.env`."""
    running = Stack(database=request.config.getoption("--database"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def mysql_stack() -> Iterator[Stack]:
    """The same on a private MariaDB: `.mariadb`."""
    running = Stack(database="mysql")
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A private Redis on a unix socket, for tests in this process."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="pgr-"))
    server = RedisServer(folder)
    server.start()
    yield server
    server.stop()
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pipe(redis_server: RedisServer, settings: Any, tmp_path: Path) -> Iterator[RedisServer]:
    """Settings of this process that lead to the private Redis and to a folder of the test's own."""
    from playground import redis

    settings.REDIS_URL = redis_server.url
    settings.VAR_DIR = tmp_path
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"
    settings.SPOOL_DIR = tmp_path / "spool"
    redis.shared.cache_clear()
    client = redis.shared()
    client.flushdb()
    yield redis_server
    client.close()
    redis.shared.cache_clear()


@pytest.fixture(scope="session")
def static_manifest() -> Iterator[Path]:
    """Collected static files with their manifest, for pages rendered in this process."""
    import shutil
    import tempfile

    from django.core.management import call_command
    from django.test import override_settings

    folder = Path(tempfile.mkdtemp(prefix="pgs-"))
    with override_settings(STATIC_ROOT=folder):
        call_command("collectstatic", "--no-input", verbosity=0)
        yield folder
    shutil.rmtree(folder, ignore_errors=True)
