"""The web process: pages, API and socket. It never imports torch."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from django.urls import path

from playground.jobs.lifespan import Lifespan
from playground.jobs.socket import JobSocket, unknown_socket
from playground.local_mode import LocalMode

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": URLRouter(
            [path("ws/v1", JobSocket.as_asgi()), path("<path:rest>", unknown_socket)]
        ),
        "lifespan": Lifespan(),
    }
)
if not settings.SERVER_MODE:
    application = LocalMode(application)
