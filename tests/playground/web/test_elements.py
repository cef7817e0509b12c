"""The shell's elements in a real browser, on a page with the strict policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from compute.core import kinds
from tests.chromium import chromium
from tests.playground.web.browser import ORIGIN, page_of, plain_settings

SCHEMA = kinds.json_schema(kinds.get("transformer.train"))
HOSTILE = '"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """One page for all tests here: loading it is what takes the time."""
    with (
        plain_settings(ROOT_URLCONF="tests.playground.web.gallery"),
        chromium() as browser,
        page_of(browser) as page,
    ):
        page.goto(f"{ORIGIN}/gallery")
        page.wait_for_function("() => !!customElements.get('token-strip')")
        page.evaluate(
            """() => {
              for (const name of ["params-submit", "params-live", "params-change", "job-control",
                                  "token-lock", "token-hover", "chart-pick"])
                document.addEventListener(name, (e) => seen.push([name, e.detail])); }"""
        )
        yield page


@pytest.fixture
def gallery(page: Page) -> Page:
    """The page with every element new and nothing seen yet."""
    page.evaluate(
        """() => { window.seen = [];
          for (const id of ["status", "form", "chart", "strip", "live"]) {
            const old = document.getElementById(id);
            old.replaceWith(old.cloneNode(false));
          } }"""
    )
    return page


def seen(page: Page, name: str) -> list[dict[str, Any]]:
    return [detail for event, detail in page.evaluate("seen") if event == name]


# <params-form>


@pytest.fixture
def form(gallery: Page) -> Page:
    gallery.evaluate(
        """(schema) => { const form = document.getElementById("form");
          form.visible = { text: (v) => v.data === "text" };
          form.presets = [{ id: "a", title: "Default", values: {} },
                          { id: "b", title: { en: "Paper", "zh-hans": "论文" },
                            values: { norm: "post", layers: 6 } }];
          form.schema = schema; }""",
        SCHEMA,
    )
    return gallery


def field(page: Page, name: str) -> Any:
    return page.locator(f"#form [data-field={name}]")


def test_a_form_starts_with_the_defaults_and_sends_them_typed(form: Page) -> None:
    form.get_by_role("button", name="Train").click()
    (sent,) = seen(form, "params-submit")
    assert sent["kind"] == "transformer.train"
    defaults = {name: one.get("default") for name, one in SCHEMA["params"]["properties"].items()}
    assert sent["values"] == defaults


def test_a_preset_fills_the_form_and_a_change_is_counted(form: Page) -> None:
    form.get_by_text("Paper", exact=True).click()
    assert form.evaluate("document.getElementById('form').values.norm") == "post"
    form.get_by_text("Settings").click()
    assert field(form, "layers").locator("input.number-box").input_value() == "6"
    field(form, "layers").locator("input.number-box").fill("3")
    expect(form.locator(".params-changed")).to_have_text("1 changed")
    form.get_by_role("button", name="Reset").click()
    assert form.evaluate("document.getElementById('form').values.layers") == 6


def test_fields_that_depend_on_others_come_and_go(form: Page) -> None:
    form.get_by_text("Settings").click()
    expect(field(form, "text")).to_be_hidden()
    field(form, "data").locator("select").select_option(label="My own text")
    expect(field(form, "text")).to_be_visible()


def test_the_servers_problems_stand_at_their_fields_with_values_to_take(form: Page) -> None:
    form.evaluate("document.getElementById('form').values = { heads: 5, steps: 77 }")
    detail = "d_model 96 can't be divided among 5 heads."
    form.evaluate(
        """(problems) => document.getElementById("form").showProblems(problems)""",
        [
            {"pointer": "/params/d_model", "detail": detail, "nearest": [95, 100]},
            {"pointer": "/params/heads", "detail": detail, "nearest": [4, 6]},
            {"pointer": "/", "detail": "Something else."},
        ],
    )
    expect(form.locator(".params-problem")).to_have_text("Something else.")
    expect(field(form, "heads").locator("input.number-box")).to_have_attribute(
        "aria-invalid", "true"
    )
    field(form, "heads").get_by_role("button", name="6").click()
    # One value answers both fields, and the rest of the input is kept.
    expect(form.locator("#form [aria-invalid=true]")).to_have_count(0)
    values = form.evaluate("document.getElementById('form').values")
    assert (values["heads"], values["steps"], values["d_model"]) == (6, 77, 96)


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [("layers", "9", "At most 8."), ("layers", "2.5", "A whole number is needed."),
     ("lr", "0", "More than 0."), ("heads", "0", "At least 1.")],
)  # fmt: skip
def test_values_out_of_range_are_refused_where_they_are_typed(
    form: Page, name: str, typed: str, says: str
) -> None:
    form.get_by_text("Settings").click()
    field(form, name).locator("input.number-box").fill(typed)
    expect(field(form, name).locator(".field-problem p").first).to_have_text(says)
    form.get_by_role("button", name="Train").click()
    assert seen(form, "params-submit") == []


def test_sliders_are_logarithmic_where_the_range_is_wide(form: Page) -> None:
    lr = 'document.querySelector("#form [data-field=lr] input[type=range]")'
    assert 300 < int(form.evaluate(f"{lr}.value")) < 500  # 3e-3 between 1e-5 and 10
    form.evaluate(f"{lr}.value = 1000; {lr}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert form.evaluate("document.getElementById('form').values.lr") == 10


def test_live_mode_offers_settable_params_and_sends_changes_once(gallery: Page) -> None:
    gallery.evaluate("(s) => { document.getElementById('live').schema = s; }", SCHEMA)
    boxes = gallery.locator("#live .field")
    expect(boxes).to_have_count(1)
    boxes.locator("input.number-box").fill("0.001")
    gallery.wait_for_timeout(600)
    assert seen(gallery, "params-live") == [{"values": {"lr": 0.001}}]


# <token-strip>


def test_tokens_are_shown_literally_with_glyphs_for_blanks(gallery: Page) -> None:
    tokens = [*"a \n\t", HOSTILE]
    gallery.evaluate("(t) => { document.getElementById('strip').tokens = t; }", tokens)
    assert gallery.locator(".token-text").all_text_contents() == [
        "a",
        "␣",
        "↵",
        "⇥",
        HOSTILE.replace(" ", "␣"),
    ]
    assert gallery.locator("#strip img").count() == 0
    names = [chip.get_attribute("aria-label") for chip in gallery.locator(".token").all()]
    assert names[1:4] == ["space", "line end", "tab"]


def test_letters_of_joining_scripts_keep_their_shapes(gallery: Page) -> None:
    gallery.evaluate("(t) => { document.getElementById('strip').tokens = t; }", [*"سلام x"])
    joiner = "\u200d"
    shown = gallery.locator(".token-text").all_text_contents()
    assert shown[:2] == [f"س{joiner}", f"{joiner}ل{joiner}"]
    assert shown[-1] == "x"
    assert gallery.locator("#strip [role=listbox]").get_attribute("dir") == "rtl"


def test_tokens_lock_by_click_and_keyboard_and_unlock_by_escape(gallery: Page) -> None:
    gallery.evaluate("() => { document.getElementById('strip').tokens = [...'abcd']; }")
    chips = gallery.get_by_role("option")
    chips.nth(1).click()
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    gallery.keyboard.press("ArrowRight")
    gallery.keyboard.press("Enter")
    gallery.keyboard.press("Escape")
    assert [one["index"] for one in seen(gallery, "token-lock")] == [1, 2, None]


def test_unknown_tokens_say_so(gallery: Page) -> None:
    gallery.evaluate(
        "() => { document.getElementById('strip').tokens = ['a', {text: 'ß', unknown: true}]; }"
    )
    expect(gallery.locator(".token.unknown")).to_have_attribute(
        "aria-label", "ß, unknown to this model"
    )


# <job-status>


def show(page: Page, **job: Any) -> Any:
    row = {"id": "j1", "kind": "transformer.train", "attempt": 1, "progress": None} | job
    page.evaluate("(job) => { document.getElementById('status').job = job; }", row)
    return page.locator("#status")


def visible_buttons(page: Page) -> list[str]:
    return [b.inner_text() for b in page.locator("#status button:visible").all()]


def test_a_queued_job_says_its_place_and_can_be_cancelled(gallery: Page) -> None:
    status = show(gallery, state="queued", place=3)
    expect(status.locator(".job-state")).to_have_text("Waiting, place 3 in the queue")
    assert visible_buttons(gallery) == ["Cancel"]


def test_a_running_job_shows_progress_and_what_its_kind_allows(gallery: Page) -> None:
    status = show(gallery, state="running")
    gallery.evaluate(
        """() => document.getElementById("status").event(
             { type: "progress", data: { done: 750, total: 1500, eta_s: 28.4 } })"""
    )
    expect(status.locator(".job-left")).to_have_text("28 s left")
    expect(status.locator("[role=progressbar]")).to_have_attribute("aria-valuenow", "50")
    expect(status.get_by_role("button", name="Pause")).to_be_visible()
    assert visible_buttons(gallery) == ["Pause", "Cancel"]
    show(gallery, state="paused")
    assert visible_buttons(gallery) == ["Resume", "One step", "Cancel"]


def test_buttons_ask_the_server_once(gallery: Page) -> None:
    asked: list[Any] = []

    def accept(route: Any) -> None:
        asked.append((route.request.url, route.request.post_data_json))
        route.fulfill(status=202, json={"id": "j1", "state": "running"})

    gallery.route(f"{ORIGIN}/api/v1/jobs/**", accept, times=1)
    status = show(gallery, state="running")
    status.get_by_role("button", name="Pause").click()
    expect(status.locator(".job-state")).to_have_text("Pausing after this step")
    expect(status.get_by_role("button", name="Pause")).to_be_disabled()
    assert asked == [(f"{ORIGIN}/api/v1/jobs/j1/control", {"action": "pause"})]
    assert seen(gallery, "job-control") == [{"id": "j1", "action": "pause"}]
    gallery.evaluate(
        """() => document.getElementById("status").event(
             { type: "state", data: { state: "paused" } })"""
    )
    expect(status.locator(".job-state")).to_have_text("Paused")


def test_a_failure_is_a_sentence_with_a_next_step(gallery: Page) -> None:
    status = show(
        gallery, state="failed", reason="diverged", message="The loss is NaN at step 212."
    )
    expect(status.get_by_role("alert")).to_contain_text("The loss is NaN at step 212.")
    expect(status.get_by_role("alert")).to_contain_text("Lower the learning rate")
    assert visible_buttons(gallery) == []


# <live-chart>


@pytest.fixture
def chart(gallery: Page) -> Page:
    gallery.evaluate(
        """(uniform) => { const chart = document.getElementById("chart");
          chart.panels = [{ key: "loss", label: "loss <b>", size: "large" },
                          { key: "lr", label: "learning rate", size: "small" }];
          chart.series = [{ key: "loss", label: "loss", panel: "loss" },
                          { key: "lr", label: "lr", panel: "lr", role: "--value" }];
          chart.references = [{ panel: "loss", value: uniform, label: "guessing" }];
          for (let step = 0; step < 100; step += 1) {
            const broken = step >= 40 && step < 45;
            chart.event({ type: "metric", data: { step, lr: 0.003,
              loss: broken ? { $num: "NaN" } : 4 - step / 50 } });
          }
          chart.event({ type: "control",
                        data: { action: "set", step: 60, values: { lr: 0.001 } } }); }""",
        math.log(81),
    )
    gallery.wait_for_selector("#chart .scatterlayer .trace path.js-line")
    return gallery


def test_the_chart_draws_gaps_marks_and_references_without_a_policy_violation(chart: Page) -> None:
    # The loss is two lines, because of the gap; text of labels is literal.
    loss = chart.locator("#chart .scatterlayer").first.locator("path.js-line")
    expect(loss).to_have_count(2)
    texts = chart.locator("#chart .annotation-text").all_text_contents()
    assert {"loss <b>", "learning rate", "guessing", "not finite", "lr 0.001"} <= set(texts)


def test_the_chart_reads_out_the_cursors_step(chart: Page) -> None:
    chart.evaluate("() => { document.getElementById('chart').cursor = 10; }")
    expect(chart.locator("#chart [data-key=loss] output")).to_have_text("3.800")
    expect(chart.locator(".chart-cursor")).to_have_count(2)
    label = chart.locator("#chart [role=img]").get_attribute("aria-label")
    assert label is not None and "step 10: loss 3.800" in label


def test_the_same_numbers_are_a_table_and_a_file(chart: Page) -> None:
    chart.get_by_text("As a table").click()
    expect(chart.locator("#chart tbody tr")).to_have_count(100)
    expect(chart.locator("#chart tbody tr").nth(42).locator("td").first).to_have_text("NaN")
    with chart.expect_download() as saved:
        chart.get_by_role("button", name="CSV").click()
    lines = saved.value.path().read_text("utf-8").splitlines()
    assert saved.value.suggested_filename == "run.csv"
    assert lines[0] == "step,loss,lr" and len(lines) == 101
    assert lines[11] == "10,3.8,0.003" and lines[43] == "42,NaN,0.003"


def test_a_steps_last_value_is_its_mark_and_near_labels_stand_apart(chart: Page) -> None:
    chart.evaluate(
        """() => { const chart = document.getElementById("chart");
          for (const [step, lr] of [[60, 0.002], [60, 0.004], [61, 0.005]]) {
            chart.event({ type: "control", data: { action: "set", step, values: { lr } } });
          }
          chart.event({ type: "end", data: { state: "succeeded" } }); }"""
    )
    labels = chart.locator("#chart .annotation-text", has_text="lr 0.")
    expect(labels).to_have_text(["lr 0.004", "lr 0.005"])
    first, second = (label.bounding_box() for label in labels.all())
    assert first is not None and second is not None
    assert first["y"] + first["height"] <= second["y"] + 3


def test_a_resumed_run_walks_its_steps_again(chart: Page) -> None:
    chart.evaluate(
        """() => document.getElementById("chart").event(
             { type: "resumed", data: { from_step: 50 } })"""
    )
    assert chart.evaluate("document.getElementById('chart').lastStep") == 50


def test_the_chart_follows_the_theme(chart: Page) -> None:
    colour = "getComputedStyle(document.querySelector('#chart .xtick text')).fill"
    before = chart.evaluate(colour)
    chart.evaluate("() => { document.getElementById('theme-button').click(); }")
    chart.evaluate("() => { document.getElementById('theme-button').click(); }")
    chart.wait_for_function(f"(before) => {colour} !== before", arg=before)
