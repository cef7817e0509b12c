"""What a submitter asks besides the kind and its params: when to start, when to give up, and on
the share of which class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from compute.core.errors import Problem
from compute.core.texts import Text, shorten
from playground.classroom.models import Membership
from playground.problems import ApiProblem

MAX_AHEAD = timedelta(days=30)
CLOCKS_S = 60  # the submitter's clock may go wrong by so much
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
BAD_AFTER = Text(
    'Cancel-After is "{value}"; give seconds, minutes or hours, such as 90, 90s, 5m or 2h, '
    "up to 30 days.",
    "Cancel-After 是“{value}”；请给出秒、分或小时，例如 90、90s、5m、2h，最长 30 天。",
)
BAD_START = Text(
    'start_at is "{value}"; give a time with its zone, such as 2027-03-01T09:00:00+08:00.',
    "start_at 是“{value}”；请给出带时区的时间，例如 2027-03-01T09:00:00+08:00。",
)
PAST_START = Text("That time is over.", "这个时间已经过去。")
FAR_START = Text("A start can be planned 30 days ahead.", "最多提前 30 天安排开始时间。")
ENDS_BEFORE = Text(
    "Cancel-After would end it before start_at lets it begin.",
    "Cancel-After 会在 start_at 允许它开始之前就取消它。",
)
NO_CLASS = Text("You are in no class with the id {value}.", "你不在编号为 {value} 的班级里。")


@dataclass(frozen=True)
class Asked:
    """The checked wishes; None where the submitter has none."""

    group_id: int | None = None
    start_at: datetime | None = None
    cancel_at: datetime | None = None


NOTHING_MORE = Asked()


def asked(*, owner_id: int, group: int | None, start_at: str | None, cancel_after: str) -> Asked:
    """Raises `invalid_request` with a pointer for each wish that can't be."""
    now = timezone.now()
    problems: list[Problem] = []
    start = _start(start_at, now, problems) if start_at is not None else None
    cancel = _cancel(cancel_after, now, problems) if cancel_after.strip() else None
    if start and cancel and cancel <= start:
        problems.append(Problem("/Cancel-After", ENDS_BEFORE))
    group_id = _group(owner_id, group, problems)
    if problems:
        raise ApiProblem("invalid_request", errors=problems)
    return Asked(group_id, start, cancel)


def _start(value: str, now: datetime, problems: list[Problem]) -> datetime | None:
    try:
        moment = parse_datetime(value.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        problems.append(Problem("/start_at", BAD_START.format(value=shorten(value))))
        return None
    if moment < now - timedelta(seconds=CLOCKS_S):
        problems.append(Problem("/start_at", PAST_START))
    if moment > now + MAX_AHEAD:
        problems.append(Problem("/start_at", FAR_START))
    return moment


def _cancel(value: str, now: datetime, problems: list[Problem]) -> datetime | None:
    match = re.fullmatch(r"([1-9]\d{0,8})([smh]?)", value.strip().lower(), re.ASCII)
    after = timedelta(seconds=int(match[1]) * UNITS[match[2]]) if match else None
    if after is None or after > MAX_AHEAD:
        problems.append(Problem("/Cancel-After", BAD_AFTER.format(value=shorten(value))))
        return None
    return now + after


def _group(owner_id: int, group: int | None, problems: list[Problem]) -> int | None:
    """The class that was named, else the only one that the owner is in."""
    mine = list(Membership.objects.filter(user_id=owner_id).values_list("group_id", flat=True)[:50])
    if group is None:
        return mine[0] if len(mine) == 1 else None
    if group not in mine:
        problems.append(Problem("/class", NO_CLASS.format(value=group)))
    return group
