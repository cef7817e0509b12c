from __future__ import annotations

from django.conf import settings
from django.urls import include, path

from playground import health_view, problems
from playground.api import api

handler400 = "playground.problems.bad_request"
handler403 = "playground.problems.forbidden"
handler404 = "playground.problems.not_found"
handler500 = "playground.problems.server_error"

staff = []
if settings.SERVER_MODE:
    from django.contrib import admin

    from playground.accounts import views

    admin.site.login = views.to_administration  # type: ignore[method-assign]
    staff = [path("admin/", admin.site.urls)]
urlpatterns = [
    *staff,
    path("healthz", health_view.healthz, name="healthz"),
    path("api/v1/", api.urls),
    path("api/", problems.unknown_address),
    path("api/<path:rest>", problems.unknown_address),
    path("accounts/", include("playground.accounts.urls")),
    path("labs/", include("playground.labs.urls")),
    path("", include("playground.operations.urls")),
    path("", include("playground.web.urls")),
]
