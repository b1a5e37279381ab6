"""Stamps in several columns, and comments above a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.data.column_names import USUAL
from femts.data.columns import stamp_parts
from femts.data.loading import load_dataset
from femts.errors import UsageError

QUARTERS = pd.date_range("1959-01-01", periods=60, freq="QS")
HOURS = pd.date_range("2010-12-30", periods=90, freq="h")


def quarters() -> pd.DataFrame:
    return pd.DataFrame({"Year": QUARTERS.year.astype(float), "quarter": QUARTERS.quarter, "gdp": np.arange(60.0) ** 2})


def test_a_year_and_its_quarter_are_one_stamp_in_a_file_and_in_a_frame(tmp_path: Path) -> None:
    quarters().to_csv(tmp_path / "macro.csv", index=False)
    for source in (tmp_path / "macro.csv", quarters()):
        data = load_dataset(source)
        assert (data.freq, data.columns, data.season) == ("QS-JAN", ("gdp",), 4)
        assert data.dates is not None and data.dates.equals(QUARTERS)
        assert data.notes[0] == "columns 'Year' and 'quarter' are taken together for the stamps"


def test_a_forecast_and_a_backtest_read_them_as_the_training_did() -> None:
    table = quarters()
    before = table.copy()
    made = femts.train(table, "ridge", 4, seq_len=8)
    assert str(made.predict(table)["date"].iloc[0].date()) == "1974-01-01"
    assert len(femts.backtest(made, table, femts.Cutoffs(2, 4))) == 8
    pd.testing.assert_frame_equal(table, before)


def test_days_and_hours_are_joined_too() -> None:
    parts = {name: getattr(HOURS, name) for name in ("year", "month", "day", "hour")}
    data = load_dataset(pd.DataFrame({"No": np.arange(90.0), **parts, "pm": np.sin(np.arange(90.0))}))
    assert data.dates is not None and data.dates.equals(HOURS) and data.columns == ("No", "pm")
    days = {name: HOURS[::24].__getattribute__(name) for name in ("year", "month", "day")}
    assert stamp_parts(pd.DataFrame(days), USUAL) == ["year", "month", "day"]


DAY_AND_CLOCK: dict[str, tuple[str, str, str, str]] = {
    "as a rule": ("date", "%Y-%m-%d", "time", "%H:%M"),
    "of an export": ("Date", "%m/%d/%Y", "Time", "%I:%M %p"),
    "of a meter": ("Datum", "%d.%m.%Y", "Uhrzeit", "%H:%M:%S"),
    "digits": ("date", "%Y%m%d", "time", "%H:%M"),
    "a midnight": ("Date", "%Y-%m-%d 00:00:00", "Time", "%H:%M"),
}


@pytest.mark.parametrize("name", DAY_AND_CLOCK)
def test_a_date_beside_a_time_of_day_is_one_stamp(name: str, tmp_path: Path) -> None:
    hours = pd.date_range("2024-01-30", periods=480, freq="h")
    date, days, time, clock = DAY_AND_CLOCK[name]
    table = pd.DataFrame({date: hours.strftime(days), time: hours.strftime(clock), "load": np.sin(np.arange(480.0))})
    table.to_csv(tmp_path / "mine.csv", index=False)
    for source in (tmp_path / "mine.csv", table):
        data = load_dataset(source)
        assert (data.freq, data.columns) == ("h", ("load",)) and data.dates is not None and data.dates.equals(hours)
        assert data.notes[0] == f"columns '{date}' and '{time}' are taken together for the stamps"
    made = femts.train(tmp_path / "mine.csv", "naive", 4, seq_len=8)
    assert made.predict(table)["date"].iloc[0] == hours[-1] + pd.Timedelta("1h")
    made.save(tmp_path / "run")
    assert main([*map(str, ("predict", tmp_path / "run", tmp_path / "mine.csv", "-o", tmp_path / "ahead.csv"))]) == 0
    assert pd.read_csv(tmp_path / "ahead.csv", parse_dates=["date"])["date"].equals(made.predict(table)["date"])


def test_cells_of_dates_and_of_times_and_those_of_a_panel() -> None:
    hours = pd.date_range("2024-01-30", periods=96, freq="h")
    cells = pd.DataFrame({"Date": hours.normalize(), "Time": hours.time, "load": np.arange(96.0)})
    data = load_dataset(cells)
    assert data.dates is not None and data.dates.equals(hours)
    shops = pd.concat([cells.assign(shop=shop) for shop in ("a", "b")])
    panel = femts.load_panel(shops)
    assert list(panel.series) == ["a", "b"] and panel.freq == "h"
    assert len(femts.train(panel, "naive", 4, seq_len=8).predict(shops)) == 8


@pytest.mark.parametrize(
    "changes",
    [{"time": "soon"}, {"time": 5}, {"date": "2024-01-30 05:00"}, {"date": "then"}, {"ds": 1}, {"Date": 1}],
)
def test_a_date_beside_another_thing_stays(changes: dict[str, object]) -> None:
    table = pd.DataFrame({"date": ["2024-01-30"] * 3, "time": ["01:00", "2:00", "03:00"], "load": 1.0})
    assert stamp_parts(table, USUAL) == ["date", "time"]
    assert stamp_parts(table.assign(**changes), USUAL) == []


def test_times_of_day_are_no_names_of_series() -> None:
    hours = pd.date_range("2024-01-30", periods=96, freq="h")
    table = pd.DataFrame({"day": hours.strftime("%Y-%m-%d"), "clock": hours.strftime("%H:%M"), "load": 1.0})
    with pytest.raises(UsageError, match="has the text '00:00' in column 'clock'"):
        load_dataset(table)


@pytest.mark.parametrize(
    "changes",
    [
        {"quarter": 5},
        {"quarter": 1.5},
        {"Year": 12},
        {"Year": "then"},
        {"quarter": None},
        {"date": QUARTERS},
    ],
)
def test_columns_that_are_no_stamps_stay(changes: dict[str, object]) -> None:
    assert stamp_parts(quarters().assign(**changes), USUAL) == []


def test_comments_above_the_header_are_passed_over(tmp_path: Path) -> None:
    rows = "".join(f"2020-01-{day:02d};{day},5;{day % 3}\n" for day in range(1, 32))
    text = f"# from somewhere\n# a, b; c\ndate;x;y\n{rows}"
    (tmp_path / "a.csv").write_text(text)
    data = load_dataset(tmp_path / "a.csv")
    assert data.columns == ("x", "y") and data.values[0].tolist() == [1.5, 1]
    (tmp_path / "b.csv").write_text(text.replace("# from somewhere\n# a, b; c\ndate", "#date"))
    assert load_dataset(tmp_path / "b.csv", columns={"time": "#date"}).columns == ("x", "y")
    (tmp_path / "c.csv").write_text("# nothing\n# at all\n")
    with pytest.raises(UsageError, match=r"c\.csv"):
        load_dataset(tmp_path / "c.csv")


@pytest.mark.parametrize("name", ["date", "first"])
def test_stamps_of_thousands_of_digits_are_refused(name: str) -> None:
    table = pd.DataFrame({name: pd.Series([10**5000] * 30, dtype=object), "x": np.arange(30.0)})
    with pytest.raises(UsageError, match=r"about 5001 digits|has no 'date' column"):
        load_dataset(table)
    assert stamp_parts(pd.DataFrame({"year": pd.Series([10**5000] * 3, dtype=object), "month": [1] * 3}), USUAL) == []
