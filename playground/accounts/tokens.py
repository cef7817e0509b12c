"""Tokens for scripts: `pg_<prefix>_<secret>`.

The secret has 192 random bits, so a plain SHA-256 of it can be kept: there is nothing to guess,
and nothing that a slow hash would protect.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone

from playground.accounts.scopes import widened

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from playground.accounts.models import Token

FORM = re.compile(r"pg_([0-9a-f]{8})_([A-Za-z0-9_-]{32})")
USED_EVERY = timedelta(minutes=1)
MAX_TOKENS = 50  # of one owner
MAX_DAYS = 3650


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def make(
    *, owner_id: int, name: str, scopes: Iterable[str], expires_at: datetime | None
) -> tuple[Token, str]:
    """A new token and its secret, which nobody can tell again."""
    from playground.accounts.models import Token

    secret = f"pg_{secrets.token_hex(4)}_{secrets.token_urlsafe(24)}"
    token = Token.objects.create(
        owner_id=owner_id,
        name=name,
        prefix=secret[:11],
        digest=digest(secret),
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    return token, secret


def find(authorization: str) -> Token | None:
    """The token in an Authorization header, if it is valid now and its owner may come in."""
    from playground.accounts.models import Token

    scheme, _, shown = authorization.partition(" ")
    shown = shown.strip()
    if scheme.lower() != "bearer" or FORM.fullmatch(shown) is None:
        return None
    token = Token.objects.filter(valid(), digest=digest(shown)).first()
    now = timezone.now()
    if token is not None and (token.used_at is None or now - token.used_at > USED_EVERY):
        Token.objects.filter(pk=token.pk).update(used_at=now)
    return token


def valid() -> Q:
    """Rows that let somebody in now."""
    unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return unexpired & Q(owner__is_active=True)


def scopes_of(token: Token) -> frozenset[str]:
    return widened(token.scopes)


def of(owner_id: int) -> QuerySet[Token]:
    """The owner's tokens, newest first."""
    from playground.accounts.models import Token

    return Token.objects.filter(owner_id=owner_id).order_by("-pk")


def revoke(*, owner_id: int, token_id: int) -> bool:
    """Whether there was one to revoke. Sockets that came with it are closed within seconds."""
    return bool(of(owner_id).filter(pk=token_id).delete()[0])
