from __future__ import annotations

from django.urls import path

from playground.web import views

urlpatterns = [
    path("", views.home, name="home"),
    path("docs/", views.documents, name="documents"),
    path("docs/<slug:room>/<slug:name>", views.document, name="document"),
    path("i18n/<slug:language>.<slug:digest>.js", views.catalogue, name="catalogue"),
]
