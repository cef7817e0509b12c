from __future__ import annotations

from django.apps import AppConfig


class LabsConfig(AppConfig):
    name = "playground.labs"
    label = "labs"
    verbose_name = "Labs"
