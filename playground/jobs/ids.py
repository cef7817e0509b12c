"""Ids. A job's is short, sorts by time and is safe in paths, keys and addresses; an event's is
`<attempt>-<seq>`, which gives order, duplicates and stale writers away in one comparison."""

from __future__ import annotations

import re
import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
JOB_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{20}")
EVENT_ID = re.compile(r"(0|[1-9][0-9]{0,9})-(0|[1-9][0-9]{0,15})")
START = "0-0"


def new_job_id() -> str:
    """50 bits of milliseconds, then 50 random bits, as 20 characters."""
    number = (int(time.time() * 1000) << 50) | secrets.randbits(50)
    return "".join(ALPHABET[(number >> shift) & 31] for shift in range(95, -1, -5))


def is_job_id(text: object) -> bool:
    return isinstance(text, str) and JOB_ID.fullmatch(text) is not None


def event_key(event_id: str) -> tuple[int, int]:
    """`"2-17"` → `(2, 17)`. Raises ValueError on anything else."""
    match = EVENT_ID.fullmatch(event_id)
    if match is None:
        raise ValueError(f"an event id looks like 1-42, not {event_id!r}")
    return int(match[1]), int(match[2])
