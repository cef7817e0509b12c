"""Every colour in two themes; text readable in both; no colour outside the one file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

CSS = Path(settings.BASE_DIR) / "static" / "css"
TOKENS = (CSS / "tokens.css").read_text("utf-8")
ROLES = ("query", "key", "value", "attention", "residual", "gradient", "index-key", "row-data")
TEXT = ("ink", "ink-2", "accent", *ROLES, "error", "ok")


PAIRS = re.findall(r"(--[\w-]+):\s*light-dark\((\S+), (\S+)\);", TOKENS)
LIGHT = {name: light for name, light, _ in PAIRS}
DARK = {name: dark for name, _, dark in PAIRS}


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_is_a_pair() -> None:
    assert {"--bg", "--ink"} <= set(LIGHT)
    pairs_apart = re.sub(r"light-dark\([^)]*\)", "", TOKENS)
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsl", pairs_apart)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", TEXT)
def test_text_colours_are_readable(theme: dict[str, str], name: str) -> None:
    for ground in ("bg", "surface", "surface-2"):
        assert contrast(theme[f"--{name}"], theme[f"--{ground}"]) >= 4.5, (name, ground)
    if (soft := theme.get(f"--{name}-soft")) is not None:
        assert contrast(theme[f"--{name}"], soft) >= 4.5, (name, "on its soft ground")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_main_button_is_readable(theme: dict[str, str]) -> None:
    for name in ("--accent", "--accent-hover"):
        assert contrast(theme["--on-accent"], theme[name]) >= 4.5


def test_colours_live_in_the_tokens_alone() -> None:
    for file in CSS.rglob("*.css"):
        if file.name != "tokens.css":
            text = re.sub(r"/\*.*?\*/", "", file.read_text("utf-8"), flags=re.DOTALL)
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsl", text), file.name


def test_nothing_is_smaller_than_twelve_pixels() -> None:
    allowed = {"params-form.css": 0.6875}  # the question mark in its 16 px circle
    for file in CSS.rglob("*.css"):
        sizes = re.findall(r"font(?:-size)?:[^;]*?([\d.]+)rem", file.read_text("utf-8"))
        least = allowed.get(file.name, 0.75)
        assert all(float(size) >= least for size in sizes), (file.name, sizes)


def test_every_token_used_exists() -> None:
    scripts = (Path(settings.BASE_DIR) / "static" / "js").rglob("*.js")
    by_script = {
        name
        for file in scripts
        for name in re.findall(r"""setProperty\(\s*["'](--[\w-]+)["']""", file.read_text("utf-8"))
    }
    given = set(re.findall(r"(--[\w-]+):", TOKENS))
    for file in CSS.rglob("*.css"):
        text = file.read_text("utf-8")
        own = set(re.findall(r"(--[\w-]+):", text))
        used = set(re.findall(r"var\((--[\w-]+)\)", text))
        assert used - given - own - by_script == set(), file.name
