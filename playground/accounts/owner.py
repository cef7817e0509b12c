"""The owner of a request."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

    from playground.accounts.models import User

LOCAL_OWNER = "local"


class NotSignedIn(Exception):
    """Nobody stands behind this request, and the mode asks for somebody."""


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


def current_owner_id(request: HttpRequest | None, *, scope: str = "read") -> int:
    """The id of who asks: what nearly every query needs. Raises `NotSignedIn` in server mode when
    the request carries no user. `None` stands for a socket's handshake in local mode."""
    if not settings.SERVER_MODE:
        return _local_owner_id()
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        raise NotSignedIn
    return cast("int", user.pk)


def current_owner(request: HttpRequest) -> User:
    """Who asks, as a row. Raises `NotSignedIn`."""
    from playground.accounts.models import User

    return User.objects.get(pk=current_owner_id(request))
