"""The one module that touches uploaded files: `<uploads>/<id>/`, and `<uploads>/incoming/<id>/`
while a file is on its way. What is in such a folder: `compute.text.intake`."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import time
from pathlib import Path

from django.conf import settings

from compute.core.texts import Text
from compute.text import intake
from playground.jobs.ids import is_job_id, new_job_id

INCOMING = "incoming"
YOUNG_S = 60.0  # a folder that was made just now may not be locked yet


class TooLarge(Exception):
    """More bytes than a file of that form may have; `words` says so to a person."""

    def __init__(self, words: Text) -> None:
        self.words = words
        super().__init__(words.en)


class NoRoom(Exception):
    """More bytes than the owner has left."""


class Incoming:
    """A file on its way in, of at most `room` bytes. Either `keep` or `discard` comes last; a
    process that dies before leaves a folder without a lock, which the next upload sweeps away."""

    def __init__(self, room: int | None = None) -> None:
        self.id = new_job_id()
        self.room = room
        self.folder = _root() / INCOMING / self.id
        self.folder.mkdir(parents=True)
        self._file = (self.folder / intake.SENT).open("wb")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._digest = hashlib.sha256()
        self._head = bytearray()
        self.form = ""  # "text" or "vectors", once enough has come to tell
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Raises UserError for what can't be used, TooLarge, NoRoom, OSError for a full disk."""
        self.size += len(data)
        if self.room is not None and self.size > self.room:
            raise NoRoom
        self._digest.update(data)
        if not self.form:
            self._head += data
            if len(self._head) >= intake.HEAD:
                self._tell_form()
        if self.size > intake.MAX_BYTES[self.form or "text"]:
            raise TooLarge(intake.TOO_LARGE[self.form or "text"])
        self._file.write(data)

    def end(self) -> None:
        """All has come. Raises UserError for what can't be used."""
        if not self.form:
            self._tell_form()
        self._file.flush()

    def keep(self) -> None:
        """Moves what the check has left to its place for good."""
        self.folder.rename(_root() / self.id)
        self._file.close()

    def discard(self) -> None:
        """Safe to repeat."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._file.close()

    def _tell_form(self) -> None:
        self.form = intake.form_of(bytes(self._head[: intake.HEAD]))
        self._head.clear()


def kept(upload_id: str) -> dict[str, Path]:
    """The files of an upload, by name; none once it is deleted."""
    folder = _folder(upload_id)
    try:
        return {path.name: path for path in sorted(folder.iterdir())}
    except FileNotFoundError:
        return {}


def content(upload_id: str) -> Path | None:
    """The text or the vectors themselves."""
    files = kept(upload_id)
    return next((files[name] for name in sorted(set(intake.FILES.values())) if name in files), None)


def delete(upload_id: str) -> None:
    """A folder that is gone already is fine."""
    shutil.rmtree(_folder(upload_id), ignore_errors=True)


def sweep() -> None:
    """Removes what processes that died left on its way in: nobody holds its lock."""
    for folder in (_root() / INCOMING).glob("*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime < YOUNG_S:
                continue
            sent = folder / intake.SENT
            if sent.exists():
                with sent.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _root() -> Path:
    return Path(settings.UPLOADS_DIR)


def _folder(upload_id: str) -> Path:
    if not is_job_id(upload_id):
        raise ValueError(f"not an upload's id: {upload_id[:40]!r}")
    return _root() / upload_id
