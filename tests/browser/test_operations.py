"""The operations page: live without a reload, readable at every width, in both languages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.playground.client import Client
from tests.stack import Stack


def test_figures_follow_without_a_reload(open_page: Callable[..., Page], stack: Stack) -> None:
    client = Client(stack)
    page = open_page("/operations")
    page.evaluate("window.same = true")
    row = page.get_by_role("row", name="pipe.echo")
    before = int(row.locator("td").first.inner_text()) if row.count() else 0
    for _ in range(3):
        assert client.submit("pipe.echo", wait=10)["state"] == "succeeded"
    expect(row.locator("td").first).to_have_text(str(before + 3), timeout=15_000)
    assert page.evaluate("window.same")
    # Who stands in a table by keyboard stays there when the figures change.
    region = page.get_by_role("group", name="Queues")
    region.focus()
    with page.expect_response(lambda answer: answer.url.endswith("/operations")):
        pass
    page.wait_for_timeout(100)
    expect(region).to_be_focused()


def test_a_server_that_is_away_is_said(open_page: Callable[..., Page]) -> None:
    page = open_page("/operations")
    notice = page.locator("#operations-lost")
    expect(notice).to_be_hidden()
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('away')); }")
    expect(notice).to_be_visible(timeout=10_000)


@pytest.mark.parametrize(("width", "locale"), [(390, "zh-CN"), (390, "en"), (1440, "zh-CN")])
def test_nothing_is_wider_than_the_page(
    open_page: Callable[..., Page], stack: Stack, width: int, locale: str
) -> None:
    Client(stack).submit("pipe.case", wait=10, case="user")
    page = open_page("/operations", width=width, locale=locale)
    expect(page.locator("h1")).to_have_text("运行状况" if locale == "zh-CN" else "Operations")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
