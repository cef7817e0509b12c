"""What is open in this process, and whether who opened it still may.

A socket outlives the sign-in that it came with. So every few seconds the rights behind all open
sockets and streams are looked up again, in a few queries for all of them together, and those that
have lost theirs are closed. Nothing has to be published, so no message can be missed.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import Error as DatabaseError
from django.utils import timezone

from playground.accounts import tokens
from playground.accounts.models import Token, User
from playground.accounts.owner import Actor
from playground.classroom.models import Membership
from playground.jobs import database

log = logging.getLogger(__name__)
EVERY_S = 2.5
SIGNED_OUT, NO_LONGER_IN_CLASS = 4401, 4403


@dataclass(eq=False)
class Open:
    """One open socket or stream; `close` is called with a close code when it may not stay."""

    actor: Actor
    close: Callable[[int], Awaitable[None]]
    classes: frozenset[int] = field(default_factory=frozenset)


class Watch:
    """The open ones of one event loop. The task runs while there are any."""

    def __init__(self) -> None:
        self._open: set[Open] = set()
        self._task: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, item: Open) -> None:
        self._open.add(item)
        if not settings.SERVER_MODE:
            return  # the one owner's right is never withdrawn
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())

    def remove(self, item: Open) -> None:
        self._open.discard(item)

    @contextmanager
    def holding(self, item: Open) -> Iterator[None]:
        self.add(item)
        try:
            yield
        finally:
            self.remove(item)

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(EVERY_S)
            seen = list(self._open)
            try:
                verdicts = await database.call(withdrawn, seen)
            except DatabaseError as error:
                log.warning("rights are not looked up: %s", error)
                continue
            except Exception:
                log.exception("rights are not looked up")
                continue
            for item, code in verdicts:
                self.remove(item)
                # Each by itself: one that doesn't answer must not hold up the others.
                task = asyncio.create_task(_close(item, code))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)


async def _close(item: Open, code: int) -> None:
    try:
        await item.close(code)
    except Exception as error:  # it has left by itself meanwhile
        log.info("a socket whose right was withdrawn did not close: %r", error)


def classes_of(user_id: int) -> frozenset[int]:
    """The classes that somebody is in; in local mode there are none to leave."""
    if not settings.SERVER_MODE:
        return frozenset()
    return frozenset(Membership.objects.filter(user_id=user_id).values_list("group_id", flat=True))


def withdrawn(seen: Iterable[Open]) -> list[tuple[Open, int]]:
    """Those of `seen` that may not stay, each with its close code."""
    items = list(seen)
    users = {
        user.pk: user
        for user in User.objects.filter(
            pk__in={item.actor.user_id for item in items}, is_active=True
        )
    }
    wanted = {item.actor.token_id for item in items if item.actor.token_id is not None}
    alive = set(Token.objects.filter(tokens.valid(), pk__in=wanted).values_list("pk", flat=True))
    sessions = _sessions({item.actor.session for item in items if item.actor.session}, users)
    classes: dict[int, set[int]] = {}
    rows = Membership.objects.filter(user_id__in=users).values_list("user_id", "group_id")
    for user_id, group_id in rows:
        classes.setdefault(user_id, set()).add(group_id)
    found = []
    for item in items:
        actor = item.actor
        stays = actor.user_id in users and (
            actor.token_id in alive if actor.token_id is not None else actor.session in sessions
        )
        if not stays:
            found.append((item, SIGNED_OUT))
        elif not item.classes <= classes.get(actor.user_id, set()):
            found.append((item, NO_LONGER_IN_CLASS))
    return found


def _sessions(keys: set[str], users: dict[int, User]) -> set[str]:
    """The keys behind which somebody is still signed in, by the password of now."""
    good = set()
    for session in Session.objects.filter(pk__in=keys, expire_date__gt=timezone.now()):
        data = session.get_decoded()
        user = users.get(int(data.get(SESSION_KEY, 0)))
        if user is not None and data.get(HASH_SESSION_KEY) == user.get_session_auth_hash():
            good.add(session.pk)
    return good


_watches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Watch] = weakref.WeakKeyDictionary()


def watch() -> Watch:
    """The running loop's: one in a web process."""
    loop = asyncio.get_running_loop()
    found = _watches.get(loop)
    if found is None:
        found = _watches[loop] = Watch()
    return found
