"""Columns under any name, and stamps of any kind, taken for what they are where that is clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_cases import wide

import femts
from femts.data.check import check_frame
from femts.data.columns import holds_dates
from femts.data.frequency import future_dates, step_of
from femts.data.loading import load_dataset
from femts.data.stamps import read_dates, read_stamps
from femts.errors import UsageError

QUARTERS = pd.period_range("1955Q3", periods=40, freq="Q")
MONTHS = pd.date_range("1955-07-01", periods=40, freq="MS")
WEEKS = pd.date_range("2009-06-01", periods=60, freq="W-MON")
STAMPS: dict[str, tuple[list[Any], str, int, str]] = {
    **{
        how: ([how.format(y=q.year, q=q.quarter) for q in QUARTERS], "QS-JAN", 4, "1965-07-01")
        for how in ("{y} Q{q}", "{y}Q{q}", "{y}-Q{q}", "{y}q{q}", "Q{q} {y}", "Q{q}/{y}")
    },
    **{
        how: ([how.format(*day.isocalendar()) for day in WEEKS], "W-MON", 52, "2010-07-26")
        for how in ("{}-W{:02d}", "{}W{:02d}", "{}-W{:02d}-1", "{}-W{:02d}-{}")
    },
    **{
        how: (list(MONTHS.strftime(how)), "MS", 12, "1958-11-01")
        for how in ("%Y-%m", "%b %Y", "%B %Y", "%Y %b", "%m/%Y", "%Y/%m", "%YM%m", "%Y%m", "%b-%Y")
    },
    "numbers of months": ([int(text) for text in MONTHS.strftime("%Y%m")], "MS", 12, "1958-11-01"),
    "years": (list(range(1950, 1990)), "YS-JAN", 1, "1990-01-01"),
    "years as text": ([str(year) for year in range(1950, 1990)], "YS-JAN", 1, "1990-01-01"),
    "years as fractions": ([float(year) for year in range(1950, 1990)], "YS-JAN", 1, "1990-01-01"),
    "years as text of fractions": ([f"{year}.0" for year in range(1950, 1990)], "YS-JAN", 1, "1990-01-01"),
    "years of long ago": (list(range(1700, 1990)), "YS-JAN", 1, "1990-01-01"),
    "periods": (list(QUARTERS), "QS-JAN", 4, "1965-07-01"),
}


@pytest.mark.parametrize("name", STAMPS)
def test_stamps_of_every_kind_are_found_and_continued(name: str) -> None:
    stamps, freq, season, following = STAMPS[name]
    data = load_dataset(pd.DataFrame({"When": stamps, "x": np.arange(len(stamps)) * 1.5}))
    assert (data.freq, data.season, data.columns, data.schema.form.time) == (freq, season, ("x",), "When")
    assert data.notes[0] == "column 'When' holds dates, so it is taken for the stamps"
    assert data.dates is not None and str(future_dates(data.dates[-1], freq, 1)[0].date()) == following


@pytest.mark.parametrize(
    ("cells", "dates"),
    [
        (["2024-01-01", "2024-01-02"], True),
        (["01/02/2024", "02/02/2024"], True),  # refused later, by a sentence on day and month
        (["1 May 2024", "2 May 2024"], True),
        (["Monday", "Tuesday"], False),
        (["Store 12", "Store 2020"], False),
        (["12:30", "12:45"], False),
        (["1.5", "2.5"], False),
        (["A-2020", "B-2021"], False),
        ([0, 1, 2], False),
        ([1990, 1991, 1992], True),
        ([1990, 1992, 1991], False),
        ([True, False], False),
        ([None, None], False),
        ([[1], [2]], False),
        (pd.period_range("2024", periods=2, freq="M"), True),
        ([1955.0, 1956.0], True),
        ([1955.0, np.inf], False),
        (["2024-01-01", "soon", "2024-01-03"], True),
    ],
)
def test_dates_are_told_from_other_things(cells: Any, dates: bool) -> None:
    assert holds_dates(pd.Series(cells)) == dates


def test_names_of_series_and_values_are_found_where_they_are_clear() -> None:
    long = wide(60).melt("date", var_name="shop", value_name="sales").rename(columns={"date": "day"})
    data = load_dataset(long[["shop", "day", "sales"]])
    assert data.columns == ("a", "b")
    assert data.schema.form.named() == {"time": "day", "series": "shop", "value": "sales"}
    assert data.notes[1] == "column 'shop' is taken for the names of series, and 'sales' for their values"
    one = wide(60)[["date", "a"]].assign(city="Ulm")
    assert load_dataset(one).columns == ("Ulm",)
    with pytest.raises(UsageError, match="has the text 'Monday' in column 'weekday'"):
        load_dataset(wide(60)[["date", "a"]].assign(weekday=lambda f: f["date"].dt.day_name()))
    with pytest.raises(UsageError, match="has the text 'off' in column 'b' at data row 3"):
        load_dataset(wide(60).astype({"b": object}).assign(b=lambda f: f["b"].where(f.index != 2, "off")))


@pytest.mark.parametrize(
    "table",
    [
        wide(60).rename(columns={"date": "step"}).assign(step=range(60)),
        wide(60)[["a", "date"]].assign(end=lambda f: f["date"]).rename(columns={"date": "begin"}),
    ],
    ids=["counted", "two of dates"],
)
def test_what_is_not_clear_is_asked_for(table: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match=r"has no 'date' column \(.*or say which it is \(--columns time=NAME\)"):
        load_dataset(table)
    assert (
        load_dataset(table[["a", table.columns[0]]], columns={"time": str(table.columns[0])})
        if "step" in table
        else True
    )


def test_order_is_put_right_and_said() -> None:
    table = wide(60)
    for rows, words in (
        (table[::-1], "its rows run backwards, so they are sorted"),
        (table.sample(frac=1), "are not in order"),
    ):
        before = rows.copy(deep=True)
        checked = check_frame(rows)
        pd.testing.assert_frame_equal(checked, check_frame(table))
        assert words in checked.attrs["notes"][0] and check_frame(table).attrs["notes"] == ()
        pd.testing.assert_frame_equal(rows, before)
    made = femts.train(table, "naive", seq_len=6, pred_len=3, device="cpu")
    pd.testing.assert_frame_equal(made.predict(table[::-1]), made.predict(table))


def test_several_offsets_become_utc_or_days() -> None:
    hours = pd.Series(
        [when.isoformat() for when in pd.date_range("2024-03-30", periods=48, freq="h", tz="Europe/Berlin")]
    )
    stamps, notes = read_stamps(hours)
    assert step_of(stamps) == "h" and str(stamps[0]) == "2024-03-29 23:00:00+00:00"
    assert notes == ("its stamps have several offsets from UTC, so they are turned into UTC",)
    days = pd.Series([when.isoformat() for when in pd.date_range("2024-03-20", periods=30, tz="Europe/Berlin")])
    stamps, notes = read_stamps(days)
    assert step_of(stamps) == "D" and str(stamps[0]) == "2024-03-20 00:00:00" and "midnights" in notes[0]
    with pytest.raises(UsageError, match="several time zones; write them all in UTC"):
        read_dates(pd.Series(["2024-03-30T00:00+01:00", "2024-03-31T00:00+02:00", "2024-04-01T00:00"]))
    with pytest.raises(UsageError, match="'2010-W53' where data row 2"):
        read_dates(pd.Series(["2009-W53", "2010-W53"]))


def test_long_holes_are_filled_and_said() -> None:
    days = pd.date_range("2010-01-01", "2020-01-01")
    table = pd.DataFrame({"date": days[:400].append(days[3000:3400]), "a": np.arange(800.0)})
    data = load_dataset(table)
    assert data.freq == "D" and len(data.values) == 3400
    assert data.notes[0] == "only 800 of the 3400 stamps of its step 'D' are there; the others get no values"
    assert load_dataset(table.assign(date=[*range(400), *range(3000, 3400)])).freq == "1"
    for stray in (table.drop(index=range(401, 800)), table.drop(index=range(399)), table[::2]):
        if len(stray) == 400:
            assert load_dataset(stray).freq == "2D"
            continue
        with pytest.raises(UsageError, match=r"only 401 of \d+ stamps are there; leave out those beyond a long hole"):
            load_dataset(stray)


def test_later_tables_may_call_their_stamps_otherwise(tmp_path: Path) -> None:
    table = wide(60).rename(columns={"date": "Zeit"})
    made = femts.train(table, "naive", seq_len=6, pred_len=3, out=tmp_path / "run", device="cpu")
    expected = made.predict(table)
    assert list(expected.columns) == ["Zeit", "a", "b"]
    for name in ("date", "Hour"):
        other = femts.load(tmp_path / "run").predict(table.rename(columns={"Zeit": name}))
        pd.testing.assert_frame_equal(other, expected.rename(columns={"Zeit": name}))
    pd.testing.assert_frame_equal(made.predict(load_dataset(table).frame()), expected)
