"""`/metrics` in Prometheus' text format. Names follow https://prometheus.io/docs/practices/naming/:
base units (seconds, bytes), counters end in `_total`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from playground.jobs.counts import counts
from playground.operations import figures
from playground.operations.figures import Figures

PREFIX = "playground_"
COUNTS = (
    # name, help, attribute of `counts`, and whether it only grows
    ("sockets", "WebSockets that are open in this web process.", "sockets", False),
    (
        "followers",
        "Readers of a job's events now, over sockets, SSE and waits.",
        "followers",
        False,
    ),
    ("events_read", "Events read from the streams, once for all readers.", "events_read", True),
    ("events_delivered", "Events handed to readers.", "events_delivered", True),
    ("catch_ups", "Times that a reader went to the log.", "catch_ups", True),
    ("overflows", "Readers so slow that their queue was given up.", "overflows", True),
    ("gaps", "Readers told that earlier events are gone.", "gaps", True),
)


class Collected(Collector):
    def __init__(self, found: Figures) -> None:
        self.found = found

    def collect(self) -> Iterator[Metric]:
        found = self.found
        yield from _parts(found)
        yield from _queues(found)
        yield from _latencies(found)
        ended = CounterMetricFamily(
            f"{PREFIX}jobs_ended",
            "Jobs that ended since this web process started. An empty reason: none.",
            labels=["kind", "state", "reason"],
        )
        for key, number in sorted(found.ended.items()):
            ended.add_metric(key, number)
        yield ended
        for name, words, attribute, grows in COUNTS:
            family = CounterMetricFamily if grows else GaugeMetricFamily
            yield family(PREFIX + name, words, value=getattr(counts, attribute))
        yield from _memory(found)


def _parts(found: Figures) -> Iterator[Metric]:
    up = _gauge("part_up", "1: the part is well, as /healthz says; 0: it is not.", "part")
    for name, part in found.parts.items():
        up.add_metric([name], int(part["ok"]))
    yield up


def _queues(found: Figures) -> Iterator[Metric]:
    waiting = _gauge("queue_waiting_jobs", "Jobs that wait for a slot.", "queue")
    oldest = _gauge("queue_oldest_seconds", "Age of the longest waiting job; 0: none.", "queue")
    running = _gauge("queue_running_jobs", "Jobs that hold a slot.", "queue")
    slots = _gauge("queue_slots", "Jobs that can run at once.", "queue")
    no_op = _gauge("queue_no_op_age_seconds", "Time since a job that does nothing ran.", "queue")
    for queue in found.queues:
        waiting.add_metric([queue.name], queue.waiting)
        oldest.add_metric([queue.name], queue.oldest_s or 0.0)
        running.add_metric([queue.name], queue.running)
        slots.add_metric([queue.name], queue.slots)
        if queue.no_op_age_s is not None:
            no_op.add_metric([queue.name], queue.no_op_age_s)
    yield from (waiting, oldest, running, slots, no_op)


def _latencies(found: Figures) -> Iterator[Metric]:
    labels = ("kind", "quantile")
    first = _gauge("job_first_event_seconds", "From submission to a job's first event.", *labels)
    end = _gauge("job_end_seconds", "From submission to a job's end.", *labels)
    number = _gauge("jobs_ended_last_hour", "Jobs that the two latencies are taken from.", "kind")
    for latency in found.latencies:
        number.add_metric([latency.kind], latency.count)
        for family, values in ((first, latency.first_event), (end, latency.end)):
            for quantile, seconds in values.items():
                family.add_metric([latency.kind, f"{quantile:g}"], seconds)
    yield from (first, end, number)


def _memory(found: Figures) -> Iterator[Metric]:
    runners = _gauge(
        "runner_resident_bytes",
        "Memory of a runner with all that it started. Measured while somebody asks.",
        *("worker", "pid", "busy"),
    )
    for runner in found.runners:
        labels = [runner.worker, str(runner.pid), str(runner.busy).lower()]
        runners.add_metric(labels, runner.resident_mb * 2**20)
    yield runners
    store = found.redis
    if store.ok:
        yield GaugeMetricFamily(
            f"{PREFIX}redis_used_bytes", "Memory that Redis uses.", value=store.used_bytes
        )
        yield GaugeMetricFamily(
            f"{PREFIX}redis_limit_bytes", "Memory that it may use; 0: all.", value=store.limit_bytes
        )
        yield GaugeMetricFamily(f"{PREFIX}redis_keys", "Keys in Redis.", value=store.keys)
        yield GaugeMetricFamily(
            f"{PREFIX}redis_clients", "Connections to Redis.", value=store.clients
        )
    yield CounterMetricFamily(
        f"{PREFIX}web_cpu_seconds", "Processor time of this web process.", value=found.cpu_s
    )
    yield GaugeMetricFamily(
        f"{PREFIX}web_resident_bytes", "Memory of this web process.", value=found.resident_bytes
    )


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, words, labels=labels)


def text() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected(figures.current()))
    return generate_latest(registry)
