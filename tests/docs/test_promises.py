"""The page of guarantees names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_promise_names_an_existing_test() -> None:
    page = (ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
    tests = set(
        re.findall(r"^def (test_\w+)", "\n".join(p.read_text() for p in ROOT.glob("tests/**/test_*.py")), re.MULTILINE)
    )
    rows = re.findall(r"^\| (?!guarantee |---)(.*) \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 20
    for promise, held in rows:
        named = re.findall(r"`(test_\w+)`", held)
        assert named, promise
        assert set(named) <= tests, promise
