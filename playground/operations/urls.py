from __future__ import annotations

from django.urls import path

from playground.operations import views

urlpatterns = [
    path("operations", views.operations, name="operations"),
    path("metrics", views.scrape, name="metrics"),
]
