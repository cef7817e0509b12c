"""Where things lie on disk: the socket of the private Redis, and secrets made on first use."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

# sockaddr_un holds 108 bytes on Linux and 104 on a Mac, the closing zero included.
SOCKET_PATH_BYTES = 100


def redis_socket(var: Path) -> Path:
    """The socket path of the private Redis: in `var`, or, where that path is too long for a
    socket, in a folder of our own under the system's temporary folder.

    The name depends only on `var` and the user, so every process finds the same one.
    """
    path = var / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        return path
    digest = hashlib.sha256(os.fsencode(var)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"playground-{os.getuid()}-{digest}" / "redis.sock"


def running_port(var: Path) -> Path:
    """The file that holds the port of the playground that runs on `var`."""
    return var / "port"


def private_folder(folder: Path) -> Path:
    """Makes `folder` readable by this user alone, and refuses one that someone else prepared."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ImproperlyConfigured(f"{folder} belongs to someone else; remove it and start again.")
    if stat.S_IMODE(info.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder


def secret(path: Path) -> str:
    """The text in `path`; made of 50 random characters, readable by this user alone, if missing."""
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(38)[:50])
    try:
        os.link(draft, path)  # fails if another process was first; then its secret counts
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii").strip()
