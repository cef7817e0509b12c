from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from playground.up.checks import examine


class Command(BaseCommand):
    help = "Check each part and say what is wrong, and what to do, in words."

    def handle(self, *args: Any, **options: Any) -> None:
        sick = 0
        for finding in examine():
            mark = "ok  " if finding.ok else "WRONG"
            self.stdout.write(f"{mark:5} {finding.name:14} {finding.text}")
            sick += not finding.ok
        if sick:
            raise CommandError(f"{sick} of the checks found something wrong.")
