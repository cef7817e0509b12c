"""One's own text in the training form: chosen, dropped or pasted, refused in place, trained on."""

from __future__ import annotations

import base64
import re

from playwright.sync_api import Locator, Page, expect

from tests.browser import runs
from tests.browser.conftest import OpenPage
from tests.playground.test_uploads import REFUSALS
from tests.playground.uploading import NOVEL
from tests.stack import Stack

PATIENCE_MS = 40_000
LINES = NOVEL.replace("\r\n", "\n")

DROP = """
([selector, name, content, zeros = 0]) => {
  const given = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
  const bytes = zeros ? new Uint8Array(zeros) : given;
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const target = document.querySelector(selector);
  for (const type of ["dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true}));
  }
}
"""


def own(page: Page, words: str = "My own text") -> Locator:
    """The field, opened."""
    page.locator("details.new-run").evaluate("(details) => { details.open = true; }")
    page.locator("[data-field=data] select").select_option(label=words)
    field = page.locator("upload-field")
    expect(field).to_be_visible()
    return field


def choose(field: Locator, content: bytes, name: str = "my.txt") -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    field.locator("input[type=file]").set_input_files([file])  # type: ignore[list-item]


def tiny(page: Page) -> None:
    """A run that takes a second or two."""
    page.locator("params-form[main]").evaluate(
        """(form, values) => {
          form.values = {...form.values, ...values, data: form.values.data};
          form.dispatchEvent(new CustomEvent("params-change"));
        }""",
        {"layers": 1, "heads": 1, "d_model": 16, "block": 16, "steps": 30, "warmup": 2},
    )


def test_a_chinese_file_is_dropped_and_trained_on(open_page: OpenPage, stack: Stack) -> None:
    page = open_page("/labs/transformer")
    field = own(page)
    content = base64.b64encode(NOVEL.encode("gb18030")).decode()
    page.evaluate(DROP, ["upload-field .upload-drop", "莊子.txt", content])
    expect(field.locator(".upload-chosen strong")).to_have_text("莊子.txt")
    facts = f"{len(LINES):,} characters · {len(set(LINES))} different"
    expect(field.get_by_test_id("upload-facts")).to_have_text(facts)
    expect(field.locator(".upload-preview")).to_contain_text("昔者莊周夢為胡蝶，栩栩然胡蝶也")
    expect(page.locator("params-form[main] .params-note")).to_contain_text("parameters")
    tiny(page)
    page.get_by_test_id("play").click()
    expect(page.locator(".room-centre h1").first).to_have_text(
        re.compile("in 30 steps|After 30 steps"), timeout=PATIENCE_MS
    )
    samples = page.get_by_test_id("samples").locator("p.sample")
    assert samples.count() >= 2
    for text in samples.all_inner_texts():
        assert text and set(text) - {"\u200b"} <= set(LINES)
    expect(page.locator(".run-card h2").first).to_contain_text("莊子.txt, 1 × 1")
    # From the run alone: the file is gone, the model still reads and writes its characters.
    run = re.search(r"run=([0-9a-z]{20})", page.url)
    assert run
    for item in runs.call(f"{stack.url}/api/v1/uploads")["items"]:
        runs.call(f"{stack.url}/api/v1/uploads/{item['id']}", method="DELETE")
    page.get_by_test_id("step-through").click()
    expect(page.locator(".room[data-mode=step] textarea").first).to_have_value(
        NOVEL[:16], timeout=PATIENCE_MS
    )


def test_each_refusal_is_said_in_place(open_page: OpenPage) -> None:
    page = open_page("/labs/transformer")
    field = own(page)
    problem = field.get_by_role("alert")
    for case, (content, english, _) in REFUSALS.items():
        choose(field, content, f"{case}.txt")
        expect(problem).to_contain_text(english)
        expect(problem).to_be_in_viewport()
        assert f"{case}.txt" not in field.inner_text(), case
    # A good file mends it.
    choose(field, b"the quick brown fox jumps over the lazy dog\n" * 30, "good.txt")
    expect(field.locator(".upload-chosen strong")).to_have_text("good.txt")
    expect(problem).to_be_hidden()


def test_pasting_choosing_again_and_deleting_by_keyboard(open_page: OpenPage, stack: Stack) -> None:
    for item in runs.call(f"{stack.url}/api/v1/uploads")["items"]:
        runs.call(f"{stack.url}/api/v1/uploads/{item['id']}", method="DELETE")
    page = open_page("/labs/transformer", width=390, height=844)
    field = own(page)
    page.get_by_test_id("play").click()  # nothing chosen yet
    expect(page.locator("[data-field=data] .field-problem")).to_contain_text("Choose a file first")
    field.locator(".upload-paste summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.insert_text("Ich bin der Geist, der stets verneint!\n" * 10)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(field.locator(".upload-chosen strong")).to_have_text("pasted text")
    choose(field, b"the quick brown fox jumps over the lazy dog\n" * 30, "fox.txt")
    expect(field.locator(".upload-chosen strong")).to_have_text("fox.txt")
    names = field.locator(".upload-list .upload-pick .upload-name")
    assert names.all_inner_texts() == ["fox.txt", "pasted text"]
    field.get_by_role("button", name=re.compile("^pasted text")).press("Enter")
    expect(field.locator(".upload-chosen strong")).to_have_text("pasted text")
    long = "the-name-of-a-file-that-somebody-saved-and-never-thought-of-renaming" * 2 + ".txt"
    choose(field, b"the quick brown fox jumps over the lazy dog\n" * 30, long)
    expect(field.locator(".upload-chosen strong")).to_have_text(long)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    inside = "(field) => field.scrollWidth <= field.closest('details').clientWidth"
    assert field.evaluate(inside), "a long name widens the form"
    field.get_by_role("button", name=f"Delete “{long}”").press("Enter")
    field.get_by_role("button", name=re.compile("^pasted text")).press("Enter")
    expect(field.locator(".upload-chosen strong")).to_have_text("pasted text")
    field.get_by_role("button", name="Delete “pasted text”").press("Enter")
    expect(names).to_have_text(["fox.txt"])
    expect(field.locator(".upload-chosen")).to_be_hidden()
    # The same in Chinese, after a reload: what was uploaded is still there.
    page.goto(f"{stack.url}/labs/transformer?lang=zh-hans")
    page.wait_for_function("() => document.documentElement.dataset.ready === 'true'")
    field = own(page, "我自己的文本")
    expect(field.locator(".upload-chosen strong")).to_have_text("fox.txt")
    choose(field, REFUSALS["html"][0])
    expect(field.get_by_role("alert")).to_contain_text("这是一个网页（HTML）")


def test_a_file_that_is_too_large_is_not_even_sent(open_page: OpenPage) -> None:
    page = open_page("/labs/transformer")
    field = own(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    page.evaluate(DROP, ["upload-field", "huge.txt", "", 20_000_001])
    expect(field.get_by_role("alert")).to_contain_text("“huge.txt” has 20 MB; at most 20 MB")
    assert "POST" not in sent
