"""The peer of the latency benchmark: a Celery application with nothing around it."""

from __future__ import annotations

import os

from celery import Celery

url = os.environ.get("BARE_BROKER", "memory://")
app = Celery("bare", broker=url, backend=url if url != "memory://" else None)


@app.task
def nothing() -> int:
    return 1
