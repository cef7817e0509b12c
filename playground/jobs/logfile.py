"""A finished log as one file: a ZIP whose members are blocks of lines, named by their first id.

The ZIP's own directory is the index, so reading after any id opens one block and what follows,
however long the log; its checksums tell a damaged block. `unzip -p log.zip` prints the whole log.
"""

from __future__ import annotations

import bisect
import os
import zipfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from playground.jobs.ids import event_key

BLOCK_BYTES = 256 * 1024  # of lines, before compression
LEVEL = 6


def write(draft: Path, lines: Iterable[tuple[str, bytes]]) -> Generator[None]:
    """Writes (id, line with its newline) pairs to `draft`, pausing after each block.

    What it has written is on the disk once the generator is exhausted.
    """
    with draft.open("wb") as out:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as log:
            first, block, size = "", list[bytes](), 0
            for event_id, line in lines:
                first = first or event_id
                block.append(line)
                size += len(line)
                if size >= BLOCK_BYTES:
                    log.writestr(_name(first), b"".join(block))
                    first, block, size = "", [], 0
                    yield
            if block:
                log.writestr(_name(first), b"".join(block))
        out.flush()
        os.fsync(out.fileno())


def read(path: Path, after: tuple[int, int]) -> Iterator[bytes]:
    """Whole lines from the block on that holds the first id above `after`.

    Raises FileNotFoundError, and zipfile.BadZipFile for a damaged file.
    """
    with zipfile.ZipFile(path) as log:
        names = log.namelist()
        start = bisect.bisect_right(names, after, key=_first) - 1
        for name in names[max(0, start) :]:
            yield from log.read(name).splitlines(keepends=True)


def last_line(path: Path) -> bytes | None:
    with zipfile.ZipFile(path) as log:
        names = log.namelist()
        return log.read(names[-1]).splitlines(keepends=True)[-1] if names else None


def _name(first: str) -> str:
    return f"{first}.jsonl"


def _first(name: str) -> tuple[int, int]:
    return event_key(name.removesuffix(".jsonl"))
