"""Pause, resume, step, set, cancel, deadlines and ends from outside, on a real runner process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compute.core.harness import ROOT, Event, RunnerProcess, environment, is_type, of_type

Start = Callable[..., RunnerProcess]
LONG = {"steps": 100_000, "wait_ms": 5}


def begin(runner: RunnerProcess, dir: Path, **more: Any) -> list[Event]:
    """A long count that has got somewhere; returns its events so far."""
    runner.spec("test.count", LONG, dir, **more)
    return runner.until(is_type("metric", step=3))


def gone(pid: int, within_s: float = 10) -> bool:
    """Whether a process ends (or is a zombie that only waits to be collected) in time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_pause_saves_says_so_and_holds(runner: RunnerProcess, tmp_path: Path) -> None:
    events = begin(runner, tmp_path)
    runner.control("pause")
    events += runner.until(is_type("state", state="paused"))
    assert [e["type"] for e in events[-3:]] == ["artifact", "control", "state"]
    step = events[-2]["data"]["step"]
    assert events[-2]["data"] == {"action": "pause", "step": step}
    assert events[-1]["data"] == {"state": "paused", "attempt": 1, "step": step}
    assert (tmp_path / "checkpoint.txt").read_text() == str(step)
    assert of_type(events, "metric")[-1]["step"] == step - 1  # it took effect before that step
    time.sleep(0.2)
    assert runner.lines.empty()
    runner.control("resume")
    events = runner.until(is_type("metric"))
    assert [e["data"] for e in events[:2]] == [
        {"action": "resume", "step": step},
        {"state": "running", "attempt": 1},
    ]
    assert events[-1]["data"]["step"] == step


def test_a_step_is_exactly_one_step_and_two_are_two(runner: RunnerProcess, tmp_path: Path) -> None:
    begin(runner, tmp_path)
    runner.control("pause")
    at = runner.until(is_type("state", state="paused"))[-1]["data"]["step"]
    runner.control("step")
    events = runner.until(is_type("state", state="paused"))
    assert [m["step"] for m in of_type(events, "metric")] == [at]
    assert of_type(events, "control") == [{"action": "step", "step": at}]
    assert [s["state"] for s in of_type(events, "state")] == ["running", "paused"]
    assert (tmp_path / "checkpoint.txt").read_text() == str(at + 1)
    runner.control("step")
    runner.control("step")
    events = runner.until(is_type("state", state="paused", step=at + 3))
    assert [m["step"] for m in of_type(events, "metric")] == [at + 1, at + 2]


def test_a_step_while_running_pauses_after_it(runner: RunnerProcess, tmp_path: Path) -> None:
    begin(runner, tmp_path)
    runner.control("step")
    events = runner.until(is_type("state", state="paused"))
    (control,) = of_type(events, "control")
    assert control["action"] == "step"
    assert events[-1]["data"]["step"] == control["step"] + 1


def test_set_changes_the_next_step_and_is_logged_with_it(
    runner: RunnerProcess, tmp_path: Path
) -> None:
    begin(runner, tmp_path)
    runner.control("set", values={"lr": 0.25})
    events = runner.until(is_type("metric", lr=0.25))
    (control,) = of_type(events, "control")
    assert control == {"action": "set", "step": events[-1]["data"]["step"], "values": {"lr": 0.25}}


def test_set_works_while_paused(runner: RunnerProcess, tmp_path: Path) -> None:
    begin(runner, tmp_path)
    runner.control("pause")
    at = runner.until(is_type("state", state="paused"))[-1]["data"]["step"]
    runner.control("set", values={"lr": 2})
    control = runner.until(is_type("control"))[-1]["data"]
    assert control == {"action": "set", "step": at, "values": {"lr": 2.0}}
    runner.control("resume")
    assert runner.until(is_type("metric"))[-1]["data"] == {"step": at, "lr": 2.0}


@pytest.mark.parametrize(
    ("control", "says"),
    [
        ({"action": "set", "values": {"lr": 99}}, "Learning rate: give a number"),
        ({"action": "set", "values": {"lr": "fast"}}, 'you gave "fast"'),
        ({"action": "set", "values": {"steps": 3}}, "can't be changed while the job runs"),
        ({"action": "set", "values": {}}, "Say which values"),
        ({"action": "set"}, "Say which values"),
        ({"action": "fly"}, 'does not take the control "fly"'),
        ({"action": "stop"}, "does not take the control"),
        ({"action": None}, "does not take the control"),
        ({"action": ["cancel"]}, "does not take the control"),
        ({"action": "resume"}, "not paused"),
    ],
)
def test_a_control_that_makes_no_sense_is_told_and_the_job_goes_on(
    runner: RunnerProcess, tmp_path: Path, control: dict[str, Any], says: str
) -> None:
    begin(runner, tmp_path)
    runner.send({"control": control})
    log = runner.until(is_type("log"))[-1]["data"]
    assert says in log["text"] and log["text_zh"] != log["text"]
    assert runner.until(is_type("metric"))[-1]["data"]["lr"] == 0.5
    runner.send(b"neither")
    assert "neither a spec nor a control" in runner.until(is_type("log"))[-1]["data"]["text"]
    runner.until(is_type("metric"))


def test_a_kind_without_controls_says_which_came_too_late(
    runner: RunnerProcess, tmp_path: Path
) -> None:
    runner.spec("test.case", {"case": "draws"}, tmp_path)
    runner.control("pause")
    events = runner.to_end()
    assert events[-1]["data"]["state"] == "succeeded"
    assert ['"pause"' in log["text"] for log in of_type(events, "log")] == [True]


@pytest.mark.parametrize("paused", [False, True])
def test_cancel_ends_the_job_and_not_the_process(
    runner: RunnerProcess, tmp_path: Path, paused: bool
) -> None:
    begin(runner, tmp_path)
    if paused:
        runner.control("pause")
        runner.until(is_type("state", state="paused"))
    runner.control("cancel")
    runner.control("cancel")
    events = runner.to_end(timeout=5)
    assert [c["action"] for c in of_type(events, "control")] == ["cancel"]
    end = events[-1]["data"]
    assert (end["state"], end["reason"]) == ("canceled", None)
    assert end["message"] == "You canceled the job." and end["message_zh"] == "你取消了任务。"
    assert not of_type(events, "error")
    runner.control("cancel")  # to nobody: the next job must not feel it
    time.sleep(0.1)
    runner.spec("test.count", {"steps": 2}, tmp_path)
    assert runner.to_end()[-1]["data"]["state"] == "succeeded"


def test_a_control_for_another_job_is_not_ours(runner: RunnerProcess, tmp_path: Path) -> None:
    begin(runner, tmp_path, job="mine")
    runner.control("cancel", job="another")
    runner.control("set", values={"lr": 3}, job="mine")
    runner.until(is_type("metric", lr=3.0))
    runner.control("cancel", job="mine")
    assert runner.to_end()[-1]["data"]["state"] == "canceled"


def test_controls_sent_with_the_spec_wait_for_the_first_step(
    runner: RunnerProcess, tmp_path: Path
) -> None:
    runner.spec("test.count", LONG, tmp_path)
    runner.control("cancel")
    events = runner.to_end()
    assert of_type(events, "control") == [{"action": "cancel", "step": 0}]
    assert not of_type(events, "metric")


def test_a_resume_goes_on_and_repeats_what_was_set(runner: RunnerProcess, tmp_path: Path) -> None:
    """Attempt 2 starts at the checkpoint and is told again what came after it."""
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    (first / "checkpoint.txt").write_text("10")
    replay = [
        {"action": "set", "step": 4, "values": {"lr": 0.1}},  # in the checkpoint already
        {"action": "pause", "step": 11},
        {"action": "set", "step": 12, "values": {"lr": 0.2}},
        {"action": "set", "step": 10, "values": {"lr": 0.3}},
    ]
    params = {"steps": 14}
    runner.spec("test.count", params, second, attempt=2, resume_from=str(first), replay=replay)
    events = runner.to_end()
    assert of_type(events, "resumed") == [{"from_step": 10}]
    lrs = [(m["step"], m["lr"]) for m in of_type(events, "metric")]
    assert lrs == [(10, 0.3), (11, 0.3), (12, 0.2), (13, 0.2)]
    assert [(c["step"], c["replayed"]) for c in of_type(events, "control")] == [
        (10, True),
        (12, True),
    ]


def test_a_deadline_ends_a_job_that_ticks(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.count", LONG, tmp_path, deadline_s=0.3)
    events = runner.to_end(timeout=10)
    last = of_type(events, "metric")[-1]["step"]
    end = events[-1]["data"]
    assert end["state"] == "failed" and end["reason"] == "deadline_exceeded"
    assert end["message"] == (
        f"The job reached its time limit of 0.3 s at step {last + 1}. What it made so far is kept."
    )
    runner.spec("test.count", {"steps": 2}, tmp_path)  # the process is as good as before
    assert runner.to_end()[-1]["data"]["state"] == "succeeded"


def test_the_deadline_stands_still_while_paused(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.count", {"steps": 20, "wait_ms": 20}, tmp_path, deadline_s=2)
    runner.control("pause")
    runner.until(is_type("state", state="paused"))
    time.sleep(2.5)
    runner.control("resume")
    assert runner.to_end()[-1]["data"]["state"] == "succeeded"


def test_a_runaway_job_is_ended_with_its_process(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.case", {"case": "spins"}, tmp_path, deadline_s=0.3)
    began = time.monotonic()
    events = runner.to_end(timeout=15)
    assert 2 < time.monotonic() - began < 12  # the grace for jobs that end by themselves
    assert [e["type"] for e in events] == ["state", "error", "end"]
    assert events[-1]["data"]["reason"] == "deadline_exceeded"
    assert "did not stop by itself" in events[-1]["data"]["message"]
    assert runner.next() is None and runner.wait() == -signal.SIGKILL


def test_stdin_closed_in_the_middle_takes_the_whole_group(
    runner: RunnerProcess, tmp_path: Path
) -> None:
    runner.spec("test.case", {"case": "sleeps_with_child"}, tmp_path)
    child = int(runner.until(is_type("log"))[-1]["data"]["text"])
    runner.close_stdin()
    assert runner.wait(10) == -signal.SIGKILL
    assert gone(child)
    assert runner.next() is None


def test_stdin_closed_while_paused_ends_it_too(runner: RunnerProcess, tmp_path: Path) -> None:
    begin(runner, tmp_path)
    runner.control("pause")
    runner.until(is_type("state", state="paused"))
    runner.close_stdin()
    assert runner.wait(10) == -signal.SIGKILL


def test_a_shared_group_is_not_killed(start: Start, tmp_path: Path) -> None:
    """Without an own session the runner is in pytest's group: this test lives on to tell."""
    runner = start(own_session=False)
    begin(runner, tmp_path)
    assert os.getpgid(runner.process.pid) == os.getpgrp()
    runner.close_stdin()
    assert runner.wait(10) == 1


def test_sigterm_saves_and_ends_as_canceled(runner: RunnerProcess, tmp_path: Path) -> None:
    events = begin(runner, tmp_path)
    runner.process.terminate()
    events += runner.to_end(timeout=10)
    end = events[-1]["data"]
    assert end["state"] == "canceled"
    step = int((tmp_path / "checkpoint.txt").read_text())
    assert end["message"] == f"The process was asked to stop. The job ends at step {step}."
    assert of_type(events, "metric")[-1]["step"] == step - 1
    assert runner.wait(10) == 0 and runner.next() is None


def test_sigterm_while_paused_ends_at_once(runner: RunnerProcess, tmp_path: Path) -> None:
    begin(runner, tmp_path)
    runner.control("pause")
    runner.until(is_type("state", state="paused"))
    runner.process.terminate()
    assert runner.to_end(timeout=5)[-1]["data"]["state"] == "canceled"
    assert runner.wait(10) == 0


def test_sigterm_while_idle_leaves(runner: RunnerProcess, tmp_path: Path) -> None:
    runner.spec("test.count", {"steps": 1}, tmp_path)
    runner.to_end()
    time.sleep(0.2)
    runner.process.terminate()
    assert runner.wait(10) == 0 and runner.stderr == b""


PARENT = """
import subprocess, sys, time
runner = subprocess.Popen([sys.executable, "-m", "compute.core.runner"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, start_new_session=True)
runner.stdin.write(sys.stdin.buffer.readline())
runner.stdin.flush()
{keep}
print(runner.pid, flush=True)
for line in runner.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""
# The pipe's other end is kept open elsewhere, so only the kernel's signal can tell.
KEEP = "subprocess.Popen(['sleep', '20'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL," \
    " stderr=subprocess.DEVNULL, pass_fds=[runner.stdin.fileno()])"  # fmt: skip


@pytest.mark.parametrize("keep", ["", KEEP], ids=["by end of stdin", "by the kernel's signal"])
@pytest.mark.skipif(not Path("/proc").exists(), reason="the kernel's signal is Linux's")
def test_a_killed_parent_leaves_no_orphan(tmp_path: Path, keep: str) -> None:
    spec = {"job": "j", "kind": "test.case", "params": {"case": "sleeps_with_child"}}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.format(keep=keep)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment() | {"PYTHONWARNINGS": "default"},
        start_new_session=True,
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        parent.stdin.write(json.dumps({"spec": {**spec, "dir": str(tmp_path)}}).encode() + b"\n")
        parent.stdin.flush()
        runner = int(parent.stdout.readline())
        events = (json.loads(line) for line in parent.stdout)
        child = next(int(e["data"]["text"]) for e in events if e["type"] == "log")
        try:
            parent.kill()
            assert gone(runner) and gone(child)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
