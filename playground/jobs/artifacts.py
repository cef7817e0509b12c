"""The one module that touches artifact files: `<artifacts>/<job>/<attempt>/<name>`.

A name may hold folders. It never leaves the attempt's folder: each part starts with a letter or a
digit, and the file that is opened must lie inside after every link is followed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from playground.jobs.ids import is_job_id

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,7}}")
NAME_LENGTH = 200
CHUNK = 256 * 1024


class BadName(ValueError):
    """Not a name that an artifact can have."""


def check_name(name: str) -> str:
    """`name` itself. Raises `BadName` for anything that could point elsewhere."""
    if len(name) > NAME_LENGTH or NAME.fullmatch(name) is None:
        raise BadName(f"not an artifact name: {name[:80]!r}")
    return name


def room() -> Path:
    """Where every job has its folder."""
    return Path(settings.ARTIFACTS_DIR)


def job_folder(job_id: str) -> Path:
    if not is_job_id(job_id):
        raise BadName(f"not a job id: {job_id[:40]!r}")
    return room() / job_id


def attempt_folder(job_id: str, attempt: int) -> Path:
    return job_folder(job_id) / str(int(attempt))


def make_attempt_folder(job_id: str, attempt: int) -> Path:
    folder = attempt_folder(job_id, attempt)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def path(job_id: str, attempt: int, name: str) -> Path:
    """The file's path. Raises `BadName`, also for a link that leads out of the folder."""
    folder = attempt_folder(job_id, attempt)
    file = folder / check_name(name)
    if not file.resolve().is_relative_to(folder.resolve()):
        raise BadName(f"{name!r} leads out of its folder")
    return file


def size(job_id: str, attempt: int, name: str) -> int | None:
    """Bytes on disk, or None when there is no such regular file."""
    file = path(job_id, attempt, name)
    return file.stat().st_size if file.is_file() else None


def open_file(job_id: str, attempt: int, name: str) -> BinaryIO:
    """The file, open for reading. Raises `BadName` or FileNotFoundError."""
    return path(job_id, attempt, name).open("rb")


def input_folder(
    job_id: str, attempt: int, param: str, source: str, made: Sequence[tuple[int, str]]
) -> Path:
    """One folder with all that job `source` made, for `job_id` to read as its input `param`.

    `made` lists (attempt, name), each name once. Made by one attempt, that attempt's own folder is
    the answer; made by several, a folder of links.
    """
    makers = {number for number, _ in made}
    if len(makers) == 1:
        return attempt_folder(source, makers.pop())
    folder = job_folder(job_id) / "inputs" / str(int(attempt)) / check_name(param)
    for number, name in made:
        link = folder / check_name(name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path(source, number, name))
    return folder


def remove(job_id: str, attempt: int, name: str) -> None:
    """Removes one file. One that is gone already is fine."""
    path(job_id, attempt, name).unlink(missing_ok=True)


def delete(job_id: str) -> None:
    """Removes all that the job has made. A folder that is gone already is fine."""
    shutil.rmtree(job_folder(job_id), ignore_errors=True)
