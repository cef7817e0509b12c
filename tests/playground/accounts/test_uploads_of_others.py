"""In server mode: who may upload, and that a file is its owner's alone."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from tests.playground.accounts.conftest import Script
from tests.playground.accounts.test_tokens import make, script
from tests.playground.client import problem
from tests.playground.test_own_data import TINY
from tests.playground.uploading import form, taken, upload
from tests.stack import Stack

TEXT = b"the quick brown fox jumps over the lazy dog\n" * 30


def on_disk(server: Stack) -> set[Path]:
    return {p for p in (server.var / "uploads").glob("*/*") if p.name != "incoming"}


def test_scopes_of_uploads(server: Stack, ada_page: Script) -> None:
    found = taken(ada_page, TEXT)  # from a page
    reader = script(ada_page, make(ada_page, "read"))
    writer = script(ada_page, make(ada_page, "submit"))
    assert reader.get(found["urls"]["self"]).json["id"] == found["id"]
    before = on_disk(server)
    problem(upload(reader, TEXT), 403, "scope_needed")
    problem(upload(Script(server), TEXT), 401, "not_signed_in")
    problem(upload(ada_page, TEXT, X_Playground=""), 403, "header_needed")
    problem(upload(ada_page, TEXT, Origin="http://evil.example"), 403, "foreign_origin")
    problem(reader.request("DELETE", found["urls"]["self"]), 403, "scope_needed")
    assert on_disk(server) == before
    assert taken(writer, TEXT)["id"] in {
        item["id"] for item in ada_page.get("/api/v1/uploads").json["items"]
    }
    assert writer.request("DELETE", found["urls"]["self"]).status == 204


def test_what_someone_else_owns_does_not_exist(ada_page: Script, bob_page: Script) -> None:
    found = taken(ada_page, TEXT)
    assert found["id"] not in [item["id"] for item in bob_page.get("/api/v1/uploads").json["items"]]
    problem(bob_page.get(found["urls"]["self"]), 404, "upload_not_found")
    problem(bob_page.request("DELETE", found["urls"]["self"]), 404, "upload_not_found")
    params: dict[str, Any] = {**TINY, "data": found["id"]}
    answer = bob_page.post("/api/v1/jobs", {"kind": "transformer.train", "params": params})
    (error,) = problem(answer, 422, "invalid_params")["errors"]
    assert error["pointer"] == "/params/data" and "no uploaded file" in error["detail"]
    answer = ada_page.post("/api/v1/jobs", {"kind": "transformer.train", "params": params})
    assert answer.status == 202
    assert ada_page.until(answer.json["id"], timeout_s=60)["state"] == "succeeded"


def test_a_refused_upload_is_not_read(server: Stack) -> None:
    """Who may not upload is told so before the body has come: nothing of it is sent here."""
    _, kind = form(b"")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as opened:
        head = (
            f"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"X-Playground: 1\r\nContent-Type: {kind}\r\nContent-Length: {10**9}\r\n\r\n"
        )
        opened.sendall(head.encode() + os.urandom(10))
        assert b" 401 " in opened.recv(65536).split(b"\r\n")[0]
