from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models


class Class(models.Model):
    """People who learn together. `weight` is its share of the slots beside other classes."""

    name = models.CharField(max_length=120)
    weight = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="classes"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "classes"

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person in one class."""

    STUDENT, TEACHER = "student", "teacher"

    group = models.ForeignKey(Class, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(
        max_length=10, default=STUDENT, choices=[(STUDENT, "student"), (TEACHER, "teacher")]
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["group", "user"], name="membership_once"),)

    def __str__(self) -> str:
        return f"{self.user_id} in {self.group_id}"
