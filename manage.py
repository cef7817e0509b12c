#!/usr/bin/env python
"""Django's entry. `manage.py up` starts everything locally."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a bad setting: the sentence says what to do
        sys.exit(str(error))


if __name__ == "__main__":
    main()
