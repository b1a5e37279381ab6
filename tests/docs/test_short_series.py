"""Tables of short series match the result rows."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest

import femts
from femts.config.model import AUTO

ROOT = Path(__file__).resolve().parents[2]


def test_page_tables_match_the_result_rows() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "short_series.py"))
    page = (ROOT / "docs" / "measured" / "short-series.md").read_text()
    panels = runpy.run_path(str(ROOT / "scripts" / "short_panels.py"))
    emptied = re.sub(r"^\|.*\n", "", page, flags=re.MULTILINE)
    again = panels["rewritten"](script["rewritten"](emptied))
    assert emptied != page and again == page, "run scripts/short_series.py --page and short_panels.py --page"
    assert len(re.findall(r"^\|", page, re.MULTILINE)) >= len(script["SERIES"]) + 2


def test_every_series_has_scores_and_coverage() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "short_series.py"))
    names = [series.name for series in script["SERIES"]]
    for model in (AUTO, script["NAIVE"]):
        rows = pd.read_csv(ROOT / "results" / "short" / f"{model}.csv")
        assert list(rows["series"]) == names and rows.notna().all(axis=None)
        assert rows["coverage_80"].between(0, 1).all() and (rows["coverage_80"] <= rows["coverage_95"]).all()


def test_every_panel_and_subsample_has_every_model() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "short_panels.py"))
    rows = pd.read_csv(script["ROWS"], keep_default_na=False)
    for panel in script["PANELS"]:
        counts = rows[rows["panel"] == panel.name].groupby("series")["model"].apply(set).to_dict()
        assert len(counts) == 3 and max(counts) > 100 and {10, 30} < set(counts)
        assert all(models == set(script["MODELS"]) for models in counts.values())


def test_written_panels_load_as_long_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels", reason="the births come with statsmodels")
    monkeypatch.setattr(sys, "argv", ["short_panels.py", "--panels", "years", "--write", str(tmp_path / "new")])
    runpy.run_path(str(ROOT / "scripts" / "short_panels.py"), run_name="__main__")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["years.csv"]
    data = femts.load_dataset(tmp_path / "new" / "years.csv")
    assert len(data) == 192 and set(data.lengths) == {52}
