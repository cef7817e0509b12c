"""script/setup on a machine that lacks something."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "sh dirname cat cksum sed mkdir head tail ls id rm cc make pkg-config fc-list python3".split()
)


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder of programs that has neither redis-server nor a package manager."""
    for name in TOOLS:
        if found := shutil.which(name):
            (tmp_path / name).symlink_to(found)
    return tmp_path


def setup(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(ROOT / "script/setup")],
        env={"PATH": str(path), "HOME": str(path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_a_package_manager_it_lists_what_to_install(bare_path: Path) -> None:
    done = setup(bare_path)
    assert done.returncode == 1
    assert "redis-server" in done.stderr
    assert "Install them with your system's package manager" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_that_is_too_old_is_named(bare_path: Path, tmp_path: Path) -> None:
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = setup(bare_path, PYTHON=str(old))
    assert done.returncode == 1
    assert f"PYTHON={old} is not a Python 3.11, 3.12 or 3.13." in done.stderr


def test_scripts_are_plain_sh() -> None:
    for script in (ROOT / "script").iterdir():
        subprocess.run(["sh", "-n", str(script)], check=True)
