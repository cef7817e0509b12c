from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from playground.accounts.models import User


class Command(BaseCommand):
    help = "Adds somebody who may sign in. Without --password one is made and printed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--password", default="")
        parser.add_argument("--staff", action="store_true", help="may see operations and /admin/")

    def handle(self, *args: Any, **options: Any) -> None:
        name, password = options["name"], options["password"] or secrets.token_urlsafe(12)
        user = User(username=name, is_staff=options["staff"], is_superuser=options["staff"])
        try:
            user.clean_fields(exclude=["password"])
            user.validate_unique()
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        user.set_password(password)
        user.save()
        made = "" if options["password"] else f" The password: {password}"
        self.stdout.write(f"{name} may sign in.{made}")
