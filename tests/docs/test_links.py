"""Links lead somewhere, and every page is two clicks from the README."""

from __future__ import annotations

import re
from pathlib import Path

from pages import ROOT

PAGES = sorted({page for form in ("*.md", "docs/**/*.md", "datasets/*.md", "results/*.md") for page in ROOT.glob(form)})
START = ROOT / "docs" / "index.md"


def _links(page: Path) -> list[tuple[str, str]]:
    """Targets and headings of the links of a page; code has none, and neither do pages of the web count."""
    text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]*)#?([^)]*)\)", text)
    return [(target, heading) for target, heading in links if "://" not in target]


def _targets(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target, _ in _links(page) if target}


def _anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page; a link in one counts by its words."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in plain}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target, heading in _links(page):
            aim = (page.parent / target).resolve() if target else page
            assert aim.exists(), f"{page}: {target}"
            assert not heading or heading in _anchors(aim), f"{page}: {target}#{heading}"


def test_links_in_code_are_ignored_and_anchors_are_parsed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n`[x](y.md)` [two\nlines](z.md#a-b-c) [web](https://a.b/c)\n```\n[x](y.md)\n```\n")
    assert _links(page) == [("z.md", "a-b-c")]
    assert _anchors(page) == {"a-b-c"}


def test_the_readme_leads_to_the_start_and_the_start_to_every_page() -> None:
    assert START in _targets(ROOT / "README.md")
    reference = ROOT / "docs" / "reference" / "index.md"
    assert {*ROOT.glob("docs/**/*.md")} - {START} <= _targets(START) | _targets(reference)
    assert reference in _targets(START)


def test_three_readers_find_their_first_page_in_the_list_that_the_start_begins_with() -> None:
    first = START.read_text(encoding="utf-8").split("\n## ")[0]
    readers = [part for part in first.split("\n- ") if part.startswith("**You have")]
    pages = ("how-to/own-data.md", "how-to/compare.md", "../CONTRIBUTING.md")
    assert [f"]({page})" in reader for reader, page in zip(readers, pages, strict=True)] == [True] * 3
