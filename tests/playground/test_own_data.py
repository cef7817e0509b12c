"""Training on an upload: what suits, what outlives what, what is refused before it is queued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gensim

from tests.playground.client import Answer, Client, problem
from tests.playground.uploading import NOVEL, taken

TEST_DATA = Path(gensim.__file__).parent / "test" / "test_data"
TINY = {"layers": 1, "heads": 1, "d_model": 16, "block": 16, "batch": 4, "steps": 3, "warmup": 1}


# Training on it


def submit(client: Client, **params: Any) -> Answer:
    return client.post("/api/v1/jobs", {"kind": "transformer.train", "params": {**TINY, **params}})


def refused_param(client: Client, name: str, **params: Any) -> str:
    (error,) = problem(submit(client, **params), 422, "invalid_params")["errors"]
    assert error["pointer"] == f"/params/{name}"
    return str(error["detail"])


def test_a_model_outlives_the_upload_it_was_trained_on(client: Client) -> None:
    found = taken(client, NOVEL.encode("gb18030"), "莊子.txt")
    job = submit(client, data=found["id"]).json
    done = client.until(job["id"], timeout_s=60)
    assert done["state"] == "succeeded", done
    vocabulary = sorted(set(NOVEL.replace("\r\n", "\n")))
    saved = client.get(f"/api/v1/jobs/{job['id']}/artifacts/tokenizer.json").json
    assert saved["vocabulary"] == vocabulary
    frames = [e["data"] for e in client.events(job["id"]) if e["type"] == "frame"]
    setup = next(frame for frame in frames if frame["name"] == "setup")
    assert setup["vocab_size"] == len(vocabulary)
    assert "".join(setup["probe"]) == NOVEL[:16]
    samples = [
        e["data"]["text"] for e in client.events(job["id"]) if e["data"].get("name") == "sample"
    ]
    assert samples and all(set(text) <= set(vocabulary) for text in samples)
    assert client.request("DELETE", found["urls"]["self"]).status == 204
    written = client.submit(
        "transformer.generate", wait=10, model=job["id"], prompt="莊周夢為胡蝶", max_tokens=5
    )
    written = client.until(written["id"], timeout_s=60)
    assert written["state"] == "succeeded" and set(written["result"]["text"]) <= set(vocabulary)
    assert "deleted" in refused_param(client, "data", data=found["id"])


def test_an_upload_that_a_job_still_needs_is_not_deleted(client: Client) -> None:
    found = taken(client, b"the quick brown fox jumps over the lazy dog\n" * 30)
    job = submit(client, data=found["id"], steps=20_000).json
    client.until(job["id"], "running", timeout_s=60)
    answer = client.request("DELETE", found["urls"]["self"])
    assert job["id"] in problem(answer, 409, "upload_in_use")["detail"]
    assert (client.stack.var / "uploads" / found["id"] / "text.txt").exists()
    client.post(f"/api/v1/jobs/{job['id']}/cancel")
    client.until(job["id"])
    assert client.request("DELETE", found["urls"]["self"]).status == 204


def test_what_does_not_suit_is_refused_before_anything_is_queued(client: Client) -> None:
    before = client.get("/api/v1/jobs?kind=transformer.train").json["items"]
    short = taken(client, b"too short")["id"]
    assert "at least 17 characters" in refused_param(client, "data", data=short)
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 8_200)))
    found = taken(client, many.encode())["id"]
    said = refused_param(client, "data", data=found)
    assert "8,200 different characters" in said and "8,000" in said
    plain = taken(client, ("".join(map(chr, range(0x4E00, 0x4E00 + 7_000))) * 2).encode())["id"]
    said = refused_param(client, "batch", data=plain, batch=128, block=256)
    assert "7,000 different characters" in said and "batch of 83" in said  # 150 M / (256 × 7,000)
    assert "“Q” (0)" in refused_param(client, "probe", data=plain, probe="Q")
    vectors = taken(client, (TEST_DATA / "test_glove.txt").read_bytes())["id"]
    assert "word vectors" in refused_param(client, "data", data=vectors)
    assert "no uploaded file" in refused_param(client, "data", data="0" * 20)
    assert "choose one of" in refused_param(client, "data", data="shakespeare")
    assert "not the id" in refused_param(client, "data", data="/etc/passwd")
    assert client.get("/api/v1/jobs?kind=transformer.train").json["items"] == before


def test_an_upload_that_vanished_under_a_waiting_job_is_said_in_words(client: Client) -> None:
    found = taken(client, b"the quick brown fox jumps over the lazy dog\n" * 30)
    first = submit(client, steps=20_000).json  # holds the one training slot
    client.until(first["id"], "running", timeout_s=60)
    second = submit(client, data=found["id"]).json
    file = client.stack.var / "uploads" / found["id"] / "text.txt"
    file.unlink()
    client.post(f"/api/v1/jobs/{first['id']}/cancel")
    ended = client.until(second["id"], timeout_s=60)
    assert (ended["state"], ended["reason"]) == ("failed", "user_error")
    assert "has been deleted" in ended["message"]
