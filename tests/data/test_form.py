"""Tables under the user's own names, wide and long, as CSV and as Parquet, dated and counted: in and out alike."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_cases import wide

import femts
from femts.cli import main
from femts.data.column_names import ColumnNames
from femts.data.loading import load_dataset
from femts.data.read import read_table, write_table
from femts.errors import UsageError

NAMES = {"time": "when", "series": "shop", "value": "sales"}
QUICK: dict[str, Any] = {"seq_len": 6, "pred_len": 3, "device": "cpu"}


def own_wide() -> pd.DataFrame:
    return wide(60).rename(columns={"date": "when"})


def own_long() -> pd.DataFrame:
    return own_wide().melt(id_vars="when", var_name="shop", value_name="sales")


@pytest.mark.parametrize("table", [own_wide(), own_long()], ids=["wide", "long"])
def test_own_names_are_known_and_kept(table: pd.DataFrame, tmp_path: Path) -> None:
    data = load_dataset(table, columns=NAMES)
    assert data.columns == ("a", "b")
    np.testing.assert_array_equal(data.values, load_dataset(wide(60)).values)
    femts.train(data, "naive", out=tmp_path / "run", **QUICK)
    forecast = femts.load(tmp_path / "run").predict(table)
    assert list(forecast.columns) == list(table.columns)
    assert forecast["when"].iloc[0] == pd.Timestamp("2024-01-03 12:00:00")
    if "shop" in table:
        assert forecast["shop"].tolist() == ["a"] * 3 + ["b"] * 3
        assert forecast["sales"].tolist() == pytest.approx([wide(60)["a"].iloc[-1]] * 3 + [wide(60)["b"].iloc[-1]] * 3)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"when": "x"}, "Unknown kind of column 'when'"),
        ({"time": "y"}, "Column 'y' cannot be two of time, series and value"),
    ],
)
def test_names_that_cannot_be_are_refused(names: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ColumnNames.of(names)


def test_a_second_column_of_dates_is_refused() -> None:
    with pytest.raises(UsageError, match="has a column 'date' beside its time stamps in 'when'; rename or drop it"):
        load_dataset(own_wide().assign(date=1.0), columns={"time": "when"})


@pytest.mark.parametrize(("step", "first"), [(1, 0), (5, -20)])
def test_time_may_be_counted(step: int, first: int, tmp_path: Path) -> None:
    table = wide(60).assign(date=first + step * np.arange(60))
    data = load_dataset(table)
    assert (data.freq, data.season) == (str(step), 1)
    trained = femts.train(data, "naive", **QUICK)
    assert trained.predict(table)["date"].tolist() == [first + step * n for n in (60, 61, 62)]
    write_table(table, tmp_path / "counted.csv")  # as text, too
    assert load_dataset(tmp_path / "counted.csv").freq == str(step)
    skipped = load_dataset(table.drop(index=[7, 8]))
    assert skipped.observed is not None and np.flatnonzero((~skipped.observed).any(1)).tolist() == [7, 8]
    with pytest.raises(UsageError, match=rf"step '{step}' of the training data"):
        trained.predict(wide(60))
    with pytest.raises(UsageError, match="no even step"):
        load_dataset(table.assign(date=np.arange(60) ** 2))


def test_parquet_is_read_and_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = write_table(own_long(), tmp_path / "mine.parquet")
    pd.testing.assert_frame_equal(read_table(path), own_long())
    assert not list(tmp_path.glob(".*"))
    columns = ["--columns", "time=when,series=shop,value=sales"]
    lengths = ["--seq-len", "6", "--pred-len", "3", "--multivariate"]
    run, out = str(tmp_path / "run"), tmp_path / "out.parquet"
    assert (
        main(["train", "--dataset", str(path), "--model", "naive", "--out", run, *lengths, *columns, "--multivariate"])
        == 0
    )
    assert main(["predict", run, str(path), "-o", str(out), "--plot", str(tmp_path / "out.png")]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out), femts.load(run).predict(own_long()))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(UsageError, match=r"broken\.parquet cannot be read as Parquet"):
        read_table(tmp_path / "broken.parquet")


def test_without_pyarrow_parquet_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"needs pyarrow, which is not installed; run pip install pyarrow"):
        read_table(tmp_path / "mine.parquet")


def test_a_time_zone_is_kept() -> None:
    table = wide(60).assign(date=lambda f: f["date"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    trained = femts.train(table, "naive", **QUICK)
    assert str(trained.predict(table)["date"].iloc[0]) == "2024-01-03 13:00:00+01:00"
