"""Pages for readers are in plain words: short sentences, and no wall of more than six lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT

DOCS = ROOT / "docs"
FOLDERS = ("how-to", "explanation", "measured", "gallery")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    DOCS / "index.md",
    *(ROOT / page for page in ("datasets/README.md", "results/README.md", "results/pairs.md", "results/trials.md")),
    *sorted(page for folder in FOLDERS for page in DOCS.glob(f"{folder}/*.md")),
]
MOST_WORDS, MOST_LINES = 25, 6

ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)


def _paragraphs(text: str) -> list[str]:
    """Blocks of prose; each item of a list is one."""
    plain = re.sub(r"^```.*?^```", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    plain = re.sub(r"<!--.*?-->", "", plain, flags=re.DOTALL)
    plain = re.sub(r"^(?:#|\||!\[|    |\s*<).*$", "\n", plain, flags=re.MULTILINE)
    return [part.strip("\n") for block in plain.split("\n\n") for part in ITEM.split(block) if part.strip()]


def _sentences(paragraph: str) -> list[str]:
    """Sentences of a paragraph, where a code span and the words of a link count as one word each."""
    plain = re.sub(r"`[^`]*`", "code", paragraph)
    plain = re.sub(r"\]\([^)]*\)", "]", plain).replace("\n", " ")
    return re.split(r"(?<=[.?!:;])\s+", plain)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short_and_there_is_no_wall(page: Path) -> None:
    paragraphs = _paragraphs(page.read_text(encoding="utf-8"))
    assert [each for each in paragraphs if each.count("\n") >= MOST_LINES] == []
    assert [each for part in paragraphs for each in _sentences(part) if len(each.split()) > MOST_WORDS] == []


def test_a_long_sentence_and_a_wall_are_seen() -> None:
    text = "# A\n\none `x y`, [two three](a.md). four\n\n- five\n- six\n```\nseven\n```\n| eight |\n"
    assert _paragraphs(text) == ["one `x y`, [two three](a.md). four", "five", "six"]
    assert _sentences("one `x y`, [two three](a.md).\nfour") == ["one code, [two three].", "four"]
