"""Django's administration of classes and who is in them."""

from __future__ import annotations

from django.contrib import admin

from playground.classroom.models import Class, Membership


class MembershipInline(admin.TabularInline):  # type: ignore[type-arg]
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Class)
class ClassAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "weight")
    search_fields = ("name",)
    inlines = (MembershipInline,)
