"""Numbers that stand for a time, read as it or refused, and marks that could stand between thousands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.data.stamps import read_dates
from femts.errors import UsageError

HOURS = pd.date_range("2024-01-30", periods=400, freq="h")
QUARTER_HOURS = pd.date_range("2024-01-02", periods=960, freq="15min")
DAYS = pd.date_range("2021-10-01", periods=500, freq="D")
WEEKS = pd.date_range("2018-01-01", periods=262, freq="W-MON")
QUARTERS = pd.date_range("2000-01-01", periods=60, freq="QS")
MONTHS = pd.date_range("2018-01-01", periods=60, freq="MS")
SECONDS = HOURS.as_unit("s").asi8
OFFICE = DAYS[DAYS.dayofweek < 5]
FIRST = pd.Timestamp("1899-12-30")  # day 0 of a spreadsheet
STAMPS: dict[str, tuple[pd.DatetimeIndex, Any, str]] = {
    "weeks": (WEEKS, [year * 100 + week for year, week, _ in map(pd.Timestamp.isocalendar, WEEKS)], "ISO weeks"),
    "weeks of one year": (WEEKS[:52], range(201801, 201853), "ISO weeks"),
    "quarters": (QUARTERS, QUARTERS.year * 10 + QUARTERS.quarter, "quarters"),
    "days of a year": (DAYS, DAYS.strftime("%Y%j").astype(int), "days of a year"),
    "seconds": (HOURS, SECONDS, "Unix seconds in UTC"),
    "seconds as fractions": (HOURS, SECONDS.astype(float), "Unix seconds in UTC"),
    "half seconds": (HOURS + pd.Timedelta("500ms"), SECONDS + 0.5, "Unix seconds in UTC"),
    "milliseconds": (HOURS, SECONDS * 10**3, "Unix milliseconds in UTC"),
    "microseconds": (HOURS, SECONDS * 10**6, "Unix microseconds in UTC"),
    "nanoseconds": (HOURS, SECONDS * 10**9, "Unix nanoseconds in UTC"),
    "days of a spreadsheet": (DAYS, (DAYS - FIRST).days, "day numbers of a spreadsheet"),
    "business days of a spreadsheet": (OFFICE, (OFFICE - FIRST).days, "day numbers of a spreadsheet"),
    "months of a spreadsheet": (MONTHS, (MONTHS - FIRST).days, "day numbers of a spreadsheet"),
    "hours of a spreadsheet": (HOURS, (HOURS - FIRST) / pd.Timedelta("1D"), "day numbers of a spreadsheet"),
}


@pytest.mark.parametrize("name", STAMPS)
@pytest.mark.filterwarnings("ignore::femts.errors.AgeWarning")
def test_numbers_of_times_are_read_alike_in_training_and_later(name: str, tmp_path: Path) -> None:
    times, numbers, kind = STAMPS[name]
    table = pd.DataFrame({"date": list(numbers), "x": np.sin(np.arange(len(times)))})
    table.to_csv(tmp_path / "mine.csv", index=False)
    for source in (table, tmp_path / "mine.csv", table.astype({"date": str})):
        data = femts.load_dataset(source)
        assert data.dates is not None and data.dates.equals(times) and data.freq == times.inferred_freq
        assert sum(f"its stamps are read as {kind} (" in note for note in data.notes) == 1
    long = pd.concat([table.assign(shop=shop) for shop in ("a", "b")])
    panel = femts.load_panel(long, columns={"time": "date", "series": "shop", "value": "x"})
    assert panel.freq == data.freq and any(kind in note for note in panel.notes)
    made = femts.train(table, "naive", 4, seq_len=8)
    ahead = made.predict(table)["date"]
    assert pd.DatetimeIndex(ahead).equals(pd.date_range(times[-1], periods=5, freq=times.inferred_freq)[1:])
    assert made.predict(table.tail(8))["date"].equals(ahead)  # eight weeks of one year could be months
    made.save(tmp_path / "run")
    assert main([*map(str, ("predict", tmp_path / "run", tmp_path / "mine.csv", "-o", tmp_path / "ahead.csv"))]) == 0
    assert pd.to_datetime(pd.read_csv(tmp_path / "ahead.csv")["date"]).tolist() == ahead.tolist()


CODES: dict[str, Any] = {
    "half-years": [year * 10 + half for year in range(2000, 2020) for half in (1, 2)],
    "thirds of a year": [year * 10 + third for year in range(2000, 2020) for third in (1, 2, 3)],
    "days of short years": DAYS.strftime("%y%j").astype(int),
    "days of two short years": pd.date_range("2021-01-01", "2022-12-31").strftime("%y%j").astype(int),
    "weeks of short years": [year * 100 + week for year in (18, 19, 20) for week in range(1, 53)],
    "months of short years": MONTHS.strftime("%y%m").astype(int),
    "short dates": DAYS.strftime("%y%m%d").astype(int),
    "day first": DAYS.strftime("%d%m%Y").astype(int),
    "clocks": QUARTER_HOURS.strftime("%H%M").astype(int)[:96],
    "clocks of many days": QUARTER_HOURS.strftime("%H%M").astype(int),
    "clocks with seconds": pd.date_range("2024-01-30", periods=500, freq="10s").strftime("%H%M%S").astype(int),
    "day and hour": QUARTER_HOURS[::4].strftime("%d%H").astype(int),
    "short dates with a clock": HOURS.strftime("%y%m%d%H%M").astype(int),
}


@pytest.mark.parametrize("name", CODES)
def test_other_codes_are_no_counts_and_have_a_remedy(name: str) -> None:
    table = pd.DataFrame({"date": list(CODES[name]), "x": np.arange(float(len(CODES[name])))})
    with pytest.raises(UsageError, match=r"jump again and again to just past a round one, .* number the steps from 0"):
        femts.load_dataset(table)
    assert femts.load_dataset(table.assign(date=range(len(table)))).freq == "1"
    with pytest.raises(UsageError, match=r"has '201853' at data row 53 .* write the first day"):
        femts.load_dataset(pd.DataFrame({"date": range(201801, 201854), "x": 1.0}))


@pytest.mark.parametrize(
    "numbers",
    [
        range(300),
        range(0, 4500, 15),
        range(-100, 200),
        range(60000, 60300),
        range(40000, 43000, 10),
        np.flatnonzero(np.random.default_rng(0).random(2000) < 0.7),
        [*range(300), *range(1000, 1300)],
        [day * 24 + hour for day in range(60) for hour in range(7, 23)],
        range(200101, 200132),
    ],
)
def test_counts_stay_counts(numbers: Any) -> None:
    assert read_dates(pd.Series(list(numbers))).tolist() == list(numbers)


@pytest.mark.parametrize("how", ["%d/%m/%y", "%m/%d/%y", "%y/%m/%d", "%d-%m-%y %H:%M", "%y.%m.%d", "%d.%m.%y"])
def test_years_of_two_digits_are_read_by_what_fits_every_row(how: str) -> None:
    days = DAYS[:90]
    assert pd.DatetimeIndex(read_dates(pd.Series(days.strftime(how)))).equals(days)
    plain = pd.Series([f"{day.day}/{day.month}/{day:%y}" for day in days])
    assert pd.DatetimeIndex(read_dates(plain)).equals(days)
    with pytest.raises(UsageError, match="'01/07/20' whose day could be the month or the year"):
        read_dates(pd.Series(["01/07/20", "02/07/20", "03/07/20"]))


def _table(cells: list[str], separator: str) -> str:
    rows = (f"{day:%d.%m.%Y}{separator}{cells[k % len(cells)]}\n" for k, day in enumerate(DAYS[:40]))
    return f"Datum{separator}Wert\n" + "".join(rows)


@pytest.mark.parametrize(
    ("cells", "separator", "row"),
    [
        (["1.027", "960"], ";", 1),
        (["960", "-1.027"], "\t", 2),
        (["1.027", "960"], ",", 1),
        (["1,027", "960"], ";", 1),
        (["", "1.027", "5"], "|", 2),
        ([*["960"] * 39, "1.027"], ";", 40),
    ],
)
def test_marks_that_could_stand_between_thousands_are_refused_by_row(
    cells: list[str], separator: str, row: int, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(_table(cells, separator))
    with pytest.raises(UsageError, match=rf"in column 'Wert' at data row {row} beside '\d+', .* between thousands"):
        femts.load_dataset(path)
    remedy = [cell.replace(".", "").replace(",", "") for cell in cells]
    path.write_text(_table(remedy, separator))
    assert np.nanmax(np.abs(femts.load_dataset(path).values)) == 1027


@pytest.mark.parametrize(
    "cells", [["1.027", "0.960"], ["1.5", "3", "1.125"], ["1.027", "960", "1027"], ["1.027", "1.034"], ["1.027", "0"]]
)
def test_decimals_stay_decimals(cells: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(_table(cells, ";"))
    texts = pd.DataFrame({"date": DAYS[:40], "x": [cells[k % len(cells)] for k in range(40)]})
    for source in (tmp_path / "mine.csv", texts):
        assert femts.load_dataset(source).values[: len(cells), 0].tolist() == [float(cell) for cell in cells]


def test_text_in_frames_is_held_to_the_same() -> None:
    table = pd.DataFrame(
        {"ds": [*DAYS[:40]] * 2, "unique_id": ["a"] * 40 + ["b"] * 40, "y": ["1.027"] * 40 + ["5"] * 40}
    )
    wide = pd.DataFrame({"date": DAYS[:40], "y": ["1.027", "960"] * 20})
    for each in (wide, wide.astype("category").assign(date=DAYS[:40])):
        with pytest.raises(UsageError, match=r"has '1\.027' in column 'y' at data row 1 beside '960'"):
            femts.load_dataset(each)
    for load in (femts.load_panel, femts.load_dataset):
        with pytest.raises(UsageError, match=r"has '1\.027' in column 'y' at data row 1 beside '5'"):
            load(table)
    numbers = wide.assign(y=pd.Series([1.027, 960] * 20, dtype=object))
    assert femts.load_dataset(numbers).values[:2, 0].tolist() == [1.027, 960]


def test_a_year_beside_a_week() -> None:
    parts = [pd.Timestamp.isocalendar(week) for week in WEEKS]
    table = pd.DataFrame({"Year": [p.year for p in parts], "week": [p.week for p in parts], "x": np.arange(262.0)})
    data = femts.load_dataset(table.assign(month=1))
    assert data.dates is not None and data.dates.equals(WEEKS) and data.columns == ("x", "month")
    with pytest.raises(UsageError, match="has '2018-W00' where data row 1 should have a date"):
        femts.load_dataset(table.assign(week=table["week"] - 1))


REFUSED: dict[str, tuple[pd.DataFrame, str]] = {
    "no dates": (
        pd.DataFrame({"gas": np.sin(np.arange(60.0)), "co2": np.cos(np.arange(60.0))}),
        "number them from 0 in a column 'date'",
    ),
    "series in rows": (
        pd.DataFrame([["a", *range(60)], ["b", *range(9, 69)]]).rename(columns=lambda k: f"V{k}"),
        r"table\.set_index\('V0'\)\.T\.reset_index\(drop=True\)\.rename_axis\('date'\)",
    ),
    "one key": (
        pd.DataFrame({"day": [*DAYS[:60]] * 2, "shop": ["a"] * 60 + ["b"] * 60, "x": 1.0, "price": 2.0}),
        "--columns 'time=day,series=shop' --target 'x'",
    ),
    "two keys": (
        pd.DataFrame({"day": [*DAYS[:60]] * 2, "shop": ["a"] * 60 + ["b"] * 60, "kind": "c", "x": 1.0}),
        "put one column NAME in their place that joins them.* 'time=day,series=NAME' --target 'x'",
    ),
    "dates besides": (
        pd.DataFrame({"date": DAYS[:60], "x": np.arange(60.0), "again": DAYS[:60].strftime("%Y-%m-%d")}),
        "in column 'again' at data row 1; leave the column out, or name those to forecast.*--target 'x'",
    ),
}


def _followed(name: str, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table, and how it is read, once the remedy of its refusal is followed."""
    if name == "no dates":
        return table.assign(date=range(len(table))), {}
    if name == "series in rows":
        return table.set_index("V0").T.reset_index(drop=True).rename_axis("date"), {}
    if name == "dates besides":
        return table, {"target": ["x"]}
    if name == "two keys":
        table = table.assign(NAME=table["shop"] + table["kind"]).drop(columns=["shop", "kind"])
    named = {"time": "day", "series": "NAME" if name == "two keys" else "shop"}
    return table, {"columns": named, "target": ["x"]}


@pytest.mark.parametrize("name", REFUSED)
def test_a_remedy_works_when_it_is_followed(name: str) -> None:
    table, words = REFUSED[name]
    with pytest.raises(UsageError, match=words):
        femts.load_dataset(table)
    table, reading = _followed(name, table)
    data = femts.load_panel(table, **reading) if "columns" in reading else femts.load_dataset(table, **reading)
    assert data.rows == 60
