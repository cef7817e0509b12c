from __future__ import annotations

from django.urls import path

from playground.labs.transformer import views

app_name = "transformer"

urlpatterns = [path("", views.page, name="page")]
