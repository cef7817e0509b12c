"""`/accounts/…`; local mode has no accounts, so none of it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import path

from playground.accounts import views

urlpatterns = [
    path("sign-in", views.SignIn.as_view(), name="sign-in"),
    path("sign-out", login_not_required(LogoutView.as_view()), name="sign-out"),
    path("password", views.ChangePassword.as_view(), name="password"),
    path("tokens", views.tokens_page, name="tokens"),
    path("tokens/<int:token_id>/revoke", views.revoke, name="revoke-token"),
]
if not settings.SERVER_MODE:
    urlpatterns = []
