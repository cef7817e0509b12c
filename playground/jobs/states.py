"""The states of a job and the moves between them. Anything else is refused by name.

queued → starting → running ⇄ paused → succeeded | failed | canceled
queued → aborted                       cancelled or expired before it started
starting | running | paused → queued   with the next attempt: worker lost, planned stop, unpark
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

QUEUED = "queued"
STARTING = "starting"
RUNNING = "running"
PAUSED = "paused"
SUCCEEDED = "succeeded"
FAILED = "failed"
CANCELED = "canceled"
ABORTED = "aborted"

TERMINAL = frozenset({SUCCEEDED, FAILED, CANCELED, ABORTED})
HELD = frozenset({STARTING, RUNNING, PAUSED})  # a worker holds, or held, a lease

MOVES = MappingProxyType(
    {
        QUEUED: frozenset({STARTING, ABORTED}),
        STARTING: frozenset({RUNNING, FAILED, CANCELED, QUEUED}),
        RUNNING: frozenset({PAUSED, SUCCEEDED, FAILED, CANCELED, QUEUED}),
        PAUSED: frozenset({RUNNING, FAILED, CANCELED, QUEUED}),
        SUCCEEDED: frozenset[str](),
        FAILED: frozenset[str](),
        CANCELED: frozenset[str](),
        ABORTED: frozenset[str](),
    }
)
STATES = tuple(MOVES)


class IllegalMove(Exception):
    """A move that the table lacks, or a row that is no longer where the caller saw it."""

    def __init__(self, *, to: str, expected: Iterable[str], got: str) -> None:
        self.to, self.expected, self.got = to, tuple(sorted(expected)), got
        wanted = " or ".join(self.expected) or "no state"
        super().__init__(f"cannot go to {to!r}: expected {wanted}, got {got!r}")


def sources(to: str) -> frozenset[str]:
    """The states from which `to` can be reached."""
    return frozenset(state for state, targets in MOVES.items() if to in targets)


def check(before: str, to: str, *, attempt_before: int = 1, attempt_to: int = 1) -> None:
    """Raises `IllegalMove` unless `before → to` is in the table. Going back to the queue takes
    exactly the next attempt; every other move keeps the attempt."""
    step = 1 if to == QUEUED else 0
    if before not in MOVES or to not in MOVES[before]:
        raise IllegalMove(to=to, expected=sources(to), got=before)
    if attempt_to != attempt_before + step:
        raise IllegalMove(
            to=f"{to}, attempt {attempt_to}",
            expected=[f"attempt {attempt_before + step}"],
            got=f"{before}, attempt {attempt_before}",
        )
