from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.template import TemplateSyntaxError
from django.template.loader import get_template

from playground.web import catalogues


def template_problems(folder: Path) -> list[str]:
    """Templates that don't compile."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        try:
            get_template(name)
        except TemplateSyntaxError as error:
            found.append(f"templates/{name}: {error}")
    return found


class Command(BaseCommand):
    help = "Check that every template compiles and every sentence is there in both languages."

    def handle(self, *args: Any, **options: Any) -> None:
        found = template_problems(settings.BASE_DIR / "templates")
        for domain in catalogues.DOMAINS:
            found += catalogues.problems(domain)
        for problem in found:
            self.stderr.write(problem)
        if found:
            raise CommandError(f"{len(found)} problems in templates and catalogues.")
        self.stdout.write("Templates compile; both languages are complete.")
