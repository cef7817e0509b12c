from __future__ import annotations

import itertools

import pytest

from playground.jobs import states
from playground.jobs.states import IllegalMove

# Written out a second time, from ARCHITECTURE "A job's life", so that a slip in the table shows.
LEGAL = {
    ("queued", "starting"),
    ("queued", "aborted"),
    ("starting", "running"),
    ("starting", "failed"),
    ("starting", "canceled"),
    ("starting", "queued"),
    ("running", "paused"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "canceled"),
    ("running", "queued"),
    ("paused", "running"),
    ("paused", "failed"),
    ("paused", "canceled"),
    ("paused", "queued"),
}


@pytest.mark.parametrize(("before", "to"), list(itertools.product(states.STATES, repeat=2)))
def test_every_move(before: str, to: str) -> None:
    next_attempt = 4 if to == "queued" else 3
    if (before, to) in LEGAL:
        states.check(before, to, attempt_before=3, attempt_to=next_attempt)
    else:
        with pytest.raises(IllegalMove):
            states.check(before, to, attempt_before=3, attempt_to=next_attempt)


def test_a_refusal_names_what_was_expected_and_what_came() -> None:
    with pytest.raises(IllegalMove, match="expected running, got 'queued'") as refused:
        states.check("queued", "succeeded")
    assert refused.value.expected == ("running",)
    assert refused.value.got == "queued"


@pytest.mark.parametrize("attempt", [3, 5])
def test_back_to_the_queue_takes_exactly_the_next_attempt(attempt: int) -> None:
    with pytest.raises(IllegalMove, match="attempt 4"):
        states.check("running", "queued", attempt_before=3, attempt_to=attempt)


def test_other_moves_keep_the_attempt() -> None:
    with pytest.raises(IllegalMove):
        states.check("starting", "running", attempt_before=1, attempt_to=2)


def test_no_way_out_of_an_end() -> None:
    assert all(not states.MOVES[state] for state in states.TERMINAL)
