"""Submit → first event in the browser, against a bare Celery + Redis round trip.

Both run on the same private Redis in one run, alternating: ours is a warm interactive job
(`transformer.generate` of one token on a small trained model), submitted and followed by the page's
own script in Chromium; the peer is `delay().get()` of a task that returns at once.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from celery import Celery
from playwright.sync_api import Page, sync_playwright

from tests.benchmarks.bare_celery import app as bare_app
from tests.benchmarks.bare_celery import nothing
from tests.chromium import launch_options
from tests.running import ROOT, Up, free_port

ROUNDS = 60
OURS = """
async ([model]) => {
  const {submit, follow} = await import("core/jobs");
  const started = performance.now();
  let first;
  const seen = new Promise((resolve) => { first = resolve; });
  const job = await submit("transformer.generate", {model, prompt: "T", max_tokens: 1});
  const submitted = performance.now();
  const handle = follow(job.id, {onEvent: () => first(performance.now())});
  const at = await seen;
  handle.close();
  return [at - started, submitted - started];
}
"""


def train(url: str) -> str:
    params = {"steps": 20, "layers": 1, "d_model": 32, "heads": 2}
    job = httpx.post(
        f"{url}/api/v1/jobs", json={"kind": "transformer.train", "params": params}
    ).raise_for_status()
    run: str = job.json()["id"]
    while (state := httpx.get(f"{url}/api/v1/jobs/{run}").json())["state"] != "succeeded":
        if state["state"] in ("failed", "canceled", "aborted"):
            raise SystemExit(f"the small model could not be trained: {state['message']}")
        time.sleep(0.2)
    return run


def measure(page: Page, model: str, peer: Celery) -> tuple[list[float], list[float], list[float]]:
    ours: list[float] = []
    posts: list[float] = []
    bare: list[float] = []
    for round_ in range(ROUNDS + 5):
        first, submitted = page.evaluate(OURS, [model])
        started = time.perf_counter()
        nothing.delay().get(timeout=10)
        took = (time.perf_counter() - started) * 1000
        if round_ >= 5:  # the first rounds warm both sides up
            ours.append(first)
            posts.append(submitted)
            bare.append(took)
    return ours, posts, bare


def main() -> None:
    var = Path(tempfile.mkdtemp(prefix="bench"))
    up = Up(var, free_port())
    worker = None
    try:
        up.wait_for("The playground is ready")
        url = f"http://127.0.0.1:{up.port}"
        broker = f"redis+socket://{var}/redis.sock?virtual_host=3"
        os.environ["BARE_BROKER"] = broker
        bare_app.conf.update(broker_url=broker, result_backend=broker)
        command = "-m celery -A tests.benchmarks.bare_celery worker --pool threads -c 1 -l ERROR"
        worker = subprocess.Popen([sys.executable, *command.split()], cwd=ROOT)
        nothing.delay().get(timeout=60)
        model = train(url)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(**launch_options())
            page = browser.new_page()
            page.goto(f"{url}/labs/transformer?run={model}")
            ours, posts, bare = measure(page, model, bare_app)
            browser.close()
    finally:
        if worker is not None:
            worker.terminate()
            worker.wait()
        up.end()
    p50, peer = statistics.median(ours), statistics.median(bare)
    print(f"submit → first event in the browser: p50 {p50:.1f} ms, max {max(ours):.1f} ms")
    print(f"  of which the POST: p50 {statistics.median(posts):.1f} ms")
    print(f"bare Celery + Redis delay().get():   p50 {peer:.1f} ms, max {max(bare):.1f} ms")
    print(f"ratio {p50 / peer:.2f} (target ≤ 5)")


if __name__ == "__main__":
    main()
