from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from playground.jobs import retention


class Command(BaseCommand):
    help = "Lists what need not be kept any longer: old jobs, leftovers. With --yes it removes it."
    requires_system_checks: list[str] = []  # noqa: RUF012 (Django's own form)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--yes", action="store_true", help="remove what is listed")

    def handle(self, *args: Any, **options: Any) -> None:
        found = retention.find()
        for job, size in found.jobs:
            ended = f"{job.ended_at:%Y-%m-%d %H:%M}" if job.ended_at else ""
            self.stdout.write(f"{job.pk}  {job.kind}  {ended}  {shown(size)}")
        for left in found.leftovers:
            self.stdout.write(f"{left.name}  {left.what}  {shown(left.bytes)}")
        if found.keys:
            self.stdout.write(f"{found.keys} idempotency keys")
        count = len(found.jobs) + len(found.leftovers)
        if not count and not found.keys:
            self.stdout.write("There is nothing to remove.")
        elif options["yes"]:
            retention.remove(found)
            self.stdout.write(f"Removed: {count} jobs and leftovers, {shown(found.bytes)}.")
        else:
            self.stdout.write(
                f"This would remove {count} jobs and leftovers, {shown(found.bytes)}. "
                "Nothing has been removed; --yes does it."
            )


def shown(size: int) -> str:
    """A size for people, in units of 1,024."""
    value = float(size)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GB"
