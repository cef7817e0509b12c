"""Who may look: in local mode the owner; in server mode staff, and for `/metrics` whoever has the
setting's token."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest

from playground.accounts.models import User
from playground.accounts.owner import NotSignedIn, ScopeNeeded, current_actor


def may_look(request: HttpRequest) -> bool:
    """Raises `NotSignedIn`."""
    if not settings.SERVER_MODE:
        return True
    try:
        actor = current_actor(request, scope="admin")
    except ScopeNeeded:
        return False
    return User.objects.filter(pk=actor.user_id, is_staff=True, is_active=True).exists()


def may_scrape(request: HttpRequest) -> bool:
    """Raises `NotSignedIn`."""
    if settings.METRICS_TOKEN:
        shown = request.headers.get("Authorization", "").encode()
        if hmac.compare_digest(shown, f"Bearer {settings.METRICS_TOKEN}".encode()):
            return True
    return may_look(request)


__all__ = ["NotSignedIn", "may_look", "may_scrape"]
