"""Memory limits by control groups: where they are looked for, what is written, and the kernel's own
kill where this machine lets us make a group."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.jobs import cgroups
from playground.jobs.cgroups import V1, V2

# As the kernel writes them: proc_pid_mountinfo(5), cgroups(7).
MOUNTS_V2 = (
    "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
)
MOUNTS_V1 = (
    "30 29 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 29 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
)


def test_where_groups_are_looked_for() -> None:
    own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n"
    parent = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice"
    assert cgroups.candidates(MOUNTS_V2, own) == [(Path(parent), V2)]
    own = "4:memory:/batch\n1:cpu:/\n0::/\n"
    assert cgroups.candidates(MOUNTS_V1, own) == [(Path("/sys/fs/cgroup/memory/batch"), V1)]
    assert cgroups.candidates("22 1 254:1 / / rw - ext4 /dev/vda1 rw\n", own) == []


def test_a_folder_that_is_no_control_group_is_not_usable(tmp_path: Path) -> None:
    assert not cgroups.usable(tmp_path, V1)
    assert not cgroups.usable(tmp_path / "missing", V1)
    assert list(tmp_path.iterdir()) == []
    assert not cgroups.usable(tmp_path, V2, is_root=lambda: True)  # nobody delegated it to us


def test_what_version_2_is_told(tmp_path: Path) -> None:
    """The files' names and forms are those of the kernel's cgroup-v2.rst; no kernel behind them."""
    group = cgroups.Group(tmp_path, V2)
    group.limit(512)
    group.add(1234)
    said = {path.name: path.read_text() for path in group.folder.iterdir()}
    assert said == {
        "memory.max": "536870912",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cgroup.procs": "1234",
    }
    assert not group.killed()
    events = group.folder / "memory.events"
    events.write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n")
    assert not group.killed()
    events.write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n")
    assert group.killed()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Takes 200 MB as soon as it is told to."""
    code = "import sys; sys.stdin.read(1); b = bytearray(200 * 2**20); b[::4096] = b'x' * 51200"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.skipif(cgroups.manager() == "polling", reason="no control group can be made here")
def test_the_kernel_ends_what_goes_over_its_limit(sleeper: subprocess.Popen[bytes]) -> None:
    group = cgroups.make(64, sleeper.pid)
    assert group is not None
    try:
        assert not group.killed()
        sleeper.communicate(b"x", timeout=20)
        assert sleeper.returncode == -9
        assert group.killed()
    finally:
        group.remove()
    assert not group.folder.exists()


@pytest.mark.skipif(cgroups.manager() == "polling", reason="no control group can be made here")
def test_what_a_killed_worker_left_is_removed_at_the_next_start() -> None:
    found = cgroups.place()
    assert found is not None
    left = cgroups.Group(*found)
    cgroups.tidy(found[0])
    assert not left.folder.exists()
