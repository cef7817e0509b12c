"""The supervisord configuration: it restarts what crashes and stops parts in reverse order."""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from playground.up.parts import Part


def _value(text: str) -> str:
    # supervisord expands %(name)s in every value.
    return text.replace("%", "%%")


def write_config(*, parts: Sequence[Part], var: Path, folder: Path) -> Path:
    """Write var/supervisord.conf and return its path. Each part logs to var/log/<name>.log."""
    logs = var / "log"
    logs.mkdir(parents=True, exist_ok=True)
    lines = [
        "[supervisord]",
        "nodaemon=true",
        f"logfile={_value(str(logs / 'supervisord.log'))}",
        f"pidfile={_value(str(var / 'supervisord.pid'))}",
        f"childlogdir={_value(str(logs))}",
    ]
    if os.geteuid() == 0:
        lines.append(f"user={getpass.getuser()}")
    for priority, part in enumerate(parts, start=1):
        lines += [
            "",
            f"[program:{part.name}]",
            f"command={_value(shlex.join(part.command))}",
            f"directory={_value(str(folder))}",
            f"priority={priority}",
            "autorestart=true",
            "startsecs=1",
            "startretries=10",
            f"stopwaitsecs={part.stop_s}",
            "redirect_stderr=true",
            f"stdout_logfile={_value(str(logs / f'{part.name}.log'))}",
            "stdout_logfile_maxbytes=5MB",
            "stdout_logfile_backups=1",
        ]
    path = var / "supervisord.conf"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path
