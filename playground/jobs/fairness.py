"""Whose turn it is: deficit round-robin (Shreedhar and Varghese 1995, "Efficient Fair Queueing
using Deficit Round Robin", SIGCOMM). The cost of a start is 1.

A ring of classes, each with its weight as quantum, and inside each class a ring of owners with
quantum 1. So classes share the starts by weight, and the owners of a class take them in turns,
however many jobs each has waiting. Pure: rows are `playground.jobs.lines`' affair.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

COST = 1
Waiting = Mapping[int, Mapping[int, int]]  # class → owner → how many jobs wait, at least one


class Seat(NamedTuple):
    """A member's place in its ring, and the starts left in its visit: none until it begins."""

    position: int
    deficit: int = 0


class Ring:
    """Members that have something waiting; who is at the head starts next."""

    def __init__(self, seats: Mapping[int, Seat] | None = None) -> None:
        found = sorted((seats or {}).items(), key=lambda item: item[1].position)
        self.seats = OrderedDict(found)
        self._tail = found[-1][1].position + 1 if found else 1

    def admit(self, waiting: Iterable[int]) -> None:
        """Newcomers join at the tail in the order given; who has nothing waiting leaves, and
        keeps no credit."""
        active = dict.fromkeys(waiting)
        for member in [member for member in self.seats if member not in active]:
            del self.seats[member]
        for member in active:
            if member not in self.seats:
                self._join(member, 0)

    def head(self) -> int:
        """Who starts next. The ring must not be empty."""
        return next(iter(self.seats))

    def start(self, quantum: int, *, more: bool) -> None:
        """The head starts one job. Its visit began with `quantum` starts and lasts until they are
        spent; then it goes to the tail. Without `more` waiting it leaves the ring."""
        member = self.head()
        seat = self.seats.pop(member)
        left = (seat.deficit or quantum) - COST
        if not more:
            return
        if left < COST:
            self._join(member, left)
            return
        self.seats[member] = Seat(seat.position, left)
        self.seats.move_to_end(member, last=False)

    def ahead(
        self, waiting: Mapping[int, int], quanta: Mapping[int, int], member: int, nth: int
    ) -> dict[int, int]:
        """How many each member starts before the `nth` start of `member`, counted from 1.

        Nobody joins meanwhile, so it can be told without going round: a member's first visit has
        the starts left in it, every later one a quantum.
        """
        first = self.seats[member].deficit or quanta[member]
        visit = 0 if nth <= first else 1 + (nth - first - 1) // quanta[member]
        found, passed = {}, False
        for other, seat in self.seats.items():
            passed = passed or other == member
            visits = visit if passed else visit + 1
            quantum = quanta[other]
            starts = (seat.deficit or quantum) + (visits - 1) * quantum if visits else 0
            found[other] = min(waiting[other], starts)
        found[member] = nth - 1
        return found

    def _join(self, member: int, deficit: int) -> None:
        self.seats[member] = Seat(self._tail, deficit)
        self._tail += 1


@dataclass
class Turns:
    """The ring of classes, and each class's ring of owners."""

    classes: Ring = field(default_factory=Ring)
    owners: dict[int, Ring] = field(default_factory=dict)

    def admit(self, waiting: Waiting) -> None:
        """As `Ring.admit`, for both levels."""
        self.classes.admit(waiting)
        self.owners = {group: self.owners.get(group) or Ring() for group in waiting}
        for group, ring in self.owners.items():
            ring.admit(waiting[group])

    def starts(self, waiting: Waiting, weights: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """(class, owner) of each start to come, until nothing waits. Each moves the turns on."""
        left = {group: dict(owners) for group, owners in waiting.items()}
        while self.classes.seats:
            group = self.classes.head()
            ring, line = self.owners[group], left[group]
            owner = ring.head()
            line[owner] -= 1
            ring.start(COST, more=line[owner] > 0)
            self.classes.start(weights[group], more=bool(ring.seats))
            yield group, owner

    def ahead(
        self, waiting: Waiting, weights: Mapping[int, int], group: int, owner: int, nth: int
    ) -> tuple[dict[int, int], dict[int, int]]:
        """What starts before the owner's `nth` start there: so many of each owner of the class,
        and so many of each class, the own one included."""
        line = waiting[group]
        owners = self.owners[group].ahead(line, dict.fromkeys(line, COST), owner, nth)
        totals = {each: sum(found.values()) for each, found in waiting.items()}
        mine = sum(owners.values()) + 1
        return owners, self.classes.ahead(totals, weights, group, mine)
