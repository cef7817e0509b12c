"""The web process: what `import playground.asgi` loads, and memory after 100 requests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from tests.running import Up, free_port

IMPORT = """
import os, resource, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "playground.settings"
import playground.asgi
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == "linux" else 1024)
print(f"import playground.asgi: {peak / 1024:.0f} MB, torch loaded: {'torch' in sys.modules}")
"""
PATHS = ("/", "/labs/transformer", "/api/v1/kinds", "/api/v1/jobs", "/healthz")


def main() -> None:
    print(subprocess.check_output([sys.executable, "-c", IMPORT], text=True).strip())
    up = Up(Path(tempfile.mkdtemp(prefix="bench")), free_port())
    try:
        up.wait_for("The playground is ready")
        web = up.part("uvicorn")
        before = web.memory_info().rss / 2**20
        with httpx.Client(base_url=f"http://127.0.0.1:{up.port}") as client:
            for number in range(100):
                client.get(PATHS[number % len(PATHS)]).raise_for_status()
        after = web.memory_info().rss / 2**20
    finally:
        up.end()
    print(
        f"web process: {before:.0f} MB at start, {after:.0f} MB after 100 requests (target < 150)"
    )


if __name__ == "__main__":
    main()
