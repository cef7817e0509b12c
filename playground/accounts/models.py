from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """An owner of jobs. Our own class from the first migration, since it can't be swapped later."""


class Token(models.Model):
    """A key for scripts. It is shown once; only its digest is kept, and a prefix to know it by."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)  # of read, submit, admin
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)  # to the minute

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
