"""Controls for one supervised job, on their way from the listener's thread to the job's own."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any


class Inbox:
    """Controls for one supervised job; a pipe wakes its thread."""

    def __init__(self) -> None:
        self._items: deque[dict[str, Any]] = deque()
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._open = True
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self._read

    def post(self, control: dict[str, Any]) -> None:
        with self._lock:
            if self._open:
                self._items.append(control)
                os.write(self._write, b".")

    def drain(self) -> list[dict[str, Any]]:
        with self._lock:
            os.read(self._read, 4096)
            items = list(self._items)
            self._items.clear()
            return items

    def close(self) -> None:
        with self._lock:
            self._open = False
            os.close(self._read)
            os.close(self._write)
