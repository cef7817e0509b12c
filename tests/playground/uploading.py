"""Uploads as tests send them, and what they leave on disk."""

from __future__ import annotations

import time
import uuid
from typing import Any

from tests.playground.client import Answer, Client

NOVEL = "昔者莊周夢為胡蝶，栩栩然胡蝶也，自喻適志與！不知周也。\r\n俄然覺，則蘧蘧然周也。\r\n" * 20


def form(content: bytes, name: str = "my.txt", field: str = "file") -> tuple[bytes, str]:
    """A multipart body with one file, and its content type."""
    boundary = f"----{uuid.uuid4().hex}"
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"


def upload(client: Client, content: bytes, name: str = "my.txt", **headers: str) -> Answer:
    body, kind = form(content, name)
    sent = {"X_Playground": "1", "Content_Type": kind, **headers}
    return client.request("POST", "/api/v1/uploads", raw=body, **sent)


def taken(client: Client, content: bytes, name: str = "my.txt") -> dict[str, Any]:
    answer = upload(client, content, name)
    assert answer.status == 201, answer.body
    assert answer.headers["location"] == answer.json["urls"]["self"]
    found: dict[str, Any] = answer.json
    return found


def kept(client: Client) -> set[str]:
    """Names of all that lies in the folder of uploads."""
    folder = client.stack.var / "uploads"
    return {str(p.relative_to(folder)) for p in folder.rglob("*")} - {"incoming"}


def left_when_quiet(client: Client) -> set[str]:
    """What is still on its way in; a refused upload is removed just after its answer."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        coming = {name for name in kept(client) if name.startswith("incoming/")}
        if not coming:
            break
        time.sleep(0.02)
    return coming
