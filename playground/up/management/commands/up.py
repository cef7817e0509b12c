from __future__ import annotations

import argparse
import os
import signal
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db.utils import OperationalError

from playground import paths
from playground.up.config import write_config
from playground.up.parts import parts
from playground.up.prepare import check_not_running, check_port, prepare_all
from playground.up.problems import CannotStart
from playground.up.watch import Supervisord, wait_until_up

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(BaseCommand):
    help = "Start every part on this machine, print the address, and stop it all on Ctrl-C."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=settings.PORT, help="default %(default)s")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        # A closed terminal or `kill` asks for the same orderly end as Ctrl-C, which is set too: a
        # shell starts what it puts into the background with SIGINT ignored.
        for number in ENDS:
            signal.signal(number, _interrupt)
        try:
            self._run(port)
        except CannotStart as problem:
            raise CommandError(str(problem)) from None
        except KeyboardInterrupt:
            self._say("Stopped before everything was up.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _run(self, port: int) -> None:
        var = settings.VAR_DIR
        var.mkdir(parents=True, exist_ok=True)
        check_not_running(var)
        check_port(port)
        try:
            prepare_all()
        except OperationalError as error:
            raise CannotStart(
                f"The database does not answer: {error}. Check DATABASE_URL."
            ) from None
        os.environ["PLAYGROUND_PART_OF"] = str(var)
        os.environ["PORT"] = str(port)
        paths.running_port(var).write_text(str(port))
        config = write_config(parts=parts(port=port), var=var, folder=settings.BASE_DIR)
        running = Supervisord(config=config, logs=var / "log", tell=self._say)
        try:
            wait_until_up(running, url=f"http://127.0.0.1:{port}")
            self._say(f"The playground is ready: {address(port)}")
            self._say("Ctrl-C stops it.")
            running.process.wait()
            raise CannotStart(f"supervisord ended. Read {var}/log/supervisord.log.")
        except KeyboardInterrupt:
            self._say("\nStopping…")
        finally:
            # A second Ctrl-C must not cut the orderly stop short.
            for number in ENDS:
                signal.signal(number, signal.SIG_IGN)
            running.stop()
            paths.running_port(var).unlink(missing_ok=True)
        self._say("Stopped. Nothing was lost: runs and their events are under var/.")


def address(port: int) -> str:
    """What to open in the browser; with the token, where one is asked for."""
    url = f"http://127.0.0.1:{port}/"
    return f"{url}?token={paths.secret(settings.LOCAL_TOKEN_FILE)}" if settings.LOCAL_TOKEN else url


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
