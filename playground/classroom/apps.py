from __future__ import annotations

from django.apps import AppConfig


class ClassroomConfig(AppConfig):
    name = "playground.classroom"
    label = "classroom"
    default_auto_field = "django.db.models.BigAutoField"
