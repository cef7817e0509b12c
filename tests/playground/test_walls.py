"""What must not be: torch in the web process or a worker, a second maker of Redis clients, tasks
with results or delays, the secrets of the site in a runner."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.playground.client import Client
from tests.stack import ROOT

HEAVY = ("torch", "numpy", "safetensors", "gensim", "plotly", "celery")
SITE = sorted((ROOT / "playground").rglob("*.py"))


def modules_after(code: str) -> set[str]:
    probe = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "playground.settings"},
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_web_process_imports_nothing_heavy() -> None:
    found = modules_after(
        "import playground.asgi\nfrom compute.core import kinds\nkinds.all_kinds()"
    )
    assert not found & set(HEAVY)
    assert "playground.jobs.api" in found


def test_a_worker_imports_no_torch() -> None:
    found = modules_after(
        "import playground.celery\nimport django\ndjango.setup()\n"
        "import playground.jobs.tasks\nfrom compute.core import kinds\nkinds.all_kinds()"
    )
    assert "celery" in found
    assert not found & {"torch", "numpy", "channels", "daphne"}


def test_the_running_web_process_stays_small(client: Client) -> None:
    for _ in range(50):
        client.get("/api/v1/kinds")
    web = psutil.Process(client.stack.parts["web"].pid)
    assert web.memory_info().rss < 150 * 2**20
    assert not [m.path for m in web.memory_maps() if "torch" in m.path]


@pytest.mark.parametrize("pattern", [r"\bRedis\(", r"from_url\(", r"\bStrictRedis\b"])
def test_one_module_makes_redis_clients(pattern: str) -> None:
    found = [p for p in SITE if re.search(pattern, p.read_text(encoding="utf-8"))]
    assert [p for p in found if p != ROOT / "playground" / "redis.py"] == []


@pytest.mark.parametrize(
    "pattern",
    [r"\beta=", r"countdown=", r"acks_late", r"AsyncResult", r"result_backend", r"group_send"],
)
def test_celery_carries_ids_and_nothing_else(pattern: str) -> None:
    assert [p for p in SITE if re.search(pattern, p.read_text(encoding="utf-8"))] == []


def test_one_module_touches_artifact_files() -> None:
    allowed = {"settings.py", "artifacts.py"}
    found = [p.name for p in SITE if "ARTIFACTS_DIR" in p.read_text(encoding="utf-8")]
    assert set(found) == allowed


def test_a_runner_knows_none_of_the_secrets(client: Client) -> None:
    worker = psutil.Process(client.stack.parts["worker-interactive"].pid)
    runners = [p for p in worker.children() if "compute.core.runner" in " ".join(p.cmdline())]
    assert runners
    for runner in runners:
        known = set(runner.environ())
        assert not known & {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}
        assert runner.environ()["OMP_NUM_THREADS"]


def test_every_module_is_short() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for p in SITE
        if (n := len(Path(p).read_text(encoding="utf-8").splitlines())) > 460
    }
    assert long == {}
