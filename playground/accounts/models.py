from __future__ import annotations

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """An owner of jobs. Our own class from the first migration, since it can't be swapped later."""
