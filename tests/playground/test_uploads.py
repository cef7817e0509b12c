"""Own files over REST: what is taken, what is refused in words, what is left on disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import gensim
import psutil
import pytest

from compute.text import corpora, intake
from playground.jobs import multipart, upload_files
from playground.problems import ApiProblem
from tests.playground.client import Answer, Client, problem
from tests.playground.uploading import NOVEL, form, kept, left_when_quiet, taken, upload
from tests.stack import ROOT, Stack

TEST_DATA = Path(gensim.__file__).parent / "test" / "test_data"


@pytest.fixture
def nothing_left(client: Client) -> Iterator[None]:
    """Nothing of what the test sends stays on disk, nor in the list."""
    before = kept(client)
    items = client.get("/api/v1/uploads").json["items"]
    yield
    assert left_when_quiet(client) == set()
    assert kept(client) == before
    assert client.get("/api/v1/uploads").json["items"] == items


# Taking


@pytest.mark.parametrize(
    ("codec", "mark", "said"),
    [
        ("utf-8", b"", "utf-8"),
        ("utf-8", b"\xef\xbb\xbf", "utf-8-bom"),
        ("utf-16-le", b"\xff\xfe", "utf-16-le"),
        ("utf-16-be", b"\xfe\xff", "utf-16-be"),
        ("gb18030", b"", "gb18030"),
    ],
)
def test_a_text_is_kept_as_utf8_whatever_it_came_in(
    client: Client, codec: str, mark: bytes, said: str
) -> None:
    content = mark + NOVEL.encode(codec)
    found = taken(client, content, "莊子.txt")
    text = NOVEL.replace("\r\n", "\n")
    assert (found["name"], found["form"], found["encoding"]) == ("莊子.txt", "text", said)
    assert found["bytes"] == len(content)
    assert found["sha256"] == hashlib.sha256(content).hexdigest()
    about = found["about"]
    assert about["characters"] == len(text) and about["distinct"] == len(set(text))
    assert about["lines"] == 40 and text.startswith(about["excerpt"])
    file = client.stack.var / "uploads" / found["id"] / "text.txt"
    assert file.read_bytes() == text.encode()
    assert not (file.parent / intake.SENT).exists()
    assert client.get(found["urls"]["self"]).json == found


@pytest.mark.parametrize(
    ("name", "format", "words", "dims"),
    [  # of gensim's own test data; the numbers are what its reader finds
        ("test_glove.txt", "glove", 76, 50),
        ("word2vec_pre_kv_c", "word2vec-text", 1750, 10),
        ("euclidean_vectors.bin", "word2vec-binary", 2747, 10),
    ],
)
def test_vectors_are_told_by_what_is_in_them(
    client: Client, name: str, format: str, words: int, dims: int
) -> None:
    content = (TEST_DATA / name).read_bytes()
    found = taken(client, content, "any-name.txt")
    assert found["form"] == "vectors"
    about = found["about"]
    assert (about["format"], about["words"], about["dims"]) == (format, words, dims)
    (file,) = (client.stack.var / "uploads" / found["id"]).glob("vectors.*")
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\me\\\\my text.txt", "my text.txt"),
        ("..", "file"),
        ("", "file"),
        ("x" * 300 + ".txt", "x" * 179 + "…" + "x" * 16 + ".txt"),
    ],
)
def test_a_name_is_its_last_part(client: Client, given: str, shown: str) -> None:
    before = {p.name for p in client.stack.var.iterdir()}
    assert taken(client, b"some text", given)["name"] == shown
    assert {p.name for p in client.stack.var.iterdir()} == before


def test_the_shell_example_of_the_guide_works(client: Client, tmp_path: Path) -> None:
    guide = (ROOT / "playground/web/docs/data.en.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL))
    script = script.replace("http://127.0.0.1:8000", client.stack.url)
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, capture_output=True, check=True, timeout=30
    )
    decoder = json.JSONDecoder()
    shown, end = decoder.raw_decode(done.stdout.decode())
    job, _ = decoder.raw_decode(done.stdout.decode()[end:].strip())
    assert shown["name"] == "my.txt" and shown["about"]["lines"] == 100
    assert job["params"]["data"] == shown["id"]
    assert client.until(job["id"], timeout_s=60)["state"] == "succeeded"


# Refusing


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 40
HALF_GB = NOVEL.encode("gb18030")[:100] + b"\xff" + NOVEL.encode("gb18030")[100:]
BAD_ROW = b"the 0.1 0.2 0.3\ncat 0.4 0.5\ndog 0.7 0.8 0.9\nfox 1 2 3\n"
NAN_ROW = b"the 0.1 0.2 0.3\ncat 0.4 NaN 0.6\ndog 0.7 0.8 0.9\nfox 1 2 3\n"
NAN_BINARY = (
    b"2 2\ncat " + struct.pack("<2f", 1, 2) + b"\ndog " + struct.pack("<2f", 3, float("nan"))
)
REFUSALS: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "The file is empty", "空的"),
    "blank": (b" \n\t\r\n ", "nothing but white space", "空白"),
    "zeros": (b"\x00\x01\x02\x03" * 400, "binary file", "二进制"),
    "controls": (b"a\x01b\x02c\x03" * 400, "50 % of its characters", "50% 是控制字符"),
    "html": (b"\n<!DOCTYPE HTML><html><p>Hi</p></html>", "web page (HTML)", "网页"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3", "a PDF document", "PDF"),
    "gzip": (b"\x1f\x8b\x08\x00" + b"x" * 50, "a compressed file", "压缩文件"),
    "zip": (b"PK\x03\x04" + b"\0" * 26 + b"my.txt", "a zip archive", "zip 压缩包"),
    "docx": (b"PK\x03\x04" + b"\0" * 26 + b"word/document.xml", "a Word document", "Word 文档"),
    "image": (PNG, "an image", "图片"),
    "latin-1": (b"d\xe9j\xe0 vu, gar\xe7on. " * 9, "byte 1 is 0xE9", "第 1 字节是 0xE9"),
    "damaged": (HALF_GB, "as GB18030: byte 100 is 0xFF", "第 100 字节是 0xFF"),
    "cut short": ("naïve".encode()[:3], "cut short", "不完整"),
    "odd row": (BAD_ROW, "Line 2 has 2 numbers", "第 2 行"),
    "nan": (NAN_ROW, 'Line 2, the word "cat": its vector holds NaN', "有 NaN"),
    "nan in binary": (NAN_BINARY, 'Word 2 ("dog")', "第 2 个词"),
}


@pytest.mark.parametrize("case", REFUSALS)
@pytest.mark.usefixtures("nothing_left")
def test_what_can_not_be_used_is_refused_in_words(client: Client, case: str) -> None:
    content, english, chinese = REFUSALS[case]
    found = problem(upload(client, content), 422, "upload_refused")
    assert english in found["detail"]
    assert found["errors"] == [{"pointer": "/file", "detail": found["detail"]}]
    in_chinese = upload(client, content, Accept_Language="zh-CN")
    assert chinese in problem(in_chinese, 422, "upload_refused")["detail"]


@pytest.mark.usefixtures("nothing_left")
def test_bodies_that_are_no_upload(client: Client) -> None:
    def sent(body: bytes, kind: str, header: str = "1") -> Answer:
        named = {"X_Playground": header, "Content_Type": kind}
        return client.request("POST", "/api/v1/uploads", raw=body, **named)

    body, kind = form(b"a text")
    problem(sent(body, kind, header=""), 403, "header_needed")
    problem(sent(body, kind, header="0"), 403, "header_needed")
    problem(sent(b"{}", "application/json"), 415, "not_multipart")
    problem(sent(body, "multipart/form-data"), 415, "not_multipart")
    problem(sent(b"a text", kind), 400, "bad_request")
    problem(sent(body[:-8], kind), 400, "bad_request")
    other, kind = form(b"a text", field="text")
    (error,) = problem(sent(other, kind), 422, "invalid_request")["errors"]
    assert error["pointer"] == "/text"
    one, kind = form(b"a text")
    line = f"--{kind.partition('=')[2]}".encode()
    two = one[: one.rindex(line)] + one
    (error,) = problem(sent(two, kind), 422, "invalid_request")["errors"]
    assert error["pointer"] == "/file" and "one file" in error["detail"]
    none = line + b"--\r\n"
    (error,) = problem(sent(none, kind), 422, "invalid_request")["errors"]
    assert error["pointer"] == "/file"


def raw_post(stack: Stack, declared: int, kind: str) -> socket.socket:
    """A connection on which the headers of an upload have been sent."""
    opened = socket.create_connection(("127.0.0.1", stack.port), timeout=20)
    head = (
        f"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1:{stack.port}\r\nX-Playground: 1\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {declared}\r\n\r\n"
    )
    opened.sendall(head.encode())
    return opened


def answered(opened: socket.socket, status: int) -> str:
    """The whole answer, which comes before the rest of the body does."""
    found = b""
    while b"request_id" not in found:
        piece = opened.recv(65536)
        assert piece, f"closed after {found!r}"
        found += piece
    assert found.startswith(f"HTTP/1.1 {status} ".encode())
    return found.decode()


@pytest.mark.usefixtures("nothing_left")
def test_too_much_is_refused_before_it_is_sent(stack: Stack) -> None:
    body, kind = form(b"the quick brown fox\n" * 10_000)
    # More than any file may have: by the length alone.
    with raw_post(stack, 3 * 10**9, kind) as opened:
        assert "larger than 2 GB" in answered(opened, 413)
    # More than a text may have: as soon as it shows to be text.
    with raw_post(stack, 30 * 10**6, kind) as opened:
        opened.sendall(body)
        assert "larger than 20 MB" in answered(opened, 413)


@pytest.mark.usefixtures("nothing_left")
def test_a_text_that_hides_its_length_is_refused_at_the_limit(client: Client) -> None:
    boundary = "b"
    line = b"the quick brown fox\n" * 50_000  # 1 MB
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'

    def endless() -> Iterator[bytes]:
        yield head
        for _ in range(21):
            yield line

    answer = client.request(
        "POST",
        "/api/v1/uploads",
        raw=endless(),  # type: ignore[arg-type]  # http.client sends it in chunks
        X_Playground="1",
        Content_Type=f"multipart/form-data; boundary={boundary}",
    )
    assert "larger than 20 MB" in problem(answer, 413, "upload_too_large")["detail"]


@pytest.mark.usefixtures("nothing_left")
def test_an_upload_that_breaks_off_leaves_no_file(client: Client, stack: Stack) -> None:
    body, kind = form(b"the quick brown fox\n" * 50_000)
    with raw_post(stack, len(body), kind) as opened:
        opened.sendall(body[: len(body) // 2])
        until = time.monotonic() + 10
        while not any(name.endswith("/sent") for name in kept(client)):
            assert time.monotonic() < until, "the half that came is not on disk"
            time.sleep(0.01)


# Listing and deleting


def test_pages_of_uploads(client: Client) -> None:
    ids = [taken(client, f"text number {n}".encode())["id"] for n in range(3)]
    first = client.get("/api/v1/uploads?limit=2&form=text").json
    assert [item["id"] for item in first["items"]] == [ids[2], ids[1]] and first["prev"] is None
    second = client.get(f"/api/v1/uploads?limit=1&form=text&cursor={first['next']}").json
    assert [item["id"] for item in second["items"]] == [ids[0]]
    back = client.get(f"/api/v1/uploads?limit=2&form=text&cursor={second['prev']}").json
    assert back["items"] == first["items"]
    problem(client.get("/api/v1/uploads?cursor=x"), 422, "invalid_request")
    problem(client.get("/api/v1/uploads?form=pictures"), 422, "invalid_request")


def test_deleting(client: Client) -> None:
    found = taken(client, b"to be deleted")
    folder = client.stack.var / "uploads" / found["id"]
    assert folder.exists()
    assert client.request("DELETE", found["urls"]["self"], Content_Type="").status == 204
    assert not folder.exists()
    problem(client.get(found["urls"]["self"]), 404, "upload_not_found")
    problem(client.request("DELETE", found["urls"]["self"]), 404, "upload_not_found")
    problem(client.get("/api/v1/uploads/..%2F..%2Fsecret-key"), 404, "not_found")
    problem(client.get("/api/v1/uploads/x"), 404, "upload_not_found")


# Size


def big_vectors(megabytes: int) -> Iterator[bytes]:
    """GloVe rows of 100 numbers, in pieces of a megabyte."""
    numbers = " ".join(f"{0.001 * n:.5f}" for n in range(100))
    written = row = 0
    while written < megabytes * 10**6:
        piece = "".join(f"word{row + n} {numbers}\n" for n in range(1200)).encode()
        row += 1200
        written += len(piece)
        yield piece


def test_a_large_file_of_vectors_stays_out_of_the_web_process(client: Client) -> None:
    """300 MB: what the web process grows by is less than a seventh of that, and it goes on
    answering."""
    pieces = list(big_vectors(300))
    size = sum(map(len, pieces))
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="big.txt"\r\n\r\n'
    web = psutil.Process(client.stack.parts["web"].pid)
    taken(client, (TEST_DATA / "test_glove.txt").read_bytes())  # so that all is loaded
    before = web.memory_info().rss
    highest, slowest = before, 0.0

    def body() -> Iterator[bytes]:
        nonlocal highest, slowest
        yield head
        for number, piece in enumerate(pieces):
            yield piece
            if number % 20 == 0:
                began = time.monotonic()
                assert client.get("/api/v1/uploads?limit=1").status == 200
                slowest = max(slowest, time.monotonic() - began)
                highest = max(highest, web.memory_info().rss)
        yield b"\r\n--b--\r\n"

    answer = client.request(
        "POST",
        "/api/v1/uploads",
        raw=body(),  # type: ignore[arg-type]  # http.client sends it in chunks
        X_Playground="1",
        Content_Type="multipart/form-data; boundary=b",
    )
    highest = max(highest, web.memory_info().rss)
    assert answer.status == 201, answer.body
    assert answer.json["bytes"] == size and answer.json["about"]["dims"] == 100
    assert highest - before < 40 * 2**20
    assert slowest < 3
    assert client.request("DELETE", answer.json["urls"]["self"]).status == 204


@pytest.mark.slow
def test_an_owner_s_room_is_kept() -> None:
    """With 1 MB for each owner: by the length that is said and by the bytes that come."""
    small = Stack(QUOTA_MB="1")
    try:
        small.start()
        client = Client(small)
        line = b"the quick brown fox jumps over the lazy dog\n"
        taken(client, line * 20_000)  # 0.84 MB
        said = problem(upload(client, line * 20_000), 403, "quota_exceeded")["detail"]
        assert "1" in said
        body, kind = form(line * 5_000)

        def unsaid() -> Iterator[bytes]:
            yield body[:200_000]
            yield body[200_000:]

        headers = {"X_Playground": "1", "Content_Type": kind}
        answer = client.request("POST", "/api/v1/uploads", raw=unsaid(), **headers)  # type: ignore[arg-type]
        problem(answer, 403, "quota_exceeded")
        assert left_when_quiet(client) == set()
        taken(client, line * 1_000)
    finally:
        small.stop()


# The parts by themselves


async def test_a_client_that_falls_silent_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "SILENCE_S", 0.05)
    said = [{"type": "http.request", "body": b"half", "more_body": True}]

    async def receive() -> MutableMapping[str, Any]:
        return said.pop() if said else await asyncio.Event().wait()  # type: ignore[return-value]

    with pytest.raises(ApiProblem) as caught:
        async for _ in multipart.Body(receive).pieces():
            raise AssertionError("the half that came is no batch")
    assert caught.value.code == "upload_stalled"


async def test_django_sees_an_empty_body_and_then_the_client_leave() -> None:
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": b"one", "more_body": True},
        {"type": "http.request", "body": b"two", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0)

    body = multipart.Body(receive)
    assert await body.for_django() == {"type": "http.request", "body": b"", "more_body": False}
    listening = asyncio.create_task(body.for_django())  # as Django does while the view runs
    assert [piece async for piece in body.pieces()] == [b"onetwo"]
    assert await listening == {"type": "http.disconnect"}


def test_what_a_dead_process_left_is_swept(settings: Any, tmp_path: Path) -> None:
    settings.UPLOADS_DIR = tmp_path
    alive, dead = upload_files.Incoming(), upload_files.Incoming()
    alive.write(b"half a text")
    dead.write(b"half a text")
    dead._file.close()  # as the kernel does for a process that dies: the lock goes with it
    upload_files.sweep()
    assert alive.folder.exists() and dead.folder.exists()  # too young to tell
    for folder in (alive.folder, dead.folder):
        os.utime(folder, (0, 0))
    upload_files.sweep()
    assert alive.folder.exists() and not dead.folder.exists()
    alive.discard()
    assert not list((tmp_path / upload_files.INCOMING).iterdir())


def test_one_module_touches_uploaded_files() -> None:
    site = (ROOT / "playground").rglob("*.py")
    found = {p.name for p in site if "UPLOADS_DIR" in p.read_text(encoding="utf-8")}
    assert found == {"settings.py", "upload_files.py", "retention.py"}  # which looks for leftovers


def test_the_limits_are_those_that_the_words_name() -> None:
    assert {form: intake.MAX_BYTES[form] for form in intake.TOO_LARGE} == intake.MAX_BYTES
    assert "20 MB" in intake.TOO_LARGE["text"].en and intake.MAX_BYTES["text"] == 20 * 10**6
    assert "2 GB" in intake.TOO_LARGE["vectors"].en and intake.MAX_BYTES["vectors"] == 2 * 10**9
    assert len(corpora.read("lee").encode()) < intake.MAX_BYTES["text"]
    assert multipart.SILENCE_S >= 10
