from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from playground import env, paths
from tests.stack import ROOT


def test_defaults_hold_for_unset_and_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("X", raising=False)
    assert env.envint("X", 7, low=1, high=9) == 7
    monkeypatch.setenv("X", "  ")
    assert env.envbool("X", True) is True


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DEBUG", "maybe", "DEBUG is 'maybe'; set it to 1 or 0."),
        ("PORT", "http", "PORT is 'http'; set it to a whole number from 1 to 65535."),
        ("PORT", "70000", "PORT is 70000; it must lie from 1 to 65535."),
        ("LOG_LEVEL", "loud", "LOG_LEVEL is 'loud'; set it to one of: DEBUG, INFO"),
        ("VAR_DIR", "here", "VAR_DIR is 'here'; give an absolute path."),
        ("REDIS_URL", "localhost:6379", "it must start with unix:///"),
        ("DATABASE_URL", "postgres://x/y", "DATABASE_URL must look like mysql://"),
        ("TRAINING_DEVICES", "gpu", "set it to cpu, or to CUDA devices, each once: cuda:0 cuda:1."),
        ("TRAINING_DEVICES", "cuda:0 cuda:0", "TRAINING_DEVICES is 'cuda:0 cuda:0'; set it to"),
        ("SECRET_KEY", "short", "SECRET_KEY is too short"),
        ("SERVER_MODE", "1", "SERVER_MODE=1 needs SECRET_KEY"),
    ],
)
def test_a_bad_value_stops_the_start_with_a_sentence(name: str, value: str, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import playground.settings"],
        env={**os.environ, name: value},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["up", "dispatch", "check"])
def test_the_start_prints_that_sentence_and_nothing_else(command: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), command],
        env={**os.environ, "PORT": "abc"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stderr == "PORT is 'abc'; set it to a whole number from 1 to 65535.\n"
    assert (done.returncode, done.stdout) == (1, "")


def test_mysql_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("D", "mysql://u%40x:p%2F@db:3307/play?unix_socket=/run/m.sock")
    found = env.database("D", tmp_path / "x")
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("u@x", "p/", "play")
    assert (found["HOST"], found["PORT"]) == ("/run/m.sock", "3307")
    options = found["OPTIONS"]
    assert isinstance(options, dict) and options["charset"] == "utf8mb4"
    # A server that hangs is left in the end: no call to it waits for ever.
    assert all(0 < options[f"{what}_timeout"] <= 60 for what in ("connect", "read", "write"))


def test_mysql_url_with_an_unknown_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("D", "mysql://u@db/play?ssl=1")
    with pytest.raises(ImproperlyConfigured, match="unknown options: ssl"):
        env.database("D", tmp_path / "x")


def test_a_long_folder_gets_its_socket_elsewhere(tmp_path: Path) -> None:
    assert paths.redis_socket(Path("/srv/var")) == Path("/srv/var/redis.sock")
    far = tmp_path / ("x" * 120)
    found = paths.redis_socket(far)
    assert len(os.fsencode(found)) <= paths.SOCKET_PATH_BYTES
    assert found == paths.redis_socket(far)
    assert found != paths.redis_socket(far / "y")


def test_a_private_folder_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir(mode=0o755)
    paths.private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_private_folder_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ImproperlyConfigured, match="belongs to someone else"):
        paths.private_folder(tmp_path / "link")


def test_a_secret_is_made_once_and_for_us_alone(tmp_path: Path) -> None:
    file = tmp_path / "var" / "key"
    first = paths.secret(file)
    assert len(first) == 50
    assert paths.secret(file) == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [p.name for p in file.parent.iterdir()] == ["key"]


def test_each_cuda_device_is_one_training_slot() -> None:
    code = "from playground import settings as s; print(s.SLOTS['training'], s.DEVICES['training'])"

    def shown(**env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True
        )

    assert shown(TRAINING_SLOTS="2").stdout == "2 ['cpu', 'cpu']\n"
    assert shown(TRAINING_DEVICES="cuda:0,cuda:1").stdout == "2 ['cuda:0', 'cuda:1']\n"
    refused = shown(TRAINING_DEVICES="cuda:0 cuda:1", TRAINING_SLOTS="3")
    assert "leave TRAINING_SLOTS unset" in refused.stderr.splitlines()[-1]
