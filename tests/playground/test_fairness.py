"""Deficit round-robin against the pseudo-code of its paper, and what it promises."""

from __future__ import annotations

import random
from collections import Counter, deque
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from playground.jobs.fairness import Ring, Seat, Turns

LINES = st.dictionaries(st.integers(1, 9), st.integers(1, 12), min_size=1)
WEIGHTS = st.lists(st.integers(1, 5), min_size=10, max_size=10)


def by_the_paper(waiting: dict[int, int], quanta: dict[int, int]) -> list[int]:
    """Figure 3 of Shreedhar and Varghese (1995), every packet of size 1."""
    active_list, queues = deque(waiting), dict(waiting)
    deficit_counter = dict.fromkeys(waiting, 0)
    sent = []
    while active_list:
        i = active_list.popleft()
        deficit_counter[i] += quanta[i]
        while deficit_counter[i] > 0 and queues[i] > 0:
            packet_size = 1
            if packet_size > deficit_counter[i]:
                break
            sent.append(i)
            queues[i] -= 1
            deficit_counter[i] -= packet_size
        if queues[i] == 0:
            deficit_counter[i] = 0
        else:
            active_list.append(i)
    return sent


def starts(ring: Ring, waiting: dict[int, int], quanta: dict[int, int]) -> list[int]:
    left, found = dict(waiting), []
    while ring.seats:
        member = ring.head()
        left[member] -= 1
        ring.start(quanta[member], more=left[member] > 0)
        found.append(member)
    return found


@given(LINES, WEIGHTS)
def test_a_ring_goes_round_as_the_paper_says(waiting: dict[int, int], weights: list[int]) -> None:
    quanta = dict(enumerate(weights))
    ring = Ring()
    ring.admit(waiting)
    assert starts(ring, waiting, quanta) == by_the_paper(waiting, quanta)


@given(LINES, WEIGHTS, st.integers(0, 40))
def test_a_ring_put_down_and_taken_up_again_goes_on(
    waiting: dict[int, int], weights: list[int], stop: int
) -> None:
    quanta, left, found = dict(enumerate(weights)), dict(waiting), []
    ring = Ring()
    ring.admit(waiting)
    while ring.seats and len(found) < stop:
        member = ring.head()
        left[member] -= 1
        ring.start(quanta[member], more=left[member] > 0)
        found.append(member)
    kept = Ring({member: Seat(*seat) for member, seat in reversed(ring.seats.items())})
    left = {member: count for member, count in left.items() if count}
    kept.admit(left)
    assert found + starts(kept, left, quanta) == by_the_paper(waiting, quanta)


def test_who_comes_later_stands_behind_those_who_wait() -> None:
    ring = Ring()
    ring.admit([1, 2])
    ring.start(1, more=True)  # 1 has started: 2 1
    ring.admit([3, 1, 2])
    assert list(ring.seats) == [2, 1, 3]


def test_an_idle_member_keeps_no_credit() -> None:
    """In the middle of its visit it has nothing more; when it comes back it has no visit left."""
    ring = Ring()
    ring.admit([1, 2])
    ring.start(3, more=True)
    assert ring.seats[1].deficit == 2
    ring.admit([2])
    ring.admit([2, 1])
    assert list(ring.seats.items()) == [(2, Seat(2)), (1, Seat(3))]


NESTED = st.dictionaries(st.integers(0, 3), LINES, min_size=1, max_size=4)


@given(NESTED, WEIGHTS, st.integers(0, 60))
def test_the_place_is_told_without_going_round(
    waiting: dict[int, dict[int, int]], weights: list[int], gone: int
) -> None:
    """Every waiting start of every owner, at any moment: told in one step, and counted."""
    shares = dict(enumerate(weights))
    turns = Turns()
    turns.admit(waiting)
    left = {group: dict(owners) for group, owners in waiting.items()}
    for group, owner in islice(turns.starts(waiting, shares), gone):
        left[group][owner] -= 1
    left = {group: {o: n for o, n in owners.items() if n} for group, owners in left.items()}
    left = {group: owners for group, owners in left.items() if owners}
    turns.admit(left)
    told = {}
    for group, owners in left.items():
        for owner, count in owners.items():
            for nth in range(1, count + 1):
                in_class, classes = turns.ahead(left, shares, group, owner, nth)
                told[group, owner, nth] = (in_class, classes)
    seen: Counter[tuple[int, int]] = Counter()
    for group, owner in turns.starts(left, shares):
        in_class, classes = told[group, owner, seen[group, owner] + 1]
        assert in_class == {o: seen[group, o] for o in left[group]}
        assert classes == {g: sum(seen[g, o] for o in left[g]) for g in left}
        seen[group, owner] += 1
    assert seen == Counter({(g, o): n for g, owners in left.items() for o, n in owners.items()})


def test_owners_of_a_class_never_differ_by_more_than_one_while_all_have_work() -> None:
    rng = random.Random(7)
    waiting = {1: {owner: rng.randint(5, 50) for owner in range(1, 31)}}
    turns = Turns()
    turns.admit(waiting)
    counts = Counter(dict.fromkeys(waiting[1], 0))
    for _, owner in turns.starts(waiting, {1: 1}):
        counts[owner] += 1
        assert max(counts.values()) - min(counts.values()) <= 1
        if any(counts[owner] == waiting[1][owner] for owner in counts):
            break
    assert min(counts.values()) >= 4


def test_classes_share_by_weight_within_each_round() -> None:
    waiting = {1: {10: 100, 11: 100}, 2: {20: 300, 21: 1, 22: 300}}
    turns = Turns()
    turns.admit(waiting)
    order = [group for group, _ in islice(turns.starts(waiting, {1: 1, 2: 3}), 400)]
    for first in range(0, 400, 4):
        assert Counter(order[first : first + 4]) == {1: 1, 2: 3}
