"""A private MariaDB for tests: its own folder, a unix socket, no network. Debian's package is
`mariadb-server-core`; a server that the machine runs already is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import MySQLdb

# A bulk load has no use for a log that survives a power cut.
QUICK = (
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--performance-schema=OFF",
    "--skip-log-bin",
)
TABLES = ("tables", "tables_data")
# What the guide tells people to run, word for word, but for the password.
SET_UP = (
    "CREATE DATABASE playground CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CREATE USER 'playground'@'localhost' IDENTIFIED BY 'a long password'",
    "GRANT ALL PRIVILEGES ON playground.* TO 'playground'@'localhost'",
)


class MariaDB:
    """`url` is a DATABASE_URL. `stop` and `start` again keep the data."""

    def __init__(self) -> None:
        self.folder = Path(
            tempfile.mkdtemp(prefix="pgm-")
        )  # short: a unix socket's path is limited
        self.socket = self.folder / "sock"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = (
            f"mysql://playground:{quote('a long password')}@localhost/playground"
            f"?unix_socket={self.socket}"
        )

    def create(self) -> None:
        """Makes the folder's system tables, starts, and sets the site's database up."""
        binary = _binary("mariadbd")
        # What mariadb-install-db does. That script needs a program out of the client's package.
        scripts = Path(binary).resolve().parent.parent / "share" / "mysql"
        words = ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket=NULL;"]
        words += [(scripts / f"mysql_system_{name}.sql").read_text() for name in TABLES]
        (self.folder / "data").mkdir()
        done = subprocess.run(
            [binary, *self._options(), "--bootstrap"],
            input="\n".join(words),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.start()
        with self.connect() as cursor:
            for statement in SET_UP:
                cursor.execute(statement)

    def start(self) -> None:
        command = [
            _binary("mariadbd"),
            *self._options(),
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'pid'}",
            "--skip-networking",
        ]
        with (self.folder / "log").open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        until = time.monotonic() + 30
        while True:
            try:
                with self.connect() as cursor:
                    cursor.execute("SELECT 1")
                return
            except MySQLdb.OperationalError as error:
                assert time.monotonic() < until and self.process.poll() is None, (
                    f"{error}\n{(self.folder / 'log').read_text()[-3000:]}"
                )
            time.sleep(0.05)

    def _options(self) -> list[str]:
        as_root = ["--user=root"] if os.geteuid() == 0 else []
        return ["--no-defaults", f"--datadir={self.folder / 'data'}", *QUICK, *as_root]

    def connect(self) -> _Session:
        """A session of root's, for looking in from outside."""
        return _Session(MySQLdb.connect(user="root", unix_socket=str(self.socket), autocommit=True))

    def sessions(self) -> int:
        """How many sessions the site's user has now."""
        with self.connect() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'playground'"
            )
            return int(cursor.fetchone()[0])

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def kill(self) -> None:
        """As a power cut."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)
        self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Session:
    def __init__(self, connection: MySQLdb.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> MySQLdb.cursors.Cursor:
        return self._connection.cursor()

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _binary(name: str) -> str:
    found = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    assert found, f"the tests need {name}: install mariadb-server-core (script/setup --tests)"
    return found
