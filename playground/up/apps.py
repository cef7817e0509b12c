from __future__ import annotations

from django.apps import AppConfig


class UpConfig(AppConfig):
    """Starting everything on one machine (`manage.py up`) and checking it (`manage.py doctor`)."""

    name = "playground.up"
