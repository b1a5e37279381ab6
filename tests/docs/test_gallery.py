"""The reports of the gallery match the output of their script."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

GALLERY = ROOT / "docs" / "gallery"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "gallery.py"))


def test_reports_are_listed_and_small(script: dict[str, Any]) -> None:
    index = (GALLERY / "index.md").read_text(encoding="utf-8")
    assert {f"{name}.html" for name in script["REPORTS"]} == {path.name for path in GALLERY.glob("*.html")}
    for name in script["REPORTS"]:
        page = GALLERY / f"{name}.html"
        assert f"]({name}.html)" in index
        assert page.stat().st_size < 400_000
        assert str(ROOT) not in page.read_text(encoding="utf-8")


def test_report_sections_match_the_committed_page(script: dict[str, Any], tmp_path: Path) -> None:
    written = script["write_report"]("load", tmp_path / "new")
    assert _headings(written) == _headings(GALLERY / "load.html")


def _headings(page: Path) -> list[str]:
    headings = re.findall(r"<h[1-3][^>]*>(.*?)</h[1-3]>", page.read_text(encoding="utf-8"), re.DOTALL)
    assert headings
    return headings
