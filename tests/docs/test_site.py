"""`mkdocs build --strict` succeeds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS
from pages import ROOT

import femts

pytest.importorskip("mkdocstrings", reason="the site needs mkdocs and mkdocstrings; install '.[dev]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    return folder


def test_every_page_is_built(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / path).is_file(), path


def test_start_page_links_resolve(site: Path) -> None:
    start = (site / "index.html").read_text(encoding="utf-8")
    links = set(re.findall(r'href="([\w./-]+)"', start))
    assert {"how-to/own-data.html", "results/index.html", "CONTRIBUTING.html", "reference/index.html"} <= links
    for link in links:
        assert (site / link).exists(), link


def test_reference_lists_every_public_name_and_command(site: Path) -> None:
    pages = "".join((site / "reference" / f"{page}.html").read_text() for page in ("python", "layer", "extend"))
    assert {f"femts.{name}" for name in femts.__all__} - {"femts.__version__"} <= set(
        re.findall(r'id="([\w.]+)"', pages)
    )
    commands = (site / "reference" / "commands.html").read_text()
    assert {f"femts-{name.replace(' ', '-')}" for name in COMMANDS} <= set(re.findall(r'id="([\w-]+)"', commands))
