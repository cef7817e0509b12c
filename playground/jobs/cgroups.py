"""Memory limits kept by the kernel, where this process may make control groups.

One child group a runner. Version 2 (the kernel's Documentation/admin-guide/cgroup-v2.rst) needs a
folder that was delegated to us: a group that holds processes can't limit children of its own, so
it is the parent of ours. Version 1 (cgroup-v1/memory.rst) has no such rule. Without either, the
supervisor's polling alone keeps the limit.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)
PREFIX = "playground-"
REMOVE_S = 1.0  # the kernel needs a moment after the last process of a group


@dataclass(frozen=True)
class Version:
    """What the files of a hierarchy are called."""

    name: str
    limit: str
    events: str  # holds a line "oom_kill N"
    extra: tuple[tuple[str, str], ...] = ()  # (file, value) that make the limit strict


V1 = Version("cgroup1", "memory.limit_in_bytes", "memory.oom_control")
V2 = Version(
    "cgroup2",
    "memory.max",
    "memory.events",
    (("memory.swap.max", "0"), ("memory.oom.group", "1")),
)


class Group:
    """A folder of our own in the hierarchy."""

    def __init__(self, parent: Path, version: Version) -> None:
        self._version = version
        self.folder = parent / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        self.folder.mkdir()

    def limit(self, megabytes: int) -> None:
        """Caps the memory of all that is in the group, in MB (2^20)."""
        (self.folder / self._version.limit).write_text(str(megabytes * 2**20))
        for name, value in self._version.extra:
            with contextlib.suppress(OSError):  # a kernel without swap accounting lacks the file
                (self.folder / name).write_text(value)

    def add(self, pid: int) -> None:
        """Moves a process in; what it starts from then on is in the group too."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    def killed(self) -> bool:
        """Whether the kernel has killed something in the group for memory."""
        try:
            events = (self.folder / self._version.events).read_text()
        except OSError:
            return False
        count = re.search(r"^oom_kill (\d+)$", events, re.MULTILINE)
        return count is not None and int(count[1]) > 0

    def remove(self) -> None:
        """After its last process has ended."""
        until = time.monotonic() + REMOVE_S
        while True:
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError as error:
                if time.monotonic() > until:
                    log.warning("could not remove %s: %s", self.folder, error)
                    return
                time.sleep(0.01)


def manager() -> str:
    """How the memory limit is kept: `cgroup2`, `cgroup1` or `polling`."""
    found = place()
    return found[1].name if found else "polling"


def make(megabytes: int, pid: int) -> Group | None:
    """A group with that limit and that process in it; None where there can't be one."""
    found = place()
    if found is None:
        return None
    try:
        group = Group(*found)
    except OSError as error:
        log.warning("no control group for a runner: %s", error)
        return None
    try:
        group.limit(megabytes)
        group.add(pid)
    except OSError as error:
        log.warning("no control group for a runner: %s", error)
        group.remove()
        return None
    return group


@cache
def place() -> tuple[Path, Version] | None:
    """Where a group can be made, tried once in the life of this process."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        own = Path("/proc/self/cgroup").read_text()
    except OSError:
        return None  # not a Linux
    for folder, version in candidates(mounts, own):
        if usable(folder, version):
            tidy(folder)
            return folder, version
    return None


def candidates(mounts: str, own: str) -> list[tuple[Path, Version]]:
    """Folders to try, out of the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    groups = {}  # by controllers: the path of ours
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        groups[controllers] = path.lstrip("/")
    found = []
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        point = Path(left.split(" ")[4])
        if kind == "cgroup2" and groups.get(""):
            found.append(((point / groups[""]).parent, V2))
        elif kind == "cgroup" and "memory" in options.split(" ")[-1].split(","):
            path = next((p for names, p in groups.items() if "memory" in names.split(",")), "")
            found.append((point / path, V1))
    return sorted(found, key=lambda item: item[1].name, reverse=True)


def usable(folder: Path, version: Version, *, is_root: Callable[[], bool] | None = None) -> bool:
    """Whether groups with a memory limit can be made in `folder`."""
    as_root = (is_root or (lambda: os.geteuid() == 0))()
    if version is V2 and as_root and not delegated(folder):
        return False  # root may write anywhere; a folder that systemd manages is not ours
    try:
        group = Group(folder, version)
    except OSError:
        return False
    try:
        return (group.folder / version.limit).exists()
    finally:
        group.remove()


def delegated(folder: Path) -> bool:
    """Whether systemd has left the folder to the service (systemd.resource-control, Delegate=)."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def tidy(folder: Path) -> None:
    """Removes what workers that were killed have left. A group in use can't be removed."""
    for left in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            left.rmdir()
