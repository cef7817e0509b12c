"""Core scripts in a real browser: numbers, texts, theme, address, and the tab's one socket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.chromium import chromium
from tests.playground.web.browser import ORIGIN, page_of, plain_settings


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with (
        plain_settings(ROOT_URLCONF="tests.playground.web.gallery"),
        chromium() as running,
    ):
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with page_of(browser) as page:
        page.goto(f"{ORIGIN}/docs/?run=a")
        page.wait_for_load_state("load")
        yield page


def call(page: Page, module: str, expression: str, argument: Any = None) -> Any:
    """Evaluates an expression over `m`, the module, and `a`, the argument."""
    return page.evaluate(
        f"async (a) => {{ const m = await import('{module}'); return {expression}; }}", argument
    )


def test_numbers_read_as_the_design_says(page: Page) -> None:
    values = [0.73391, 12.3456, 21480, 0, 3e-5, -1.5, 123456.7, 1.2e7, {"$num": "NaN"},
              {"$num": "-Infinity"}, None]  # fmt: skip
    assert call(page, "core/format", "a.map((v) => m.sig(v))", values) == [
        "0.7339", "12.35", "21480", "0", "3e−5", "−1.500", "123457", "1.2e7", "NaN", "−∞", "–",
    ]  # fmt: skip
    assert call(page, "core/format", "[m.short(0.5), m.short(100), m.compact(811_234)]") == [
        "0.5", "100", "811k",
    ]  # fmt: skip
    assert call(page, "core/format", "[28.4, 80, 0.25, 7500].map((s) => m.duration(s))") == [
        "28 s", "1 min 20 s", "250 ms", "2 h 5 min",
    ]  # fmt: skip
    assert call(page, "core/format", "[m.bytes(540), m.bytes(1_234_567), m.percent(0.004)]") == [
        "540 B", "1.23 MB", "0.4 %",
    ]  # fmt: skip


def test_thinned_data_keeps_extremes_gaps_and_ends(page: Page) -> None:
    drawn = page.evaluate(
        """async () => { const m = await import("elements/chart-data");
          const data = new m.ChartData(["y"]);
          for (let i = 0; i < 10_000; i += 1)
            data.add(i, { y: i === 5000 ? { $num: "NaN" } : i === 7777 ? 99 : Math.sin(i) });
          const { x, y } = m.thin(data.columns.get("y"), 200);
          return { n: x.length, top: x[y.indexOf(99)], gap: x[y.indexOf(null)], last: x.at(-1),
                   sorted: x.every((v, i) => i === 0 || v > x[i - 1]), all: data.length }; }"""
    )
    assert drawn["all"] == 10_000 and 300 < drawn["n"] <= 601
    assert (drawn["top"], drawn["gap"], drawn["last"], drawn["sorted"]) == (7777, 5000, 9999, True)


def test_chinese_comes_from_the_catalogue(browser: Browser) -> None:
    with page_of(browser) as page:
        page.goto(f"{ORIGIN}/docs/?lang=zh-hans")
        texts = "[m.t('Theme: {theme}', {theme: 'X'}), m.tn('{n} more', '{n} more', 2), m.lang]"
        assert call(page, "core/i18n", texts) == ["主题：X", "还有 2 项", "zh-hans"]
        assert call(page, "core/i18n", "m.pick({en: 'a', 'zh-hans': '甲'})") == "甲"
        assert call(page, "core/format", "m.duration(80)") == "1 分 20 秒"


def test_the_view_lives_in_the_address(page: Page) -> None:
    heard = page.evaluate(
        """async () => { const { state } = await import("core/view-state");
          window.state = state; window.heard = [];
          state.on(["step", "head"], (all) => heard.push(all.step));
          state.set({ step: 3, run: "b" }, { push: true });
          state.set({ other: 1 }); state.set({ step: 3 });
          return heard; }"""
    )
    assert heard == ["3"]
    assert page.evaluate("state.url()") == f"{ORIGIN}/docs/?run=b&step=3&other=1"
    page.go_back()
    wait(page, "heard.length === 2")
    assert page.evaluate("[state.get('step'), state.get('run')]") == [None, "a"]


def test_the_theme_is_there_before_the_first_paint_and_the_size_too(browser: Browser) -> None:
    with page_of(browser, color_scheme="dark") as page:
        page.goto(f"{ORIGIN}/docs/")
        system = page.evaluate("getComputedStyle(document.body).color")
        page.locator("#theme-button").click()  # system → light
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        assert page.evaluate("getComputedStyle(document.body).color") != system
        page.locator("#projector-button").click()
        page.reload()
        assert page.evaluate("[...document.documentElement.attributes].map((a) => a.name)") == [
            "lang", "dir", "data-icons", "data-theme", "data-projector",
        ]  # fmt: skip
        assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") == (
            pytest.approx(15 * 1.3)
        )


def test_the_language_link_keeps_what_scripts_put_into_the_address(page: Page) -> None:
    call(page, "core/view-state", "m.state.set({step: 7})")
    page.locator("#language-switch").click()
    page.wait_for_url(re.compile("lang=zh-hans"))
    assert "run=a" in page.url and "step=7" in page.url
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")


def test_a_narrow_window_has_a_menu_and_no_sideways_scroll(browser: Browser) -> None:
    with page_of(browser) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(f"{ORIGIN}/")
        link = page.locator("#site-nav a", has_text="Transformer")
        expect(link).to_be_hidden()
        page.locator("#menu-button").click()
        expect(link).to_be_visible()
        page.keyboard.press("Escape")
        expect(link).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_skip_link_comes_first(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


# The socket: a server of the test's own on the other side of the wire.


class Wire:
    """Plays the server. Keeps every subscription; `send` answers on the newest connection."""

    def __init__(self, page: Page) -> None:
        self.sockets: list[WebSocketRoute] = []
        self.subscriptions: list[tuple[str, str | None]] = []
        page.route_web_socket(re.compile(r"/ws/v1$"), self._connected)

    def _connected(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)
        socket.on_message(self._heard)
        self.send(op="welcome")

    def _heard(self, message: str | bytes) -> None:
        said = json.loads(message)
        if said["op"] == "sub":
            self.subscriptions.append((said["topic"], said["after"]))

    def send(self, **message: Any) -> None:
        self.sockets[-1].send(json.dumps(message))

    def events(self, job: str, *seqs: int, attempt: int = 1) -> None:
        events = [
            {"id": f"{attempt}-{n}", "job": job, "type": "metric", "t": 0, "data": {"step": n}}
            for n in seqs
        ]
        self.send(op="ev", topic=f"job:{job}", events=events)


def start(page: Page, name: str, job: str) -> None:
    page.evaluate(
        """async ([name, job]) => { const { follow } = await import("core/jobs");
          const log = (window[name] = { ids: [], status: [], jobs: [], problems: [] });
          log.handle = follow(job, { onEvent: (e) => log.ids.push(e.id),
            onStatus: (s) => log.status.push(s), onJob: (j) => log.jobs.push(j.state),
            onError: (p) => log.problems.push(p.code) }); }""",
        [name, job],
    )


def wait(page: Page, condition: str) -> None:
    # Not a string for wait_for_function: it polls by eval, which the page's policy forbids.
    page.wait_for_function(f"() => {condition}", timeout=8000)


def test_a_lost_connection_resumes_after_the_last_event_without_doubles(page: Page) -> None:
    wire = Wire(page)
    start(page, "a", "x")
    wait(page, "a.status[0] === 'live'")
    wire.events("x", 1, 2, 3)
    wait(page, "a.ids.length === 3")
    wire.sockets[-1].close(code=1012)
    wait(page, "a.status.at(-1) === 'live' && a.status.length === 3")
    wire.events("x", 2, 3, 4)  # a server that repeats itself
    wire.events("x", 1, attempt=2)
    wait(page, "a.ids.length === 5")
    assert page.evaluate("a.ids") == ["1-1", "1-2", "1-3", "1-4", "2-1"]
    assert page.evaluate("a.status") == ["live", "reconnecting", "live"]
    assert wire.subscriptions == [("job:x", None), ("job:x", "1-3")]
    assert page.evaluate("a.handle.cursor") == "2-1"


def test_one_socket_carries_every_topic_and_late_followers_get_the_history(page: Page) -> None:
    wire = Wire(page)
    start(page, "a", "x")
    start(page, "b", "y")
    wait(page, "a.status[0] === 'live' && b.status[0] === 'live'")
    wire.send(op="snapshot", topic="job:x", job={"id": "x", "state": "running"})
    wire.events("x", 1, 2)
    wire.events("y", 1)
    wait(page, "a.ids.length === 2 && b.ids.length === 1")
    start(page, "late", "x")
    wait(page, "late.ids.length === 2")
    wire.events("x", 3)
    wait(page, "a.ids.length === 3 && late.ids.length === 3")
    assert page.evaluate("late.jobs") == ["running"]
    assert len(wire.sockets) == 1
    assert wire.subscriptions == [("job:x", None), ("job:y", None)]


def test_a_refused_topic_and_a_server_that_says_goodbye(page: Page) -> None:
    wire = Wire(page)
    start(page, "a", "x")
    start(page, "b", "y")
    wait(page, "b.status[0] === 'live'")
    wire.send(op="error", topic="job:y", code="not_found", detail="No such job.")
    wait(page, "b.problems.length === 1")
    wire.send(op="lag", topic="job:x")
    wait(page, "a.status.at(-1) === 'lagging'")
    wire.send(op="bye", retry_ms=50)
    wait(page, "a.status.at(-1) === 'live' && a.status.length === 4")
    assert page.evaluate("b.problems") == ["not_found"]
    # The refused topic is not asked for again.
    assert wire.subscriptions[2:] == [("job:x", None)]


def test_finished_waits_for_the_last_event(page: Page) -> None:
    wire = Wire(page)
    page.evaluate(
        """async () => { const { finished } = await import("core/jobs");
          window.end = { ids: [], job: null };
          finished("x", { onEvent: (e) => end.ids.push(e.id) }).then((job) => (end.job = job)); }"""
    )
    wait_for_topic(page, wire)
    wire.send(op="snapshot", topic="job:x", job={"id": "x", "state": "succeeded"})
    wire.events("x", 1)
    assert page.evaluate("end.job") is None
    last = {"id": "1-2", "job": "x", "type": "end", "t": 0, "data": {"state": "succeeded"}}
    wire.send(op="ev", topic="job:x", events=[last])
    wait(page, "end.job")
    assert page.evaluate("[end.job.state, end.ids]") == ["succeeded", ["1-1", "1-2"]]


def wait_for_topic(page: Page, wire: Wire) -> None:
    for _ in range(100):
        if wire.subscriptions:
            return
        page.wait_for_timeout(50)
    raise AssertionError("nothing was subscribed")


def test_a_problem_of_the_api_keeps_its_fields(page: Page) -> None:
    body = {
        "title": "Invalid params", "status": 422, "code": "invalid_input", "detail": "Refused.",
        "errors": [{"pointer": "/params/heads", "detail": "No.", "nearest": [4, 6]}],
    }  # fmt: skip
    sent: list[dict[str, str]] = []

    def refuse(route: Any) -> None:
        sent.append(route.request.headers)
        route.fulfill(status=200, content_type="application/json", body="{}")

    page.route(f"{ORIGIN}/api/v1/jobs", refuse)
    page.evaluate("async () => (await import('core/jobs')).submit('k', {}, {wait: 2})")
    assert sent[0]["content-type"] == "application/json"
    assert sent[0]["prefer"] == "wait=2" and len(sent[0]["idempotency-key"]) == 32
    found = call(page, "core/jobs", "new m.Problem(a).errors", body)
    assert found == [{"pointer": "/heads", "detail": "No.", "nearest": [4, 6]}]
