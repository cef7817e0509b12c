"""The check of an uploaded file, in a process of its own: memory and time stay out of this one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from compute.core.errors import UserError
from compute.core.texts import Text
from playground.jobs.runners import SECRETS
from playground.problems import ApiProblem

log = logging.getLogger(__name__)
LIMIT_S = 600.0  # the largest file takes about a minute
AT_ONCE = 2  # so that a class which uploads together leaves a core to everyone else

_turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


async def check(folder: Path) -> dict[str, Any]:
    """Runs `compute.text.intake` on a folder; `{form, encoding, about}` of what it keeps there.
    Raises UserError when the file can't be used."""
    loop = asyncio.get_running_loop()
    async with _turns.setdefault(loop, asyncio.Semaphore(AT_ONCE)):
        said = await _run(folder)
    if "refused" in said:
        raise UserError(Text(said["refused"]["en"], said["refused"]["zh-hans"]))
    return said


async def _run(folder: Path) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "compute.text.intake",
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
        cwd=settings.BASE_DIR,
        env={name: value for name, value in os.environ.items() if name not in SECRETS},
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode != 0:
        log.error("the check of an upload ended with %s", process.returncode)
        raise ApiProblem("internal")
    said: dict[str, Any] = json.loads(out)
    return said
