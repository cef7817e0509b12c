"""The Python client of the guide, taken from its page and run: whole, over cut connections, and on
text that a careless reader of lines would break."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.playground.client import Client
from tests.stack import Stack

ClientAt = Callable[[str], dict[str, Any]]
PAGE = Path(__file__).resolve().parents[2] / "playground/web/docs/api.en.md"


def code() -> tuple[str, str]:
    """(the functions, what the page does with them)."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    functions, run, example = block.partition("\nrun = ")
    assert run, "the example begins with its run"
    return functions, run + example


@pytest.fixture
def client_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientAt]:
    """Makes the names that the page defines, for a server at that address."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    made: list[dict[str, Any]] = []

    def names(url: str) -> dict[str, Any]:
        monkeypatch.setenv("PLAYGROUND", url)
        made.append({})
        exec(code()[0], made[-1])
        return made[-1]

    yield names
    for found in made:
        found["api"].close()


@contextmanager
def cutting_proxy(port: int, cuts: list[int]) -> Iterator[str]:
    """A way to `port` that cuts the first connections after so many bytes of answer, one each."""
    listener = socket.create_server(("127.0.0.1", 0))

    def upwards(client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := client.recv(65536):
                # The server checks that it is asked by its own address.
                server.sendall(piece.replace(here.encode(), f"127.0.0.1:{port}".encode()))

    def serve(client: socket.socket, limit: int | None) -> None:
        with (
            client,
            socket.create_connection(("127.0.0.1", port)) as server,
            contextlib.suppress(OSError),  # the client may leave first
        ):
            threading.Thread(target=upwards, args=(client, server), daemon=True).start()
            left = limit
            while piece := server.recv(65536):
                client.sendall(piece if left is None else piece[:left])
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        break
            client.shutdown(socket.SHUT_RDWR)  # the other thread is still reading from it

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            limit = cuts.pop(0) if cuts else None
            threading.Thread(target=serve, args=(client, limit), daemon=True).start()

    here = f"127.0.0.1:{listener.getsockname()[1]}"
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://{here}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_the_example_runs(
    client: Client,
    stack: Stack,
    client_at: ClientAt,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = client_at(stack.url)
    exec(code()[1], names)
    job_id = names["run"]["id"]
    metrics = [e["data"] for e in client.events(job_id) if e["type"] == "metric"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        str(data["step"]) for data in metrics
    ]
    assert len(metrics) >= 20
    assert names["config"] == client.get(f"/api/v1/jobs/{job_id}/artifacts/config.json").json


def test_an_answer_that_is_lost_on_its_way_makes_no_second_job(
    client: Client, stack: Stack, client_at: ClientAt
) -> None:
    def count() -> int:
        items = client.get("/api/v1/jobs?kind=pipe.echo&limit=200").json["items"]
        return sum(job["params"]["text"] == "lost answer" for job in items)

    with cutting_proxy(stack.port, cuts=[1, 20]) as url:
        names = client_at(url)
        job = names["submit"]("pipe.echo", text="lost answer")
    assert client.until(job["id"])["state"] == "succeeded"
    assert count() == 1


def test_events_over_cut_connections_are_the_log(
    client: Client, stack: Stack, client_at: ClientAt
) -> None:
    job = client.submit("pipe.talk", events=200, wait_ms=5)
    with cutting_proxy(stack.port, cuts=[10, 700, 2500, 5000, 9001]) as url:
        names = client_at(url)
        heard = list(names["events"](job["id"]))
    assert heard == client.events(job["id"])
    assert heard[-1]["type"] == "end"


def test_separators_of_unicode_are_no_ends_of_lines(
    client: Client, stack: Stack, client_at: ClientAt
) -> None:
    text = "one\u2028two\u0085three\x0bfour"
    names = client_at(stack.url)
    job = names["submit"]("pipe.echo", text=text)
    heard = list(names["events"](job["id"]))
    assert heard[-1]["data"]["result"] == {"text": text}


def test_a_job_that_is_none_is_an_error_and_no_endless_wait(
    stack: Stack, client_at: ClientAt
) -> None:
    names = client_at(stack.url)
    with pytest.raises(httpx.HTTPStatusError):
        list(names["events"]("0" * 20))
