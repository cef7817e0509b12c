"""Django's administration of people and their tokens."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from playground.accounts.models import Token, User


@admin.register(User)
class PeopleAdmin(UserAdmin):  # type: ignore[type-arg]
    pass


@admin.register(Token)
class TokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """To see and to revoke. Nobody makes a token for somebody else."""

    list_display = ("name", "prefix", "owner", "scopes", "expires_at", "used_at")
    search_fields = ("name", "prefix", "owner__username")
    exclude = ("digest",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Token | None = None) -> bool:
        return False
