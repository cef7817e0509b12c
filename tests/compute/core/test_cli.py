"""`python -m compute` as a person types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compute.core.cli import UsageError, main, parse
from compute.core.kinds import get
from tests.compute.core.harness import ROOT, environment


def shell(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compute", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env=environment() | env | {"PYTHONUTF8": "1"},
        timeout=60,
    )


def test_kinds_are_listed() -> None:
    done = shell()
    assert done.returncode == 0
    assert ["test.count", "Count"] in [line.split() for line in done.stdout.splitlines()]


def test_help_names_every_param_in_the_language_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["test.form", "--help", "--lang", "en"]) == 0
    english = capsys.readouterr().out
    assert "--d-model  a whole number from 16 to 512, a multiple of 8  [default 96]" in english
    assert "--prompt  text of 1 to 20 characters  [required]" in english
    assert '--norm  pre | post  [default "pre"]' in english
    assert main(["test.form", "-h", "--lang=zh-hans"]) == 0
    chinese = capsys.readouterr().out
    assert "--heads  1 到 16 之间的整数  [默认 4]" in chinese and "注意力头数: 头。" in chinese


def test_a_run_is_readable(tmp_path: Path) -> None:
    done = shell("test.count", "--steps", "3", "--lr=2e-1", "--dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "step 2  lr 0.2" in lines
    assert lines[-3:] == ["steps = 3", "lr = 0.2", f"Files are in {tmp_path}"]


def test_json_lines_are_nothing_but_events(tmp_path: Path) -> None:
    done = shell("test.count", "--steps", "2", "--json", "--dir", str(tmp_path))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["type"] for e in events] == ["state", "metric", "metric", "end"]
    assert events[-1]["data"]["result"] == {"steps": 2, "lr": 0.5}


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["test.cuont"], 2, 'There is no kind "test.cuont". Did you mean "test.count"?'),
        (["test.count", "--stpes", "3"], 2, 'Did you mean "steps"?'),
        (["test.count", "--steps", "many"], 2, "Steps: give a whole number from 1 to 100000; you"),
        (["test.count", "--lr", "NaN"], 2, "you gave nan"),
        (["test.count", "--lr", "Infinity"], 2, "you gave inf"),
        (["test.count", "--lr", "-3"], 2, "you gave -3"),
        (["test.count", "--steps"], 2, 'Option "--steps" needs a value.'),
        (["test.count", "3"], 2, '"3" is not an option'),
        (["test.count", "--seed", "x"], 2, "--seed takes a whole number"),
        (["test.count", "--lang", "zh", "--steps", "0"], 2, "请填 1 到 100000 之间的整数"),
        (["test.case", "--case", "user_error"], 1, "Pick a longer text."),
        (["test.case", "--case", "interrupted"], 130, "You canceled the job."),
    ],
)
def test_a_mistake_is_one_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: list[str],
    status: int,
    says: str,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert main(words) == status
    error = capsys.readouterr().err
    assert says in error and "Traceback" not in error and error.count("\n") == 1


def test_words_become_the_types_of_their_fields() -> None:
    words = "--heads 2 --d-ff null --prompt 12 --shuffle false --terms".split()
    params, options = parse(get("test.form"), [*words, '["a"]', "--json", "--dir=x=y"])
    assert params == {"heads": 2, "d_ff": None, "prompt": "12", "shuffle": False, "terms": ["a"]}
    assert options == {"json": "", "dir": "x=y"}
    with pytest.raises(UsageError):
        parse(get("test.form"), ["--"])


def test_ones_own_seed_goes_to_the_params() -> None:
    assert parse(get("test.case"), ["--seed", "3"]) == ({"seed": 3}, {})
    assert parse(get("test.count"), ["--seed", "3"]) == ({}, {"seed": "3"})


def test_the_environment_chooses_the_language() -> None:
    assert "类型" in shell(LANG="zh_CN.UTF-8").stdout
    assert "Kinds" in shell(LANG="de_DE.UTF-8").stdout


def test_ctrl_c_cancels_with_one_sentence(tmp_path: Path) -> None:
    words = ["test.count", "--steps", "100000", "--wait-ms", "10", "--dir", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "compute", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b"You canceled the job.\n"


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "compute", "test.count", "--dir", str(tmp_path)],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
        timeout=60,
    )
    os.close(write)
    assert done.returncode == 1 and b"Traceback" not in done.stderr
