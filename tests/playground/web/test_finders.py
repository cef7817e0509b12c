"""Files of installed wheels are static files, and finding them imports no package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.contrib.staticfiles import finders

from playground.web.finders import WHEEL_FILES, WheelFinder


def test_each_file_is_found_under_its_address() -> None:
    for item in WHEEL_FILES:
        found = finders.find(item.url_path)
        assert found and Path(found).is_file()
        assert WheelFinder().find(item.url_path, find_all=True) == [found]
    assert WheelFinder().find("vendor/nothing.js") == []
    assert WheelFinder().check() == []


def test_listed_files_are_exactly_these() -> None:
    listed = {f"{storage.prefix}/{name}" for name, storage in WheelFinder().list(None)}
    assert listed == {"vendor/plotly.min.js", "fonts/STIXTwoMath-Regular.ttf"}


def test_finding_imports_neither_plotly_nor_ziamath() -> None:
    code = (
        "import sys; from playground.web.finders import WHEEL_FILES;"
        "assert all(item.directory() for item in WHEEL_FILES);"
        "sys.exit('plotly' in sys.modules or 'ziamath' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
