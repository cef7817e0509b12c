from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from playground import redis, stores
from playground.jobs import dispatch


class Command(BaseCommand):
    help = "Starts waiting jobs, one slot after another, and recovers lost ones. Run one of it."
    requires_system_checks: list[str] = []  # noqa: RUF012 (Django's own form)

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        if redis.wait_for_redis(
            timeout_s=stores.PATIENCE_S, stopping=stopping.is_set
        ) and stores.wait_for_database(stopping=stopping.is_set):
            dispatch.Dispatcher(dispatch.publish, stopping.is_set).run()
