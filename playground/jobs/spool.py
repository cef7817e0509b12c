"""The spool: every event on disk before it goes anywhere else, one file an attempt; some time after
the end, one compressed file for all (`playground.jobs.compaction`).

A line is the event exactly as a client sees it, `{"id":"1-42","job":…}` and a newline, so nothing
is encoded twice. Ids in a file only grow, which makes "everything after 1-42" a binary search.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from django.conf import settings

from playground.jobs import logfile
from playground.jobs.ids import START, event_key, is_job_id

_HEAD = re.compile(rb'\{"id":"(\d+-\d+)","job":"[0-9a-z]+","type":"([a-z]+)"')
# Where a writer that isn't the attempt's own supervisor continues: far beyond what the lost one
# can have reached, so that whatever it still sends has a smaller id and is refused.
FENCE_STEP = 1_000_000


class Entry(NamedTuple):
    """An event on its way: its id, its type, and its whole line without the newline."""

    id: str
    type: str
    line: str


def folder(job_id: str) -> Path:
    if not is_job_id(job_id):
        raise ValueError(f"not a job id: {job_id[:40]!r}")
    return Path(settings.SPOOL_DIR) / job_id


def file(job_id: str, attempt: int) -> Path:
    return folder(job_id) / f"{int(attempt)}.jsonl"


def compacted(job_id: str) -> Path:
    """Where the finished log is once it is one file. While it exists it is the whole log."""
    return folder(job_id) / "log.zip"


class Writer:
    """Appends for the attempt's supervisor; keeps the file open."""

    def __init__(self, job_id: str, attempt: int) -> None:
        path = file(job_id, attempt)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)

    def append(self, entries: Iterable[Entry]) -> None:
        """One write for all, so that a reader sees whole lines but for the last after a crash."""
        data = memoryview("".join(f"{entry.line}\n" for entry in entries).encode())
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        self._file.close()


def append_outside(job_id: str, attempt: int, make: Iterable[tuple[str, str]]) -> list[Entry]:
    """Adds events for an attempt whose supervisor is gone or never was.

    `make` yields (type, rest of the line after the type). The file is written anew under its
    name: a lost supervisor that wakes up appends to the old, unlinked one.
    """
    path = file(job_id, attempt)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = list(read_attempt(job_id, attempt))
    seq = event_key(kept[-1].id)[1] + FENCE_STEP if kept else 0
    added = []
    for number, (type_, rest) in enumerate(make, seq + 1):
        added.append(entry(job_id, f"{attempt}-{number}", type_, rest))
    draft = path.with_suffix(f".{os.getpid()}.draft")
    with draft.open("wb") as out:
        out.writelines(f"{e.line}\n".encode() for e in (*kept, *added))
    draft.replace(path)
    return added


def entry(job_id: str, event_id: str, type_: str, rest: str) -> Entry:
    """`rest` is what follows the type in the line, from the comma on: `,"t":…,"data":…}`."""
    return Entry(event_id, type_, f'{{"id":"{event_id}","job":"{job_id}","type":"{type_}"{rest}')


def attempts(job_id: str) -> list[int]:
    """The attempts that have a file, in order."""
    here = folder(job_id)
    found = (int(p.stem) for p in here.glob("*.jsonl") if p.stem.isdigit())
    return sorted(found)


def read(job_id: str, after: str, limit: int) -> list[Entry]:
    """Up to `limit` events with ids above `after`, across all attempts."""
    return list(islice(read_all(job_id, after), limit))


def read_all(job_id: str, after: str = START) -> Iterator[Entry]:
    """All events with ids above `after`. The log may be compacted meanwhile: the one file is there
    before the attempts' files go, so looking for it again finds what they no longer have."""
    if not compacted(job_id).exists():
        for attempt in attempts(job_id):
            if attempt >= event_key(after)[0]:
                for item in read_attempt(job_id, attempt, after):
                    after = item.id
                    yield item
    with contextlib.suppress(FileNotFoundError):
        yield from _entries(logfile.read(compacted(job_id), event_key(after)), after)


def read_attempt(job_id: str, attempt: int, after: str = START) -> Iterator[Entry]:
    """One attempt's events above `after`, from its own file. A torn last line is left out."""
    try:
        handle = file(job_id, attempt).open("rb")
    except FileNotFoundError:
        return
    with handle:
        _seek(handle, event_key(after))
        yield from _entries(handle, after)


def _entries(lines: Iterable[bytes], after: str) -> Iterator[Entry]:
    last = event_key(after)
    for line in lines:
        match = _HEAD.match(line)
        if match is None or not line.endswith(b"\n"):
            continue
        key = event_key(match[1].decode())
        if key > last:
            last = key
            yield Entry(match[1].decode(), match[2].decode(), line[:-1].decode())


def last(job_id: str) -> Entry | None:
    """The last event on disk."""
    with contextlib.suppress(FileNotFoundError):
        line = logfile.last_line(compacted(job_id))
        return next(_entries([line], START), None) if line else None
    for attempt in reversed(attempts(job_id)):
        if newest := deque(read_attempt(job_id, attempt), maxlen=1):
            return newest[0]
    return None


def last_id(job_id: str) -> str | None:
    found = last(job_id)
    return found.id if found else None


def delete(job_id: str) -> None:
    shutil.rmtree(folder(job_id), ignore_errors=True)


def _seek(handle: BinaryIO, after: tuple[int, int]) -> None:
    """Moves to a line start at or before the first id above `after`; lines there are sorted."""
    low, high = 0, handle.seek(0, os.SEEK_END)
    while high - low > 64 * 1024:
        middle = (low + high) // 2
        handle.seek(middle)
        handle.readline()
        start = handle.tell()
        match = _HEAD.match(handle.readline())
        if match is not None and start < high and event_key(match[1].decode()) <= after:
            low = start
        else:
            high = middle
    handle.seek(low)
