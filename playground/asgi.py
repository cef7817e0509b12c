"""The web process: pages, API and socket. It never imports torch."""

# ruff: noqa: E402  (the order is the point: settings, then Django, then what needs it)
from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from django.urls import path

import playground.urls  # noqa: F401  (now, not at the first request)
from compute.core import kinds
from playground.jobs import uploads_api
from playground.jobs.lifespan import Lifespan
from playground.jobs.multipart import Unspooled
from playground.jobs.socket import JobSocket, unknown_socket
from playground.local_mode import LocalMode
from playground.server_mode import ServerMode

kinds.all_kinds()
socket: Any = JobSocket.as_asgi()
elsewhere: Any = unknown_socket
routes: Any = [path("ws/v1", socket), path("<path:rest>", elsewhere)]
application: Any = ProtocolTypeRouter(
    {
        "http": Unspooled(django_application, [uploads_api.PATH]),
        "websocket": URLRouter(routes),
        "lifespan": Lifespan(),
    }
)
application = ServerMode(application) if settings.SERVER_MODE else LocalMode(application)
