"""The register of labs: what navigation, home page and addresses are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import resolve

from compute.core import kinds
from playground import labs

ROOT = Path(labs.__file__).parents[2]


@pytest.mark.parametrize("lab", labs.all(), ids=lambda lab: lab.slug)
def test_a_lab_has_its_room_in_every_tree(lab: labs.Lab) -> None:
    assert resolve(lab.url).app_names == [lab.slug]
    assert (ROOT / f"templates/labs/{lab.slug}.html").is_file()
    assert (ROOT / f"static/js/labs/{lab.slug}.js").is_file()
    assert (ROOT / "compute" / lab.slug).is_dir()
    docs = {path.name for path in (ROOT / f"playground/labs/{lab.slug}/docs").iterdir()}
    for name in docs:
        stem = name.split(".")[0]
        assert {f"{stem}.en.md", f"{stem}.zh-hans.md"} <= docs


@pytest.mark.parametrize("lab", labs.all(), ids=lambda lab: lab.slug)
def test_a_labs_kinds_exist(lab: labs.Lab) -> None:
    assert lab.kinds
    for name in lab.kinds:
        assert kinds.get(name).name == name


def test_an_unknown_lab_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="alchemy"):
        labs.get("alchemy")
