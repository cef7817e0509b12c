"""What a token allows: `read`, `submit` (writes, and so reads too), `admin` (all of it, and more
tokens)."""

from __future__ import annotations

from collections.abc import Iterable

READ, SUBMIT, ADMIN = "read", "submit", "admin"
ALL = frozenset({READ, SUBMIT, ADMIN})
IMPLIED = {READ: {READ}, SUBMIT: {READ, SUBMIT}, ADMIN: {READ, SUBMIT, ADMIN}}


def widened(scopes: Iterable[str]) -> frozenset[str]:
    """With what each of them implies."""
    return frozenset().union(*(IMPLIED[scope] for scope in scopes if scope in IMPLIED))
