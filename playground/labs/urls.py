"""`/labs/<slug>`: every lab brings its own `urls.py`."""

from __future__ import annotations

from django.urls import include, path

from playground import labs

urlpatterns = [path(lab.slug, include(f"{lab.app}.urls")) for lab in labs.all()]
