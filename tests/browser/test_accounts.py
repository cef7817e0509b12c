"""Server mode as a visitor meets it: sign in, make a token, sign out; administration; narrow
windows. No page breaks the security policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.playground.accounts.conftest import PASSWORD, SECRET, Script, manage, run_in
from tests.stack import Stack

Opened = Callable[..., Page]
CLOSED_WITHIN_S = 5


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    running = Stack(SERVER_MODE="1", SECRET_KEY=SECRET, ALLOWED_HOSTS="127.0.0.1")
    try:
        running.start()
        for name in ("ada", "bob"):
            manage(running, "add_user", name, "--password", PASSWORD)
        manage(running, "add_user", "staff", "--password", PASSWORD, "--staff")
        yield running
    finally:
        running.stop()


def go(page: Page, path: str) -> None:
    page.goto(re.sub(r"(?<=\d)/.*", path, page.url))
    clean(page)


def clean(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.violations") == []


def sign_in(page: Page, name: str) -> None:
    page.locator("#id_username").fill(name)
    page.locator("#id_password").fill(PASSWORD)
    page.locator("main button[type=submit]").click()
    page.wait_for_url(lambda address: "/accounts/sign-in" not in address)
    clean(page)


def test_from_sign_in_to_sign_out(open_page: Opened, stack: Stack) -> None:
    page = open_page(
        "/labs/transformer", script=False, permissions=["clipboard-read", "clipboard-write"]
    )
    expect(page.locator("h1")).to_have_text("Sign in")
    page.locator("#id_username").fill("ada")
    page.locator("#id_password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("#id_username")).to_have_value("ada")  # what was typed is kept
    sign_in(page, "ada")
    assert page.url == f"{stack.url}/labs/transformer"

    page.get_by_role("link", name="ada").click()
    page.get_by_label("Name").fill('a "quoted" <b>name</b>')
    page.get_by_role("button", name="Make a token").click()
    secret = page.locator(".account-secret code").inner_text()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    clean(page)
    script = Script(stack, Authorization=f"Bearer {secret}")
    assert script.submit("pipe.echo", wait=10)["state"] == "succeeded"

    page.goto(page.url)  # shown once
    expect(page.locator(".account-secret")).to_have_count(0)
    expect(page.get_by_role("rowheader")).to_have_text('a "quoted" <b>name</b>')
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("You have no tokens yet.")).to_be_visible()
    assert script.get("/api/v1/jobs").status == 401

    go(page, "/accounts/password")
    go(page, "/accounts/tokens")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_have_text("Sign in")
    go(page, "/labs/transformer")
    expect(page.locator("h1")).to_have_text("Sign in")


FOLLOW = """async (id) => {
  const { follow } = await import("core/jobs");
  Object.assign(window, { seen: 0, said: [], problem: null });
  follow(id, {
    onEvent: () => { window.seen += 1; },
    onStatus: (status) => window.said.push(status),
    onError: (problem) => { window.problem = problem.message; },
  });
}"""


def test_a_page_whose_right_is_withdrawn(open_page: Opened, stack: Stack) -> None:
    """Out of a class it comes back by itself, signed out elsewhere it says so."""
    page = open_page("/accounts/sign-in", script=False)
    run_in(
        stack,
        "from playground.accounts.models import User; "
        "from playground.classroom.models import Class; "
        "Class.objects.create(name='5b').members.add(User.objects.get(username='bob'))",
    )
    sign_in(page, "bob")
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in page.context.cookies())
    own = Script(stack, Cookie=cookies, Origin=stack.url)
    job = own.submit("pipe.train", steps=3000, wait_ms=50)
    page.evaluate(FOLLOW, job["id"])
    page.wait_for_function("() => window.seen > 3")
    run_in(
        stack,
        "from playground.classroom.models import Membership; Membership.objects.all().delete()",
    )
    limit = 3 * CLOSED_WITHIN_S * 1000
    page.wait_for_function("() => window.said.includes('reconnecting')", timeout=limit)
    seen = page.evaluate("window.seen")
    page.wait_for_function("(before) => window.seen > before + 3", arg=seen)
    assert page.evaluate("window.problem") is None

    run_in(
        stack,
        "from django.contrib.sessions.models import Session; Session.objects.all().delete()",
    )
    page.wait_for_function("() => window.problem", timeout=limit)
    assert "signed out" in page.evaluate("window.problem")
    run_in(
        stack,
        f"from playground.jobs.models import Job; from playground.jobs import service; "
        f"service.cancel(job=Job.objects.get(pk={job['id']!r}))",
    )


def test_administration_under_the_policy(open_page: Opened, stack: Stack) -> None:
    page = open_page("/admin/", script=False)
    sign_in(page, "staff")
    assert page.url == f"{stack.url}/admin/"
    for path in ("/admin/accounts/user/", "/admin/accounts/user/add/", "/admin/accounts/token/"):
        go(page, path)
    go(page, "/admin/classroom/class/add/")
    page.locator("#id_name").fill("6a")
    page.get_by_text("Add another Membership").click()
    page.locator(".select2-selection").last.click()
    page.locator(".select2-search__field").fill("ad")
    page.get_by_role("option", name="ada").click()
    clean(page)
    page.locator("[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    clean(page)
    count = "from playground.classroom.models import Membership as M; print(M.objects.count())"
    assert run_in(stack, count).strip() == "1"


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_on_a_phone(open_page: Opened, locale: str) -> None:
    page = open_page("/accounts/tokens", script=False, width=390, height=844, locale=locale)
    fits(page)
    sign_in(page, "staff")
    page.locator("#id_name").fill("notebook" * 10)
    page.locator("main form .primary").click()
    fits(page)
    button = page.locator(".account-table button").first
    box = button.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    go(page, "/accounts/password")
    fits(page)


def fits(page: Page) -> None:
    clean(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
