"""What Celery calls: `run_job`, and a probe that proves that the consumer consumes.

No result is stored, nothing is scheduled ahead, messages are acknowledged before they run. The
job's row decides who runs it, so a message that comes twice does nothing.
"""

# mypy: disable-error-code=untyped-decorator
# Celery ships no types.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import signals
from celery.utils.log import get_logger

from playground.celery import app
from playground.jobs import worker

logger = get_logger(__name__)


@app.task(name="run_job")
def run_job(job_id: str, attempt: int) -> None:
    worker.current().supervise(job_id, attempt)


def answer_in_the_loop(task: Any, app: Any, consumer: Any) -> Callable[..., None]:
    """Celery's hook for what happens to a message. This one answers it on the spot, in the
    consumer's loop, since all threads of the pool may be busy with long jobs."""

    def handle(message: Any, body: Any, ack: Any, reject: Any, callbacks: Any, **_: Any) -> None:
        ack(logger, consumer.connection_errors)
        if worker._current is not None:
            worker._current.probed.set()

    return handle


@app.task(name="probe")
def probe(queue: str) -> None:
    """Never runs in the pool; see `answer_in_the_loop`."""


probe.Strategy = f"{__name__}:answer_in_the_loop"


@signals.celeryd_after_setup.connect
def _after_setup(sender: str, instance: Any, **_: Any) -> None:
    worker.boot(instance.app, list(instance.app.amqp.queues.consume_from))


@signals.worker_shutting_down.connect
def _shutting_down(**_: Any) -> None:
    if worker._current is not None:
        worker._current.stop()


@signals.worker_shutdown.connect
def _shutdown(**_: Any) -> None:
    worker.shut()
