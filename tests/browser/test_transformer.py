"""The Transformer lab as a person uses it: press Play, see the loss fall, reload, step through."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect
from safetensors.torch import load_file

from tests.browser import runs
from tests.browser.conftest import OpenPage
from tests.stack import Stack

PATIENCE_MS = 180_000
HOSTILE = '"><img src=x onerror=alert(1)> a<b<c'


@pytest.fixture(scope="module")
def model(stack: Stack) -> str:
    """A tiny model trained on hostile characters too, so that they are tokens of its own."""
    text = ("The cat sat on the mat. " + HOSTILE + "\tnew\nline  two ") * 30
    job = runs.submit(
        stack.url,
        "transformer.train",
        {**runs.TINY, "data": "text", "text": text, "probe": "The cat"},
    )
    row = runs.wait(stack.url, job)
    assert row["state"] == "succeeded", row["message"]
    return job


def fill_form(page: Page, values: dict[str, Any]) -> None:
    page.evaluate(
        "(values) => { document.querySelector('.new-run params-form').values = values; }", values
    )


def opened_step(open_page: OpenPage, model: str, extra: str = "", **options: Any) -> Page:
    page = open_page(f"/labs/transformer?mode=step&run={model}{extra}", **options)
    expect(page.locator("[data-testid=sentence]")).not_to_be_empty()
    expect(page.locator(".figure matrix-view").first).to_be_visible()
    return page


def test_play_reload_end_and_step_through(
    open_page: OpenPage, stack: Stack, tmp_path: Path
) -> None:
    page = open_page("/labs/transformer")
    # Something real is drawn before anything was asked for.
    expect(page.locator(".room-centre:not([hidden]) h1")).not_to_be_empty()
    expect(page.locator(".diagram, .chart-card:not([hidden])").first).to_be_visible()
    fill_form(page, {**runs.TINY, "steps": 250})
    page.get_by_test_id("play").click()
    # The loss starts near ln 81 = 4.39, and the page shows it fall.
    page.wait_for_function(
        """() => { const loss = Number(document.querySelector(".run-facts dd")?.textContent);
          return loss > 0 && loss < 3.6; }""",
        timeout=PATIENCE_MS,
    )
    run = page.evaluate("() => new URL(location.href).searchParams.get('run')")
    page.reload()
    page.wait_for_function("() => document.documentElement.dataset.ready === 'true'")
    expect(page.locator(".head-thumb").first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("step-through")).to_be_visible(timeout=PATIENCE_MS)
    row = runs.wait(stack.url, run)
    assert row["state"] == "succeeded"
    events = runs.call(f"{stack.url}/api/v1/jobs/{run}/events?limit=5000")["items"]
    steps = [e["data"]["step"] for e in events if e["type"] == "metric"]
    assert steps == list(range(1, 251))
    losses = [e["data"]["loss"] for e in events if e["type"] == "metric"]
    assert row["result"]["loss"] < 3.6 < losses[0]
    # The reload in the middle lost nothing: the chart holds every step.
    chart = page.locator("live-chart[name=loss]")
    chart.get_by_text("As a table").click()
    expect(chart.locator(".chart-table .caption")).to_contain_text("of 250 steps")

    page.get_by_test_id("step-through").click()
    expect(page.locator(".room-centre[data-mode=step] .figure matrix-view").first).to_be_visible()
    trace = page.evaluate(
        """async () => {
          const { state } = await import("core/view-state");
          while (!state.get("trace")) await new Promise((go) => setTimeout(go, 50));
          return state.get("trace");
        }"""
    )
    compare_cell(page, stack, run, trace, tmp_path)


def compare_cell(page: Page, stack: Stack, run: str, trace: str, folder: Path) -> None:
    """One score's arithmetic on the page against torch, from the downloaded artifacts."""
    weights = load_file(runs.artifact(stack.url, run, "model.safetensors", folder))
    tensors = load_file(runs.artifact(stack.url, trace, "tensors.safetensors", folder))
    layer, head, row, col = 1, 1, 6, 2
    page.goto(
        f"{stack.url}/labs/transformer?mode=step&run={run}&trace={trace}"
        f"&step=scores&layer={layer}&head={head}&row={row}&col={col}"
    )
    expect(page.get_by_test_id("arithmetic")).to_contain_text("q · k =")
    x = tensors[f"blocks.{layer}.norm1.out"].double()
    name = f"blocks.{layer}.attn."
    dk = x.shape[1] // 2
    mine = slice(head * dk, (head + 1) * dk)
    q, k = (
        torch.nn.functional.linear(
            x, weights[f"{name}{n}.weight"].double(), weights[f"{name}{n}.bias"].double()
        )[:, mine]
        for n in "qk"
    )
    want = float(q[row] @ k[col])
    shown = page.get_by_test_id("cell-value").inner_text().replace("−", "-")
    assert float(shown) == pytest.approx(want, rel=2e-3, abs=1e-4)
    lines = page.get_by_test_id("arithmetic").inner_text().replace("−", "-").splitlines()
    assert float(lines[-1].removeprefix("= ")) == pytest.approx(want, rel=2e-3, abs=1e-4)
    first = re.match(r"q · k = \(?(-?[\de.-]+)\)?·\(?(-?[\de.-]+)\)?", lines[0])
    assert first is not None
    assert float(first[1]) == pytest.approx(float(q[row, 0]), rel=1e-2, abs=1e-4)
    assert float(first[2]) == pytest.approx(float(k[col, 0]), rel=1e-2, abs=1e-4)

    page.get_by_test_id("check").click()
    checked = page.get_by_test_id("check-value")
    expect(checked).to_be_visible(timeout=60_000)
    assert float(checked.inner_text().replace("−", "-")) == pytest.approx(want, rel=1e-4)
    expect(page.get_by_test_id("check-result")).to_contain_text("torch agrees")


STAGES = (
    "embed.token embed.position embed.sum norm1 qkv scores scale mask softmax weighted concat "
    "project residual1 norm2 ffn.up ffn.act ffn.down residual2 final_norm logits probabilities "
    "temperature filter sample"
).split()


def test_every_stage_recomputes_its_number(open_page: OpenPage, model: str) -> None:
    """The page's own arithmetic gives what the model computed, in every stage and tensor."""
    page = opened_step(open_page, model)
    found = page.evaluate(
        """async () => {
          const { state } = await import("core/view-state");
          const { TraceData } = await import("labs/transformer-trace");
          const { explain } = await import("labs/transformer-explain");
          const trace = await TraceData.load(state.get("trace"));
          const out = [];
          for (const step of trace.steps) for (const tensor of step.outputs) {
            const shape = trace.file.shape(tensor);
            const wide = trace.isWide(tensor);
            const head = shape.length === 3 ? 1 : null;
            const row = wide ? 0 : 4;
            const col = shape.length === 1 && !wide ? 0 : 3;
            const told = await explain(trace, { tensor, head, row, col });
            out.push([step.stage, tensor, told.value, told.shown, told.lines.length]);
          }
          return out;
        }"""
    )
    assert {stage for stage, *_ in found} == set(STAGES) - {"sample"}
    for stage, tensor, value, shown, lines in found:
        assert lines > 0, (stage, tensor)
        assert value == pytest.approx(shown, rel=1e-4, abs=1e-5), (stage, tensor)


def test_hostile_text_is_literal_everywhere(open_page: OpenPage, model: str) -> None:
    page = opened_step(open_page, model)
    text = page.locator("#trace-text")
    text.fill(HOSTILE[:31])
    page.get_by_role("button", name="Step through this text").click()
    expect(page.locator(".spread-name")).to_have_count(31)
    for stage in ("softmax", "probabilities", "sample"):
        page.locator(".player-name").nth(STAGES.index(stage)).click()
        expect(page.locator(".player-name[aria-current=step]")).to_be_visible()
        page.locator(".matrix-table > summary").last.click()
        expect(page.locator(".matrix-table[open] table").last).to_be_visible()
    assert page.locator("main img").count() == 0
    # White space has visible glyphs, and repeated tokens keep their own rows.
    text.fill("a a\ta\na")
    page.get_by_role("button", name="Step through this text").click()
    page.locator(".player-name").nth(STAGES.index("softmax")).click()
    names = page.locator(".spread-name")
    expect(names).to_have_count(7)
    assert names.all_inner_texts() == ["a", "␣", "a", "⇥", "a", "↵", "a"]


def test_unseen_and_overlong_text_is_stopped_before_it_is_sent(
    open_page: OpenPage, model: str
) -> None:
    page = opened_step(open_page, model)
    text, button = (
        page.locator("#trace-text"),
        page.locator(".room-left:not([hidden]) form button[type=submit]"),
    )
    text.fill("The 汉 cat?")
    expect(page.locator("#trace-unseen")).to_contain_text("汉")
    assert page.locator(".trace-marked mark").all_inner_texts() == ["汉", "?"]
    expect(button).to_be_disabled()
    page.get_by_role("button", name="Take them out").click()
    expect(text).to_have_value("The  cat")
    expect(button).to_be_enabled()
    text.fill("cat " * 8)
    expect(page.locator("#trace-count")).to_have_text("32 of 32 tokens")
    expect(button).to_be_enabled()
    text.fill("cat " * 8 + "c")
    expect(button).to_be_disabled()
    expect(page.locator("#trace-unseen")).to_contain_text("33")


def test_keyboard_only(open_page: OpenPage, model: str) -> None:
    page = opened_step(open_page, model, "&step=scores")
    page.locator("body").press("ArrowRight")
    current = page.locator(".player-name[aria-current=step]")
    expect(current).to_have_text("÷√d_k")
    page.locator("body").press("Home")
    expect(current).to_have_text("Token")
    page.locator("body").press("End")
    expect(current).to_have_text("Draw")
    page.locator("body").press(" ")
    expect(page.locator(".room-player:not([hidden]) .player-play")).to_contain_text("Pause")
    page.locator("body").press(" ")
    expect(page.locator(".room-player:not([hidden]) .player-play")).to_contain_text("Play")
    page.locator(".player-name").nth(STAGES.index("softmax")).press("Enter")
    stage = page.locator(".figure .after .matrix-stage")
    stage.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        stage.press(key)
    expect(page.get_by_test_id("cell-value")).to_be_visible()
    page.wait_for_function("() => /row=2&col=1|col=1&row=2/.test(location.search)")
    expect(page.get_by_test_id("arithmetic")).to_contain_text("exp(")
    # Following an operand walks back to where it was made, and Esc unlocks.
    page.locator(".why-source").first.press("Enter")
    expect(current).to_have_text("Mask")
    page.keyboard.press("Escape")
    expect(page.locator(".why-guide:visible")).to_be_visible()
    page.wait_for_function("() => !location.search.includes('row=')")


def test_hover_previews_and_click_locks(open_page: OpenPage, model: str) -> None:
    page = opened_step(open_page, model, "&step=softmax")
    view = page.locator(".figure .after matrix-view")
    box = view.locator(".matrix-scroll").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 6, box["y"] + box["height"] - 6)
    expect(page.get_by_test_id("cell-value")).to_be_visible()
    page.mouse.move(5, 5)
    expect(page.locator(".why-guide:visible")).to_be_visible()
    page.mouse.click(box["x"] + 6, box["y"] + box["height"] - 6)
    page.mouse.move(5, 5)
    expect(page.get_by_test_id("cell-value")).to_be_visible()
    page.wait_for_function("() => location.search.includes('row=')")
    page.reload()
    expect(page.get_by_test_id("cell-value")).to_be_visible()
    page.mouse.click(box["x"] + 6, box["y"] + box["height"] - 6)
    page.mouse.move(5, 5)
    expect(page.locator(".why-guide:visible")).to_be_visible()


def test_temperature_top_k_and_writing_on(open_page: OpenPage, model: str) -> None:
    page = opened_step(open_page, model)
    bars = page.locator(".next-bar")
    expect(bars.first).to_be_visible()
    page.locator("[data-knob=top_k]").fill("2")
    expect(page.locator(".next-bar.cut")).to_have_count(6)
    page.locator("[data-knob=temperature]").fill("0")
    expect(page.get_by_test_id("drawn")).to_contain_text("greedy")
    expect(page.locator(".next-bar.chosen")).to_have_count(1)
    page.get_by_role("button", name="Write on").click()
    expect(page.get_by_role("button", name="Step through what it wrote")).to_be_visible(
        timeout=60_000
    )
    assert len(page.locator(".next-text").inner_text()) > 20


def test_a_refusal_by_the_server_stays_beside_the_text(open_page: OpenPage, stack: Stack) -> None:
    run = runs.submit(stack.url, "transformer.train", runs.TINY)
    assert runs.wait(stack.url, run)["state"] == "succeeded"
    page = opened_step(open_page, run)
    runs.call(f"{stack.url}/api/v1/jobs/{run}", method="DELETE")
    page.get_by_role("button", name="Step through this text").click()
    expect(page.locator("#trace-unseen .error")).to_contain_text(run)
    expect(page.locator(".figure matrix-view").first).to_be_visible()  # what was shown stays


@pytest.mark.timeout(400)
def test_pause_single_step_new_rate_scrub_and_cancel(open_page: OpenPage, stack: Stack) -> None:
    page = open_page("/labs/transformer")
    fill_form(page, {**runs.TINY, "steps": 20_000, "snapshot_every": 200, "eval_every": 500})
    play, title = page.get_by_test_id("play"), page.locator(".room-centre:not([hidden]) h1")
    play.click()
    expect(play).to_have_text("Pause", timeout=PATIENCE_MS)
    expect(page.get_by_test_id("maps-step")).to_contain_text("the newest", timeout=PATIENCE_MS)
    play.click()
    expect(title).to_contain_text("Paused at step", timeout=30_000)
    run = page.evaluate("() => new URL(location.href).searchParams.get('run')")

    def steps() -> list[int]:
        events = runs.call(f"{stack.url}/api/v1/jobs/{run}/events?limit=5000")["items"]
        return [event["data"]["step"] for event in events if event["type"] == "metric"]

    held = steps()[-1]
    page.get_by_role("button", name="One step").click()
    expect(title).to_contain_text(f"step {held + 1:,}:", timeout=30_000)
    page.wait_for_timeout(300)
    assert steps()[-1] == held + 1

    # The half-trained model can be stepped through; its numbers are those of that very step.
    page.get_by_test_id("step-through").click()
    note = page.get_by_test_id("weights-note")
    expect(note).to_contain_text(f"after step {held + 1:,}.", timeout=60_000)
    page.goto(page.url + "&step=qkv&row=3&col=1")
    page.get_by_test_id("check").click(timeout=60_000)
    expect(page.get_by_test_id("check-result")).to_contain_text("torch agrees", timeout=60_000)
    half_trained = page.url
    page.get_by_role("button", name="Train", exact=True).click()

    rate = page.locator(".room-left params-form[live] input[type=number]").first
    rate.fill("0.0005")
    rate.press("Enter")
    expect(play).to_have_text("Resume")
    play.click()
    expect(play).to_have_text("Pause", timeout=30_000)
    page.wait_for_function(
        """async (run) => {
          const answer = await fetch(`/api/v1/jobs/${run}/events?limit=5000`);
          const { items } = await answer.json();
          return items.some(({ type, data }) => type === "control" && data.action === "set"
            && data.values.lr === 0.0005);
        }""",
        arg=run,
        timeout=30_000,
    )
    # Scrubbing leaves the present, and a button returns to it.
    page.locator(".room-player:not([hidden]) .player-button").first.click()
    expect(page.get_by_test_id("maps-step")).to_have_text("step 0")
    page.wait_for_function("() => location.search.includes('at=0')")
    page.get_by_role("button", name="Follow the newest").click()
    expect(page.get_by_test_id("maps-step")).to_contain_text("the newest")
    page.locator(".maps matrix-view .matrix-scroll").click(position={"x": 5, "y": 5})
    page.wait_for_function("() => location.search.includes('row=0')")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(title).to_contain_text("Cancelled at step", timeout=30_000)
    expect(page.locator("job-status")).to_be_hidden()
    # What was seen half-way still adds up, though the model has learned on.
    page.goto(half_trained)
    page.get_by_test_id("arithmetic").wait_for(timeout=60_000)
    lines = page.get_by_test_id("arithmetic").inner_text().replace("−", "-").splitlines()
    shown = page.get_by_test_id("cell-value").inner_text().replace("−", "-")
    assert float(lines[-1].removeprefix("= ")) == pytest.approx(float(shown), rel=2e-3, abs=1e-4)
    expect(note).to_contain_text(f"after step {held + 1:,}.")
    page.get_by_test_id("check").click()
    expect(page.get_by_test_id("check-result")).to_contain_text("torch agrees", timeout=60_000)
    page.get_by_role("button", name="Train", exact=True).click()
    # A locked cell of the old run doesn't stand in the way of a new one.
    expect(play).to_have_text("Train again")
    play.click()
    expect(play).to_have_text("Pause", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(play).to_have_text("Train again", timeout=30_000)


def test_a_run_that_diverges_says_so_in_place(open_page: OpenPage) -> None:
    page = open_page("/labs/transformer")
    fill_form(page, {**runs.TINY, "lr": 10, "steps": 400, "warmup": 0, "clip": 0})
    page.get_by_test_id("play").click()
    expect(page.get_by_test_id("failure")).to_contain_text("diverged", timeout=PATIENCE_MS)
    expect(page.locator(".room-centre:not([hidden]) h1")).to_contain_text("diverged at step")
    form = page.evaluate("() => document.querySelector('.new-run params-form').values.lr")
    assert form == 10  # the input is kept


def test_indivisible_heads_are_refused_with_the_nearest(open_page: OpenPage) -> None:
    page = open_page("/labs/transformer")
    fill_form(page, {**runs.TINY, "d_model": 100, "heads": 8})
    page.get_by_test_id("play").click()
    problems = page.locator(".new-run .field-problem:visible")
    expect(problems.first).to_be_visible()
    assert "104" in page.locator(".new-run").inner_text()


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("lang", ["en", "zh-hans"])
def test_both_languages_at_phone_and_desk_width(
    open_page: OpenPage, model: str, width: int, lang: str
) -> None:
    height = 844 if width == 390 else 900
    page = opened_step(open_page, model, f"&lang={lang}", width=width, height=height)
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans" if lang == "zh-hans" else "en")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    expect(page.locator(".room-player:not([hidden]) .player-play")).to_be_in_viewport()
    legend = page.locator(".figure .after .matrix-legend").first
    expect(legend).to_contain_text("查询" if lang == "zh-hans" else "query (looks)")
    page.goto(page.url.replace("mode=step", "mode=train"))
    page.wait_for_function("() => document.documentElement.dataset.ready === 'true'")
    expect(page.get_by_test_id("play")).to_be_in_viewport()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    # With a run on the page, a phone shows it before the form.
    folded = page.locator(".new-run:not([open])")
    expect(folded).to_have_count(1 if width == 390 else 0)
