"""Home, guide, language, error pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest
from django.template import TemplateSyntaxError
from django.test import AsyncClient, Client, RequestFactory

from playground import labs
from playground.web import documents, errors, languages, messages, picture

pytestmark = pytest.mark.usefixtures("plain_static")


@pytest.fixture
def visitor() -> Client:
    """A browser without scripts."""
    return Client()


def text_of(response: Any) -> str:
    content: bytes = response.content
    return content.decode()


def test_home_has_one_card_a_lab_and_one_big_button(visitor: Client) -> None:
    page = text_of(visitor.get("/"))
    assert page.count("lab-card-action") == len(labs.all()) == 1
    button = re.search(r'<a class="button primary big" href="([^"]+)">.*?</svg>([^<]+)</a>', page)
    assert button is not None
    assert button.groups() == ("/labs/transformer", "Watch a Transformer learn")
    navigation = page[page.index("<nav") : page.index("</nav>")]
    assert re.findall(r'href="(/labs/[^"]+)"', navigation) == ["/labs/transformer"]


def test_the_picture_says_what_it_shows(visitor: Client) -> None:
    facts = picture.facts()
    maps = len(facts["steps"]) * facts["layers"] * facts["heads"]
    assert picture.FILM.stat().st_size == maps * facts["tokens"] ** 2
    assert len(facts["probe"]) == facts["tokens"]
    assert facts["probe"] in text_of(visitor.get("/"))


def test_the_picture_is_made_from_snapshots(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    weights = torch.tril(torch.rand(2, 3, 4, 4)).softmax(-1)
    save_file({"attention": weights}, tmp_path / "a.safetensors")
    shape, values = picture.attention(tmp_path / "a.safetensors")
    frame = picture.grey(shape, values)
    assert shape == [2, 3, 4, 4] and len(frame) == 8 * 12
    assert frame[12 * (4 + 2) + 4 + 1] == round(255 * float(weights[1, 1, 2, 1]))


def test_pages_carry_a_nonce_for_the_import_map_only(visitor: Client) -> None:
    response = visitor.get("/")
    page = text_of(response)
    nonces = re.findall(r'nonce="([^"]+)"', page)
    assert len(nonces) == 1
    assert f"'nonce-{nonces[0]}'" in response.headers["Content-Security-Policy"]
    assert "unsafe" not in response.headers["Content-Security-Policy"]


def test_the_address_chooses_the_language_and_the_cookie_keeps_it(visitor: Client) -> None:
    response = visitor.get("/?lang=zh-hans&run=7")
    page = text_of(response)
    assert '<html lang="zh-Hans"' in page
    assert "观看 Transformer 学习" in page
    assert response.headers["Content-Language"] == "zh-Hans"
    # The switch keeps the rest of the address.
    assert 'href="/?lang=en&amp;run=7"' in page
    assert '<html lang="zh-Hans"' in text_of(visitor.get("/docs/"))
    assert '<html lang="en"' in text_of(visitor.get("/?lang=en"))


def test_an_unknown_language_changes_nothing(visitor: Client) -> None:
    response = visitor.get("/?lang=fr")
    assert '<html lang="en"' in text_of(response)
    assert "django_language" not in response.cookies


@pytest.mark.asyncio
async def test_the_language_middleware_is_asynchronous_too(async_client: AsyncClient) -> None:
    response = await async_client.get("/?lang=zh-hans")
    assert '<html lang="zh-Hans"' in response.content.decode()
    assert response.cookies["django_language"].value == "zh-hans"


def test_the_browsers_language_is_the_default(visitor: Client) -> None:
    page = text_of(visitor.get("/", headers={"accept-language": "zh-CN,zh;q=0.9"}))
    assert '<html lang="zh-Hans"' in page


def test_the_scripts_catalogue_is_immutable_and_never_stale(visitor: Client) -> None:
    response = visitor.get(messages.script_url("zh-hans"))
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert response.headers["Content-Type"].startswith("text/javascript")
    assert text_of(response).startswith("export default {")
    assert visitor.get("/i18n/zh-hans.000000000000.js").status_code == 404
    assert visitor.get("/i18n/fr.000000000000.js").status_code == 404


def test_a_missing_page_says_what_to_do(visitor: Client) -> None:
    response = visitor.get("/nowhere")
    page = text_of(response)
    assert response.status_code == 404
    assert "There is nothing at this address" in page
    assert 'href="/"' in page


@pytest.mark.parametrize(
    ("handler", "status"),
    [(errors.bad_request, 400), (errors.forbidden, 403), (errors.not_found, 404)],
)
def test_error_pages(rf: RequestFactory, handler: Any, status: int) -> None:
    response = handler(rf.get("/x"), Exception("never shown"))
    assert response.status_code == status
    assert "never shown" not in response.content.decode()


def test_an_error_in_the_error_page_is_still_answered(
    rf: RequestFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        raise TemplateSyntaxError("broken")

    monkeypatch.setattr(errors, "render", broken)
    response = errors.server_error(rf.get("/x"))
    assert response.status_code == 500
    assert response.headers["Content-Type"].startswith("text/plain")
    assert "The server made a mistake" in response.content.decode()


def test_the_guide_lists_and_renders_its_pages(
    visitor: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "start.en.md").write_text("# Start here\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    (tmp_path / "start.zh-hans.md").write_text("# 从这里开始\n")
    (tmp_path / "more.en.md").write_text("# More\n\n<script>alert(1)</script>\n")
    monkeypatch.setattr(documents, "_FOLDERS", {documents.GENERAL: tmp_path})
    assert "Start here" in text_of(visitor.get("/docs/"))
    page = text_of(visitor.get("/docs/playground/start"))
    assert "<h1>Start here</h1>" in page and "<td>1</td>" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text_of(visitor.get("/docs/playground/more"))
    assert "从这里开始" in text_of(visitor.get("/docs/playground/start?lang=zh-hans"))
    # A page without a Chinese file is shown in English rather than not at all.
    assert "<h1>More</h1>" in text_of(visitor.get("/docs/playground/more?lang=zh-hans"))
    assert visitor.get("/docs/playground/none").status_code == 404
    assert visitor.get("/docs/nowhere/start").status_code == 404


def test_language_names() -> None:
    assert [languages.html_code(code) for code in ("en", "zh-hans", "fr")] == [
        "en",
        "zh-Hans",
        "en",
    ]
