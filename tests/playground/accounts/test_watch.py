"""The watch over open sockets, where closing one of them goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from django.conf import settings

from playground.accounts import watch as module
from playground.accounts.owner import Actor
from playground.accounts.watch import SIGNED_OUT, Open, Watch


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Whose every item has lost its right, without a database to say so."""

    async def all_withdrawn(_look: Callable[..., object], seen: list[Open]) -> object:
        return [(item, SIGNED_OUT) for item in seen]

    monkeypatch.setattr(settings, "SERVER_MODE", True)
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    monkeypatch.setattr(module.database, "call", all_withdrawn)
    return Watch()


def test_one_that_does_not_close_holds_up_no_other(watching: Watch) -> None:
    closed: list[int] = []

    async def stuck(code: int) -> None:
        await asyncio.sleep(3600)

    async def broken(code: int) -> None:
        raise ConnectionError

    async def good(code: int) -> None:
        closed.append(code)

    async def several() -> None:
        for close in (stuck, broken, good, stuck, broken, good):
            watching.add(Open(Actor(1), close))
        async with asyncio.timeout(10):
            while len(closed) < 2:
                await asyncio.sleep(0.01)
        watching.add(Open(Actor(1), good))  # and the watch goes on
        async with asyncio.timeout(10):
            while len(closed) < 3:
                await asyncio.sleep(0.01)

    asyncio.run(several())
    assert closed == [SIGNED_OUT] * 3
