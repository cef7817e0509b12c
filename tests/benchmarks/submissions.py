"""Submissions accepted per second with MySQL (a private MariaDB) for 20 s, and how long each takes.

Closed loop: each client sends its next submission when it has the answer. The jobs are planned for
an hour later, so that what is measured is the accepting and not the running; `--run` runs them too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import threading
import time
from datetime import UTC, datetime, timedelta

from tests.stack import Stack


def submit(port: int, body: str, until: float, took: list[float], refused: list[int]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"}
    while time.monotonic() < until:
        started = time.perf_counter()
        connection.request("POST", "/api/v1/jobs", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status == 202:
            took.append((time.perf_counter() - started) * 1000)
        else:
            refused.append(answer.status)
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args()
    later = datetime.now(UTC) + timedelta(hours=1)
    planned = {} if options.run else {"start_at": later.isoformat()}
    body = json.dumps({"kind": "pipe.echo", "params": {}, **planned})
    stack = Stack(database="mysql")
    took: list[float] = []
    refused: list[int] = []
    try:
        stack.start()
        submit(stack.port, body, time.monotonic() + 2, [], [])  # warms up
        started = time.monotonic()
        clients = [
            threading.Thread(
                target=submit, args=(stack.port, body, started + options.seconds, took, refused)
            )
            for _ in range(options.clients)
        ]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        seconds = time.monotonic() - started
    finally:
        stack.stop()
    p99 = statistics.quantiles(took, n=100)[98]
    print(
        f"{len(took)} accepted in {seconds:.1f} s by {options.clients} clients: "
        f"{len(took) / seconds:.0f}/s (target ≥ 100), p50 {statistics.median(took):.1f} ms, "
        f"p99 {p99:.0f} ms (target < 300), {len(refused)} refused {sorted(set(refused))}"
    )


if __name__ == "__main__":
    main()
