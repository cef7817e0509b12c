"""An interactive job over REST with Prefer: wait=10, against a bare Celery delay().get().

Both on the same private Redis in one run, alternating. Ours includes HTTP, the checks, the
database's writes, the supervisor, the stream and the answer; the peer a task that returns at once.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import httpx

from tests.benchmarks.bare_celery import app as bare_app
from tests.benchmarks.bare_celery import nothing
from tests.stack import ROOT, Stack

ROUNDS = 200
WARM = 10
BODY = {"kind": "pipe.echo", "params": {}}


def main() -> None:
    stack = Stack()
    worker = None
    ours: list[float] = []
    bare: list[float] = []
    try:
        stack.start()
        broker = f"{stack.redis.url.replace('unix://', 'redis+socket://')}?virtual_host=3"
        os.environ["BARE_BROKER"] = broker
        bare_app.conf.update(broker_url=broker, result_backend=broker)
        command = "-m celery -A tests.benchmarks.bare_celery worker --pool threads -c 1 -l ERROR"
        worker = subprocess.Popen(
            [sys.executable, *command.split()], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        nothing.delay().get(timeout=60)
        with httpx.Client(base_url=stack.url, headers={"Prefer": "wait=10"}) as client:
            for number in range(ROUNDS + WARM):
                started = time.perf_counter()
                answer = client.post("/api/v1/jobs", json=BODY)
                took = time.perf_counter() - started
                if answer.json()["state"] != "succeeded":
                    raise SystemExit(f"not done: {answer.text}")
                started = time.perf_counter()
                nothing.delay().get(timeout=10)
                if number >= WARM:
                    bare.append((time.perf_counter() - started) * 1000)
                    ours.append(took * 1000)
    finally:
        if worker is not None:
            worker.terminate()
            worker.wait()
        stack.stop()
    p50, peer = statistics.median(ours), statistics.median(bare)
    print(f"POST with Prefer: wait=10:         p50 {p50:.1f} ms, p99 {sorted(ours)[-3]:.1f} ms")
    print(f"bare Celery + Redis delay().get(): p50 {peer:.1f} ms, p99 {sorted(bare)[-3]:.1f} ms")
    print(f"ratio {p50 / peer:.2f} (target ≤ 3, hoped for ≤ 2)")


if __name__ == "__main__":
    main()
