"""The train view tells the truth: of its run's numbers, of its address, of what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import runs
from tests.browser.conftest import OpenPage
from tests.stack import Stack

PATIENCE_MS = 120_000
SHORT: dict[str, Any] = {**runs.TINY, "steps": 60, "warmup": 5}


def trained(stack: Stack, **changes: Any) -> str:
    job = runs.submit(stack.url, "transformer.train", {**SHORT, **changes})
    assert runs.wait(stack.url, job)["state"] in ("succeeded", "failed")
    return job


@pytest.fixture(scope="module")
def model(stack: Stack) -> str:
    return trained(stack)


def title(page: Page) -> Locator:
    return page.locator(".room-centre:not([hidden]) h1")


def first_loss(stack: Stack, job: str) -> float:
    items = runs.call(f"{stack.url}/api/v1/jobs/{job}/events?limit=50")["items"]
    return next(float(e["data"]["loss"]) for e in items if e["type"] == "metric")


def three_digits(value: float) -> str:
    return f"{value:.2f}"  # of a loss from 1 to 10


def test_the_headline_goes_from_the_first_measured_loss_to_the_last(
    open_page: OpenPage, stack: Stack, model: str
) -> None:
    page = open_page(f"/labs/transformer?run={model}")
    last = runs.call(f"{stack.url}/api/v1/jobs/{model}")["result"]["loss"]
    losses = f"{three_digits(first_loss(stack, model))} → {three_digits(last)}"
    expect(title(page)).to_have_text(f"It learned: loss {losses} in 60 steps")
    # One thing to do next: stepping through; training again is the second.
    expect(page.locator(".button.primary.big:visible")).to_have_count(1)


def test_a_run_of_two_steps_is_not_said_to_have_learned(open_page: OpenPage, stack: Stack) -> None:
    page = open_page(f"/labs/transformer?run={trained(stack, steps=2)}")
    expect(title(page)).to_have_text(re.compile(r"^After 2 steps: loss \d\.\d\d → \d\.\d\d$"))


@pytest.mark.parametrize("mode", ["train", "step"])
def test_a_job_of_another_kind_is_refused(
    open_page: OpenPage, stack: Stack, model: str, mode: str
) -> None:
    trace = runs.submit(stack.url, "transformer.trace", {"model": model, "text": "The "})
    runs.wait(stack.url, trace)
    page = open_page(f"/labs/transformer?mode={mode}&run={trace}")
    expect(title(page)).to_have_text("This run can't be opened")
    nothing_of_a_run(page)
    # Another run is a click away.
    if mode == "step":
        page.get_by_role("button", name="Go to training").click()
    page.locator(".run-link").first.click()
    expect(title(page)).not_to_have_text("This run can't be opened")
    expect(page.get_by_test_id("maps-step")).to_be_visible()


def nothing_of_a_run(page: Page) -> None:
    for part in (
        ".chart-card",
        ".maps-card",
        ".samples",
        ".run-card",
        ".matrix-view",
        ".matrix-stage",
    ):
        expect(page.locator(f"{part}:visible")).to_have_count(0)
    expect(page.get_by_test_id("step-through")).to_be_hidden()
    expect(page.locator(".room-player:not([hidden]) .player-play:visible:enabled")).to_have_count(0)


def test_an_unknown_run_leaves_no_empty_cards_and_opens_no_other_model(
    browser: Any, stack: Stack, model: str
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()  # not `open_page`: the browser logs the server's 404
    for mode in ("train", "step"):
        page.goto(f"{stack.url}/labs/transformer?mode={mode}&run=nope")
        page.wait_for_function("() => document.documentElement.dataset.ready === 'true'")
        expect(title(page)).to_have_text("This run can't be opened")
        nothing_of_a_run(page)
        assert "run=nope" in page.url
    context.close()


@pytest.mark.parametrize(
    ("at", "shown", "kept"),
    [("99999", "step 60", "60"), ("22", "step 20", "20"), ("foo", "step 60", None)],
)
def test_the_snapshot_of_the_address_is_the_nearest_there_is(
    open_page: OpenPage, model: str, at: str, shown: str, kept: str | None
) -> None:
    page = open_page(f"/labs/transformer?run={model}&at={at}&layer=-3&head=77&row=500&col=1")
    expect(page.get_by_test_id("maps-step")).to_have_text(shown)
    expect(page.locator(".head-thumb[aria-pressed=true]")).to_have_count(1)
    page.wait_for_function(
        "(kept) => new URL(location.href).searchParams.get('at') === kept", arg=kept
    )


def test_an_unknown_colour_scale_is_the_default(open_page: OpenPage, model: str) -> None:
    page = open_page(f"/labs/transformer?mode=step&run={model}&scale=zzz")
    expect(page.locator(".scale-choice")).to_have_value("row")


def fill_form(page: Page, values: dict[str, Any]) -> None:
    page.evaluate(
        "(values) => { document.querySelector('.new-run params-form').values = values; }", values
    )


def uncovered(page: Page, place: Locator) -> bool:
    """True when the middle of `place` is what the pointer would meet there."""
    box = place.bounding_box()
    assert box is not None
    point = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    handle = place.element_handle()
    return bool(
        page.evaluate(
            "([element, [x, y]]) => element.contains(document.elementFromPoint(x, y))",
            [handle, point],
        )
    )


def test_a_refusal_is_seen_where_the_reader_is(open_page: OpenPage, model: str) -> None:
    page = open_page(f"/labs/transformer?run={model}")
    fill_form(page, {**SHORT, "d_model": 100, "heads": 8})
    page.get_by_test_id("play").click()
    problem = page.locator("[data-field=heads] .field-problem")
    expect(problem).to_be_visible()
    expect(problem).to_be_in_viewport(ratio=1)
    assert uncovered(page, problem.locator("p").first)
    assert uncovered(page, problem.locator(".chip").first)
    # The finished run's progress does not come back.
    expect(page.locator(".room-left job-status")).to_be_hidden()


def test_heads_that_do_not_divide_are_told_while_typing(open_page: OpenPage) -> None:
    page = open_page("/labs/transformer")
    box = page.locator(".new-run [data-field=heads] .number-box")
    box.fill("7")
    problems = page.locator(".new-run .field-problem:visible")
    expect(problems).to_have_count(2)
    expect(box).to_be_focused()
    page.locator(".new-run [data-field=heads] .chip").first.click()
    expect(problems).to_have_count(0)
    expect(box).to_have_value("6")


def test_the_live_learning_rate_is_the_runs_own(open_page: OpenPage, stack: Stack) -> None:
    params = {**SHORT, "steps": 20_000, "lr": 0.0005, "snapshot_every": 500, "eval_every": 500}
    job = runs.submit(stack.url, "transformer.train", params)
    page, other = (open_page(f"/labs/transformer?run={job}") for _ in range(2))
    name = ".room-left params-form[live] [data-field=lr] .number-box"
    box, theirs = page.locator(name), other.locator(name)
    expect(box).to_be_visible(timeout=PATIENCE_MS)
    expect(box).to_have_value("0.0005")
    box.fill("0.002")
    box.press("Enter")
    expect(theirs).to_have_value("0.002", timeout=30_000)  # the other window follows
    page.reload()
    expect(box).to_have_value("0.002", timeout=30_000)
    runs.call(f"{stack.url}/api/v1/jobs/{job}/control", {"action": "cancel"})
    expect(title(page)).to_contain_text("Cancelled at step", timeout=30_000)


def test_a_diverged_curve_is_drawn_on_a_log_scale(open_page: OpenPage, stack: Stack) -> None:
    job = trained(stack, lr=10, warmup=0, clip=0, steps=300)
    page = open_page(f"/labs/transformer?run={job}")
    expect(title(page)).to_contain_text("diverged at step")
    chart = page.locator("live-chart[name=loss]")
    expect(chart.get_by_text("log scale")).to_be_visible()
    axes = chart.locator(".chart-figure").evaluate(
        "({ layout }) => [layout.yaxis.type, layout.xaxis.range[1]]"
    )
    # The axis ends where the run did, not at the 300 steps it was to take.
    assert axes[0] == "log" and axes[1] < 300
