"""What has to be true before the parts start. A step whose input is unchanged is skipped."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import psutil
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from playground.up.problems import CannotStart


def check_port(port: int) -> None:
    """Raises CannotStart for a port that the web server could not take."""
    if not 1 <= port <= 65535:
        raise CannotStart(f"Port {port} does not exist; choose one from 1 to 65535.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise CannotStart(
                f"Port {port} needs more rights than you have; choose one above 1023 with --port."
            ) from None
        except OSError:
            raise CannotStart(
                f"Port {port} is in use by another program. Choose another: "
                f"script/run --port {port + 1 if port < 65535 else 8000}"
            ) from None


def check_not_running(var: Path) -> None:
    """Refuse a second start in the same folder; clear away what a killed one left behind."""
    pidfile = var / "supervisord.pid"
    try:
        process = psutil.Process(int(pidfile.read_text()))
        ours = any("supervisor" in word for word in process.cmdline())
    except (OSError, ValueError, psutil.Error):
        ours = False
    if ours:
        raise CannotStart(
            f"The playground already runs here (process {process.pid}). "
            "Stop it with Ctrl-C where it was started, or with: kill " + str(process.pid)
        )
    stop_leftovers(var)


def stop_leftovers(var: Path) -> None:
    """End parts whose supervisord was killed: their environment names this folder."""
    left = []
    for process in psutil.process_iter(["pid", "environ"]):
        environment = process.info["environ"] or {}
        if environment.get("PLAYGROUND_PART_OF") == str(var) and process.pid != os.getpid():
            left.append(process)
    for process in left:
        send(process, signal.SIGTERM)
    _, alive = psutil.wait_procs(left, timeout=5)
    for process in alive:
        send(process, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=2)


def send(process: psutil.Process, number: signal.Signals) -> None:
    """Signal a process that may be gone by now."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def fingerprint(folders: Iterable[Path], extra: Iterable[str] = ()) -> str:
    """A digest of names, sizes and times below the folders; cheap, and enough to see a change."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".mo":
                about = path.stat()
                digest.update(f"{path}|{about.st_size}|{about.st_mtime_ns}\n".encode())
    for word in extra:
        digest.update(word.encode())
    return digest.hexdigest()


def is_done(name: str, mark: str) -> bool:
    """True when the step `name` was last done for exactly this `mark`."""
    path = settings.VAR_DIR / "done" / name
    return path.is_file() and path.read_text() == mark


def note_done(name: str, mark: str) -> None:
    path = settings.VAR_DIR / "done" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(mark)


def prepare_catalogues() -> None:
    from playground.web.catalogues import compile_all

    folder = settings.BASE_DIR / "locale"
    mark = fingerprint([folder])
    compiled = all(po.with_suffix(".mo").is_file() for po in folder.rglob("*.po"))
    if not (compiled and is_done("catalogues", mark)):
        compile_all()
        note_done("catalogues", mark)


def prepare_static() -> None:
    versions = [
        f"{d.metadata['Name']}={d.version}"
        for d in map(metadata.distribution, ("plotly", "django-ninja", "django-htmx", "ziamath"))
    ]
    mark = fingerprint([settings.BASE_DIR / "static"], versions)
    if not is_done("static", mark):
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        note_done("static", mark)


def prepare_database() -> None:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    connection.close()


def prepare_all() -> None:
    """Do every step."""
    prepare_catalogues()
    prepare_static()
    prepare_database()
