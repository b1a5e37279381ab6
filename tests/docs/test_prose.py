"""Prose is wrapped at 100 columns; code, tables, headings, pictures and commands on a line of their
own are not prose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = [page for page in ROOT.glob("docs/**/*.md") if "reference" not in page.parts]  # that is made of docstrings
PAGES = sorted({*ROOT.glob("*.md"), *DOCS, *ROOT.glob("datasets/*.md"), *ROOT.glob("results/*.md")})
WIDTH = 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page: Path) -> None:
    text = re.sub(r"^\s*```.*?^\s*```$", lambda found: "\n" * found[0].count("\n"), page.read_text(), flags=re.M | re.S)
    long = [
        f"line {number}: {len(line)} columns"
        for number, line in enumerate(text.split("\n"), 1)
        if len(line) > WIDTH
        and not line.lstrip().startswith(("|", "#", "!", "<"))
        and " " in _without_units(line).strip()
    ]
    assert long == []


def _without_units(line: str) -> str:
    """The line without what cannot be broken: code spans and links."""
    return re.sub(r"`[^`]+`[.,;:]?|\[[^\]]*\]\([^)]*\)[.,;:]?", "", line)
