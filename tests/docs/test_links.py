"""Links between pages."""

from __future__ import annotations

import re
from pathlib import Path

from pages import ROOT

PAGES = sorted({page for form in ("*.md", "docs/**/*.md", "datasets/*.md", "results/*.md") for page in ROOT.glob(form)})
START = ROOT / "docs" / "index.md"


def _links(page: Path) -> list[tuple[str, str]]:
    """Targets and anchors of local links outside code."""
    text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]*)#?([^)]*)\)", text)
    return [(target, heading) for target, heading in links if "://" not in target]


def _targets(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target, _ in _links(page) if target}


def _anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in plain}


def test_links_resolve() -> None:
    for page in PAGES:
        for target, heading in _links(page):
            aim = (page.parent / target).resolve() if target else page
            assert aim.exists(), f"{page}: {target}"
            assert not heading or heading in _anchors(aim), f"{page}: {target}#{heading}"


def test_files_of_code_exist() -> None:
    folders = ROOT, ROOT / "femts"  # CONTRIBUTING.md names files relative to the package
    for page in PAGES:
        for name in re.findall(r"`(\w+/[\w/]+\.py)`", page.read_text(encoding="utf-8")):
            assert any((folder / name).is_file() for folder in folders), f"{page}: {name}"


def test_every_page_is_linked_from_the_start_page() -> None:
    assert START in _targets(ROOT / "README.md")
    reference = ROOT / "docs" / "reference" / "index.md"
    assert {*ROOT.glob("docs/**/*.md")} - {START} <= _targets(START) | _targets(reference)
    assert reference in _targets(START)
