"""The labs: one small folder each, and the register that navigation and home page read.

A new lab is a folder with `lab.py` (this register's entry), `urls.py`, `views.py`, `presets.py`
and `docs/`. Nothing else has to be told about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from django.utils.functional import Promise


@dataclass(frozen=True)
class Lab:
    """One card on the home page and one entry in the navigation.

    `slug` is the lab's name in every tree (`/labs/<slug>`, `compute/<slug>`, `labs/<slug>.js`).
    `title`, `summary` and `action` are lazy translations. `order` sorts the navigation.
    """

    slug: str
    title: str | Promise
    summary: str | Promise
    action: str | Promise
    order: int = 100
    kinds: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"/labs/{self.slug}"

    @property
    def app(self) -> str:
        return f"playground.labs.{self.slug}"


@cache
def all() -> tuple[Lab, ...]:
    """Every lab that works, in the order of the navigation.

    A folder without `lab.py` is not a lab yet and gets no card.
    """
    found: list[Lab] = []
    for module in iter_modules(__path__):
        entry = f"{__name__}.{module.name}.lab"
        if module.ispkg and find_spec(entry) is not None:
            found.append(import_module(entry).LAB)
    return tuple(sorted(found, key=lambda lab: (lab.order, lab.slug)))


def get(slug: str) -> Lab:
    """The lab with this slug. Raises KeyError."""
    for lab in all():
        if lab.slug == slug:
            return lab
    raise KeyError(slug)
