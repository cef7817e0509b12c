"""Static files that installed wheels carry, served as if they lay in `static/`.

Third-party scripts and fonts are never copied into the tree. The wheels' packages are located
without being imported: plotly's package alone would cost a second and 50 MB.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from django.contrib.staticfiles.finders import BaseFinder
from django.core.checks import CheckMessage, Error
from django.core.files.storage import FileSystemStorage


class WheelFile(NamedTuple):
    """`name` inside `package`'s `folder`, served below the static path `prefix`."""

    package: str
    folder: str
    name: str
    prefix: str

    @property
    def url_path(self) -> str:
        return f"{self.prefix}/{self.name}"

    def directory(self) -> Path | None:
        """The folder of the installed wheel, or None when the package is not installed."""
        spec = find_spec(self.package)
        if spec is None or spec.origin is None:
            return None
        return Path(spec.origin).parent / self.folder


WHEEL_FILES = (
    WheelFile("plotly", "package_data", "plotly.min.js", "vendor"),
    # The sign √ is invisible in MathML without an OpenType math font.
    WheelFile("ziamath", "fonts", "STIXTwoMath-Regular.ttf", "fonts"),
)


class WheelFinder(BaseFinder):
    """Finds the files of `WHEEL_FILES`. Listed in STATICFILES_FINDERS."""

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return [
            Error(
                f"{item.name} is missing: install the package {item.package}.",
                id="web.E001",
            )
            for item in WHEEL_FILES
            if (folder := item.directory()) is None or not (folder / item.name).is_file()
        ]

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        found = [
            str(folder / item.name)
            for item in WHEEL_FILES
            if item.url_path == path and (folder := item.directory()) is not None
        ]
        return found if find_all else (found[0] if found else [])

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        for item in WHEEL_FILES:
            folder = item.directory()
            if folder is None:
                continue
            storage = FileSystemStorage(location=str(folder))
            storage.prefix = item.prefix  # type: ignore[attr-defined]  # collectstatic reads it
            yield item.name, storage
