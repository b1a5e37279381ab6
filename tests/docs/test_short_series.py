"""docs/short-measured.md says what the rows of results/short say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pandas as pd

from femts.config.model import AUTO

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_of_the_page_are_what_the_rows_say() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "short_series.py"))
    page = (ROOT / "docs" / "short-measured.md").read_text()
    emptied = re.sub(r"^\|.*\n", "", page, flags=re.MULTILINE)
    assert emptied != page and script["rewritten"](emptied) == page, "run scripts/short_series.py --page"
    assert len(re.findall(r"^\|", page, re.MULTILINE)) >= len(script["SERIES"]) + 2


def test_every_series_has_a_row_with_scores_and_coverage() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "short_series.py"))
    names = [series.name for series in script["SERIES"]]
    for model in (AUTO, script["NAIVE"]):
        rows = pd.read_csv(ROOT / "results" / "short" / f"{model}.csv")
        assert list(rows["series"]) == names and rows.notna().all(axis=None)
        assert rows["coverage_80"].between(0, 1).all() and (rows["coverage_80"] <= rows["coverage_95"]).all()
