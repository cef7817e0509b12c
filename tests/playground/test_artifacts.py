"""Files of a job over HTTP: ranges, conditions, and no way out of its folder."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.playground.client import Client, problem

CONTENT = bytes(range(256)) * 4


def test_artifacts_are_listed(client: Client, made: dict[str, Any]) -> None:
    items = client.get(made["urls"]["artifacts"]).json["items"]
    assert [(i["name"], i["size"]) for i in items] == [("model.bin", 1024)]
    assert items[0]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert client.get(items[0]["url"]).body == CONTENT


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=10-19", (10, 20)),
        ("bytes=1000-", (1000, 1024)),
        ("bytes=-24", (1000, 1024)),
        ("bytes=-9999", (0, 1024)),
        ("bytes=1000-9999", (1000, 1024)),
    ],
)
def test_range(client: Client, made: dict[str, Any], asked: str, span: tuple[int, int]) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/model.bin", Range=asked)
    start, end = span
    assert (answer.status, answer.body) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/1024"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_range_outside(client: Client, made: dict[str, Any], asked: str) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/model.bin", Range=asked)
    problem(answer, 416, "range_not_satisfiable")
    assert answer.headers["content-range"] == "bytes */1024"


@pytest.mark.parametrize("asked", ["bytes=5-2", "bytes=-", "lines=1-2", "bytes=0-1,4-5", "bytes=x"])
def test_a_range_that_is_none_gives_the_whole_file(
    client: Client, made: dict[str, Any], asked: str
) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/model.bin", Range=asked)
    assert (answer.status, answer.body) == (200, CONTENT)


def test_conditional_and_head(client: Client, made: dict[str, Any]) -> None:
    url = f"{made['urls']['artifacts']}/model.bin"
    etag = client.get(url).headers["etag"]
    assert client.get(url, If_None_Match=etag).status == 304
    assert client.get(url, Range="bytes=0-9", If_Range='"other"').status == 200
    assert client.get(url, Range="bytes=0-9", If_Range=etag).status == 206
    head = client.request("HEAD", url)
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "1024")


def test_a_page_in_an_artifact_is_not_served_as_a_page(client: Client) -> None:
    job = client.submit("pipe.case", wait=10, case="file")
    page = client.get(f"{job['urls']['artifacts']}/page.html")
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["x-content-type-options"] == "nosniff"
    text = client.get(f"{job['urls']['artifacts']}/sub/plain.txt")
    assert (text.headers["content-type"], text.body) == ("text/plain", b"0123456789")


@pytest.mark.parametrize(
    "name",
    [
        "../1/model.bin",
        "..%2f..%2f..%2fplayground.sqlite3",
        "%2e%2e/%2e%2e/secret-key",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "model.bin%00",
        "sub/../model.bin",
        ".",
        "",
        "model.bin/",
    ],
)
def test_no_way_out_of_the_folder(client: Client, made: dict[str, Any], name: str) -> None:
    answer = client.get(f"{made['urls']['artifacts']}/{name}")
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
