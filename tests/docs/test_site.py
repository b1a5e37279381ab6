"""`mkdocs build --strict` makes a site of docs/ without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT

pytest.importorskip("mkdocs", reason="the site needs mkdocs, of pip install '.[dev]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    return folder


def test_every_page_of_docs_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / (path.parent if path.name == "index" else path) / "index.html").is_file(), path


def test_links_between_pages_and_out_of_docs_lead_to_pages_of_the_site(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    links = set(re.findall(r'href="([\w./-]+)"', start))
    assert {"how-to/own-data/", "results/", "results/pairs/", "CONTRIBUTING/", "reference/"} <= links
    for link in links:
        assert (site / link).exists(), link
