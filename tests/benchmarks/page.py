"""The lab page: bytes when cold, 12 attention maps of 64 × 64 painted, hover; against Plotly."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Page, Response, sync_playwright

from tests.chromium import launch_options
from tests.running import Up, free_port

HEADS, TOKENS, ROUNDS = 12, 64, 7
# The same random lower-triangular weights for both sides; each round is timed from "the numbers are
# there" to the end of the second animation frame, when they are on the screen.
COMMON = """
const n = tokens;
const maps = Array.from({length: heads}, () => {
  const values = new Float32Array(n * n);
  for (let i = 0; i < n; i += 1) {
    let total = 0;
    for (let j = 0; j <= i; j += 1) total += values[i * n + j] = Math.random() ** 4;
    for (let j = 0; j <= i; j += 1) values[i * n + j] /= total;
  }
  return values;
});
const labels = Array.from({length: n}, (_, i) => String.fromCharCode(97 + i % 26));
const host = document.createElement("div");
document.querySelector("main").append(host);
const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const painted = async () => { await frame(); await frame(); };
"""
OURS = f"""
async ([heads, tokens]) => {{
  {COMMON}
  await import("elements/matrix-view");
  const views = maps.map(() => host.appendChild(document.createElement("matrix-view")));
  for (const view of views) view.style.width = "420px";
  await painted();
  const started = performance.now();
  views.forEach((view, i) => {{
    view.data = {{rows: n, cols: n, values: maps[i], rowLabels: labels, colLabels: labels,
      title: "attention", ramp: "attention", scale: "unit", square: true}};
  }});
  await painted();
  const paint = performance.now() - started;
  const stage = views[0].querySelector("[role=group]");
  const box = stage.getBoundingClientRect();
  const hovers = [];
  for (let k = 0; k < 200; k += 1) {{
    const at = performance.now();
    stage.dispatchEvent(new PointerEvent("pointermove", {{bubbles: true,
      clientX: box.left + 60 + (k * 7) % 280, clientY: box.top + 60 + (k * 5) % 280}}));
    hovers.push(performance.now() - at);
    if (k % 20 === 0) await frame();
  }}
  host.remove();
  return [paint, Math.max(...hovers), hovers.reduce((a, b) => a + b) / hovers.length];
}}
"""
PEER = f"""
async ([heads, tokens]) => {{
  {COMMON}
  await import("vendor/plotly");
  const boxes = maps.map(() => {{
    const box = host.appendChild(document.createElement("div"));
    box.style.width = box.style.height = "420px";
    return box;
  }});
  const rows = maps.map((m) => Array.from({{length: n}}, (_, i) => m.subarray(i * n, i * n + n)));
  await painted();
  const started = performance.now();
  await Promise.all(boxes.map((box, i) => Plotly.newPlot(box, [{{type: "heatmap", z: rows[i]}}])));
  await painted();
  const paint = performance.now() - started;
  host.remove();
  return [paint];
}}
"""


def cold_bytes(page: Page, url: str) -> tuple[int, int]:
    """Bytes on the wire of a first visit: (without Plotly and the math font, those two)."""
    own = extra = 0

    def count(response: Response) -> None:
        nonlocal own, extra
        sizes = response.request.sizes()
        size = sizes["responseBodySize"] + sizes["responseHeadersSize"]
        if "plotly" in response.url or "STIX" in response.url:
            extra += size
        else:
            own += size

    page.on("requestfinished", lambda request: count(request.response()))
    page.goto(url)
    page.wait_for_load_state("networkidle")
    return own, extra


def main() -> None:
    up = Up(Path(tempfile.mkdtemp(prefix="bench")), free_port())
    try:
        up.wait_for("The playground is ready")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(**launch_options())
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            own, extra = cold_bytes(page, f"http://127.0.0.1:{up.port}/labs/transformer")
            size = [HEADS, TOKENS]
            ours = [page.evaluate(OURS, size) for _ in range(ROUNDS)]
            peer = [page.evaluate(PEER, size) for _ in range(ROUNDS)]
            browser.close()
    finally:
        up.end()
    paint, bare = (statistics.median(r[0] for r in side) for side in (ours, peer))
    worst = statistics.median(r[1] for r in ours)
    mean = statistics.median(r[2] for r in ours)
    print(
        f"cold page: {own / 1e3:.0f} kB (target < 300), Plotly and math font {extra / 1e3:.0f} kB"
    )
    print(f"{HEADS} maps of {TOKENS} × {TOKENS}, data arrived → painted: {paint:.0f} ms (< 300)")
    print(f"the same with Plotly heat maps: {bare:.0f} ms; ratio {paint / bare:.2f}")
    print(f"hover, 200 moves: mean {mean:.2f} ms, longest {worst:.1f} ms (target < 16)")


if __name__ == "__main__":
    main()
