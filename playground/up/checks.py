"""What `manage.py doctor` looks at. A check returns what it found or raises Sick."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from playground import paths
from playground.redis import wait_for_redis
from playground.up.watch import health


class Sick(Exception):
    """Something is wrong; the message says what, and what to do."""


@dataclass(frozen=True)
class Finding:
    name: str
    ok: bool
    text: str


def python_version() -> str:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        raise Sick(f"Python {sys.version.split()[0]} is untried; use 3.11, 3.12 or 3.13.")
    return sys.version.split()[0]


def packages() -> str:
    """Every pin of requirements.txt is what is installed."""
    pins = re.findall(
        r"^([A-Za-z0-9_.-]+)(?:\[\w+\])?==([^\s#]+)",
        (settings.BASE_DIR / "requirements.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    wrong = []
    for name, wanted in pins:
        try:
            found = metadata.version(name).split("+")[0]  # torch says 2.13.0+cpu
        except metadata.PackageNotFoundError:
            found = "none"
        if found != wanted:
            wrong.append(f"{name} {wanted} (found {found})")
    if wrong:
        raise Sick(f"Not as pinned: {', '.join(wrong)}. Run script/setup.")
    return f"{len(pins)} as pinned"


def torch_works() -> str:
    """In a process of its own: no part of the site imports torch."""
    code = "import torch; print(torch.__version__, 'CUDA' if torch.cuda.is_available() else 'CPU')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Sick(f"torch can't be imported: {last[0]}. Run script/setup.")
    return done.stdout.strip()


def redis_binary() -> str:
    if settings.REDIS_SOCKET is None:
        return "not needed: REDIS_URL is set"
    path = shutil.which("redis-server")
    if path is None:
        raise Sick("redis-server is not installed. Run script/setup.")
    return path


def redis_answers() -> str:
    try:
        wait_for_redis(timeout_s=2)
    except Exception as error:
        raise Sick(
            f"Redis does not answer ({error}). Start the playground with script/run."
        ) from error
    return settings.REDIS_URL


def database() -> str:
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Exception as error:
        raise Sick(f"The database does not answer: {error}. Check DATABASE_URL.") from error
    if plan:
        raise Sick(f"{len(plan)} migrations are missing. Run: manage.py migrate")
    return connection.vendor


def folder() -> str:
    var: Path = settings.VAR_DIR
    if not var.is_dir():
        raise Sick(f"{var} is not there yet. script/run makes it.")
    if not os.access(var, os.W_OK):
        raise Sick(f"{var} can't be written. Give this user the right, or set VAR_DIR.")
    free = shutil.disk_usage(var).free / 1e9
    if free < 1:
        raise Sick(f"{var} has {free:.1f} GB left; runs need about 1 GB. Free some space.")
    return f"{var}, {free:.0f} GB free"


def catalogues() -> str:
    sources = list((settings.BASE_DIR / "locale").rglob("*.po"))
    missing = [po for po in sources if not po.with_suffix(".mo").is_file()]
    if missing:
        raise Sick("The Chinese catalogues are not compiled. script/run compiles them.")
    return f"{len(sources)} compiled"


def static_files() -> str:
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if not manifest.is_file():
        raise Sick("The static files are not collected. Run: manage.py collectstatic")
    return str(manifest.parent)


def everything_up() -> str:
    file = paths.running_port(settings.VAR_DIR)
    port = file.read_text() if file.is_file() else settings.PORT
    url = f"http://127.0.0.1:{port}"
    up, parts = health(url)
    if up:
        return f"{', '.join(parts)} at {url}"
    silent = [name for name, part in parts.items() if not part.get("ok")]
    if silent:
        raise Sick(f"Not up: {', '.join(silent)}. Their logs are under {settings.VAR_DIR}/log.")
    raise Sick(f"Nothing answers at {url}. Start the playground with script/run.")


CHECKS: dict[str, Callable[[], str]] = {
    "Python": python_version,
    "packages": packages,
    "torch": torch_works,
    "var folder": folder,
    "database": database,
    "catalogues": catalogues,
    "static files": static_files,
    "redis-server": redis_binary,
    "Redis": redis_answers,
    "running parts": everything_up,
}


def examine() -> Iterator[Finding]:
    """Run every check; one that fails never hides the next."""
    for name, check in CHECKS.items():
        try:
            yield Finding(name, True, check())
        except Sick as sick:
            yield Finding(name, False, str(sick))
