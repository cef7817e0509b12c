"""The Celery application. It carries job ids to the workers; see `playground.jobs.tasks`.

Its process never imports torch: CUDA can't be set up again after a fork, and forked torch hangs.
"""

from __future__ import annotations

import os

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")

from playground import redis

app = Celery("playground", strict_typing=False)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    broker_url=redis.broker_url(),
    broker_transport_options=redis.broker_options(),
    imports=("playground.jobs.tasks",),
)


@signals.setup_logging.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _leave_the_log(**_: object) -> None:
    """Django's settings have set the log up; Celery, which would set its own level, leaves it."""
