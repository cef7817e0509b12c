"""Who asks, and by what right.

Local mode has one owner with every right. In server mode somebody is signed in on a page (a
session), or a script shows a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from playground.accounts import tokens
from playground.accounts.scopes import ALL, READ

if TYPE_CHECKING:
    from django.http import HttpRequest

    from playground.accounts.models import User

LOCAL_OWNER = "local"


class NotSignedIn(Exception):
    """Nobody stands behind this request, and the mode asks for somebody."""


class ScopeNeeded(Exception):
    """The token lacks this scope."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(scope)


@dataclass(frozen=True)
class Actor:
    """`token_id` or `session` says what stands behind it; neither in local mode."""

    user_id: int
    token_id: int | None = None
    scopes: frozenset[str] = ALL
    session: str = ""

    def need(self, scope: str) -> Actor:
        """Itself. Raises `ScopeNeeded`."""
        if scope not in self.scopes:
            raise ScopeNeeded(scope)
        return self


def local_owner() -> User:
    """Local mode's one user, made on first need. It has no usable password."""
    from playground.accounts.models import User

    user = User.objects.filter(username=LOCAL_OWNER).first()
    if user is None:
        draft = User(username=LOCAL_OWNER)
        draft.set_unusable_password()
        user, _ = User.objects.get_or_create(
            username=LOCAL_OWNER, defaults={"password": draft.password}
        )
    return user


@cache
def _local_owner_id() -> int:
    return local_owner().pk


def current_actor(request: HttpRequest | None, *, scope: str = READ) -> Actor:
    """Who asks; `None` stands for local mode's owner. Raises `NotSignedIn` or `ScopeNeeded`."""
    if not settings.SERVER_MODE:
        return Actor(_local_owner_id())
    known = getattr(request, "actor", None)
    if known is None:
        if request is None:
            raise NotSignedIn
        known = _identify(request)
        request.actor = known  # type: ignore[attr-defined]
    return known.need(scope)


def _identify(request: HttpRequest) -> Actor:
    shown = request.headers.get("Authorization")
    if shown is not None:  # whoever shows a token is never taken for a signed-in visitor
        token = tokens.find(shown)
        if token is None:
            raise NotSignedIn
        return Actor(token.owner_id, token.pk, tokens.scopes_of(token))
    return visitor(request)


def visitor(request: HttpRequest) -> Actor:
    """Who is signed in, on a page. Raises `NotSignedIn`."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        raise NotSignedIn
    return Actor(user.pk, None, ALL, request.session.session_key or "")


def current_owner_id(request: HttpRequest | None, *, scope: str = READ) -> int:
    """The id of who asks: what nearly every query needs. Raises `NotSignedIn` or `ScopeNeeded`."""
    return current_actor(request, scope=scope).user_id


def current_owner(request: HttpRequest) -> User:
    """Who asks, as a row. Raises `NotSignedIn`."""
    from playground.accounts.models import User

    return User.objects.get(pk=current_owner_id(request))
