"""The parts of a running playground, in the order in which they start."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from playground import paths
from playground.up.problems import CannotStart


@dataclass(frozen=True)
class Part:
    """One long-running process.

    `stop_s` is how long it may take to end by itself before it is killed.
    """

    name: str
    command: tuple[str, ...]
    stop_s: int


def redis_part(socket: Path) -> Part:
    """A private Redis: a unix socket only, an append-only file so that a restart loses nothing."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise CannotStart(
            "redis-server is not installed. Run script/setup, or set REDIS_URL to one that runs."
        )
    folder = settings.VAR_DIR / "redis"
    folder.mkdir(parents=True, exist_ok=True)
    if socket.parent != settings.VAR_DIR:
        paths.private_folder(socket.parent)
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        # Evicting a queue or a stream would lose a job in silence; refusing a write is said aloud.
        "maxmemory-policy": "noeviction",
        # Its own title would overwrite the environment, by which left-behind parts are found.
        "set-proc-title": "no",
    }
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    return Part("redis", (binary, *arguments), stop_s=10)


def parts(*, port: int) -> list[Part]:
    """Stores, then workers, then the web; stopping runs the other way round."""
    python = sys.executable
    manage = str(settings.BASE_DIR / "manage.py")
    found: list[Part] = []
    if settings.REDIS_SOCKET is not None:
        found.append(redis_part(settings.REDIS_SOCKET))
    found.append(Part("dispatcher", (python, manage, "dispatch"), stop_s=5))
    for queue, slots in settings.SLOTS.items():
        options = f"--queues {queue} --concurrency {slots} --hostname {queue}@%h --pool threads"
        quiet = "--loglevel WARNING --without-mingle --without-gossip"
        celery = f"-m celery --quiet -A playground worker {options} {quiet}"
        found.append(Part(f"worker-{queue}", (python, *celery.split()), stop_s=20))
    # Only a proxy on this machine is believed about who its visitor is.
    forwarded = "--proxy-headers" if settings.BEHIND_PROXY else "--no-proxy-headers"
    uvicorn = (
        f"-m uvicorn playground.asgi:application --host 127.0.0.1 --port {port} {forwarded} "
        "--ws-per-message-deflate false --ws-max-size 65536 --timeout-graceful-shutdown 5 "
        "--lifespan on --log-level warning --no-access-log"
    )
    found.append(Part("web", (python, *uvicorn.split()), stop_s=10))
    return found
