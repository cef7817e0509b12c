"""Settings from the environment. A bad value stops the start with a sentence that says what to do.

Every helper reads one variable, falls back to a default when it is unset or empty, and raises
`ImproperlyConfigured` naming the variable, the value it found and the values it accepts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


def envstr(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def envbool(name: str, default: bool) -> bool:
    raw = envstr(name).lower()
    if not raw:
        return default
    if raw in TRUE:
        return True
    if raw in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} is {raw!r}; set it to 1 or 0.")


def envint(name: str, default: int, *, low: int, high: int) -> int:
    raw = envstr(name)
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} is {raw!r}; set it to a whole number from {low} to {high}."
        ) from None
    if not low <= value <= high:
        raise ImproperlyConfigured(f"{name} is {value}; it must lie from {low} to {high}.")
    return value


def envchoice(name: str, default: str, choices: Sequence[str]) -> str:
    raw = envstr(name, default)
    if raw not in choices:
        raise ImproperlyConfigured(f"{name} is {raw!r}; set it to one of: {', '.join(choices)}.")
    return raw


def envdevices(name: str, default: str) -> list[str]:
    """`cpu` alone, or CUDA devices such as `cuda:0 cuda:1`, each once."""
    raw = envstr(name, default)
    found = raw.replace(",", " ").split()
    cuda = all(re.fullmatch(r"cuda:\d{1,3}", device) for device in found)
    if found != ["cpu"] and not (cuda and len(set(found)) == len(found)):
        raise ImproperlyConfigured(
            f"{name} is {raw!r}; set it to cpu, or to CUDA devices, each once: cuda:0 cuda:1."
        )
    return found


def envpath(name: str, default: Path) -> Path:
    """An absolute path. A relative value would mean another folder in each process, so it fails."""
    raw = envstr(name)
    if not raw:
        return default
    path = Path(raw).expanduser()
    if not path.is_absolute():
        raise ImproperlyConfigured(f"{name} is {raw!r}; give an absolute path.")
    return path


def database(name: str, sqlite_file: Path) -> dict[str, object]:
    """Django's DATABASES entry: SQLite in `sqlite_file` unless the variable holds `mysql://…`."""
    raw = envstr(name)
    if not raw:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(sqlite_file),
            "OPTIONS": {
                # IMMEDIATE takes the write lock at the start: a transaction that reads first and
                # writes later can then wait for its turn instead of failing half-way.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    url = urlsplit(raw)
    if url.scheme != "mysql" or not url.path.strip("/"):
        raise ImproperlyConfigured(
            f"{name} must look like mysql://user:password@host:3306/name; "
            "leave it unset for the built-in SQLite."
        )
    options: dict[str, object] = {
        "charset": "utf8mb4",
        "connect_timeout": 5,
        # A server that hangs must not hang us; a lock that isn't to be had is said before that.
        "read_timeout": 30,
        "write_timeout": 30,
        "init_command": "SET SESSION innodb_lock_wait_timeout = 10",
    }
    query = dict(parse_qsl(url.query))
    socket = query.pop("unix_socket", "")
    if query:
        raise ImproperlyConfigured(f"{name} has unknown options: {', '.join(sorted(query))}.")
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": unquote(url.path.strip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": socket or url.hostname or "127.0.0.1",
        "PORT": str(url.port or ""),
        "OPTIONS": options,
        "TEST": {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_bin"},
    }
