"""Chunked reading of the end of a file."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from combinations import in_turn
from data_cases import wide

import femts
from femts.data.read import read_headless, read_table, write_table
from femts.data.recent import CELLS, read_recent, recent_rows
from femts.data.rows import read_rows
from femts.data.schema import Schema
from femts.errors import GapWarning, UsageError
from femts.forecaster.forecaster import Forecaster

L, P, ROWS = 6, 3, 60
JOINT = Schema(na=(-9999.0,), panel=False)
PIECES = [1, 13, 50, 2**20]  # cells


def recent(path: Path, freq: str | None, cells: int = CELLS) -> pd.DataFrame:
    columns = ("0", "1") if freq is None else ("a", "b")
    return read_recent(path, L, JOINT, columns, freq, cells)


def table_with_gaps() -> pd.DataFrame:
    """Two series with missing values, missing rows and sentinels near their end."""
    table = wide(ROWS)
    table[["a", "b"]] = np.sin(np.arange(2 * ROWS)).reshape(ROWS, 2) / 3
    table.loc[[3, 57], "a"] = np.nan
    table.loc[[5, 58], "b"] = -9999.0
    return table.drop(index=[20, 55])


def long(table: pd.DataFrame) -> pd.DataFrame:
    return table.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


def zoned(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(date=table["date"].dt.tz_localize("UTC"))


def offsets(table: pd.DataFrame) -> pd.DataFrame:
    """Stamps as text with UTC offsets across a DST change."""
    spring = (table["date"] + pd.Timedelta(days=89)).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    return table.assign(date=spring.map(pd.Timestamp.isoformat))


def days(table: pd.DataFrame, how: str = "%d/%m/%Y") -> pd.DataFrame:
    """Day-first or month-first dates."""
    return table.assign(date=pd.date_range("2024-01-20", periods=len(table), freq="D").strftime(how))


def dates_without_large_days() -> pd.DataFrame:
    """Dates whose last rows are ambiguous."""
    return days(table_with_gaps().head(22).reset_index(drop=True))


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "wide": table_with_gaps,
    "wide, backwards": lambda: table_with_gaps().iloc[::-1],
    "wide, in no order": lambda: table_with_gaps().sample(frac=1, random_state=1),
    "wide, day first": lambda: days(table_with_gaps().head(40).reset_index(drop=True)),
    "wide, day first, backwards": lambda: days(table_with_gaps().head(40).reset_index(drop=True)).iloc[::-1],
    "wide, day first, ends early in a month": dates_without_large_days,
    "wide, day first, ends early in a month, backwards": lambda: dates_without_large_days().iloc[::-1],
    "wide, zone": lambda: zoned(table_with_gaps()),
    "wide, two offsets": lambda: offsets(table_with_gaps()),
    "wide, counted": lambda: table_with_gaps().assign(date=lambda f: f.index * 5 + 1700),
    "long": lambda: long(table_with_gaps()),
    "long, by time": lambda: long(table_with_gaps()).sort_values("ds", kind="stable"),
    "long, in no order": lambda: long(table_with_gaps()).sample(frac=1, random_state=1),
    "long, zone": lambda: long(zoned(table_with_gaps())),
    "long, counted": lambda: long(table_with_gaps().assign(date=lambda f: f.index * 5 + 1700)),
    "long, one series begins late": lambda: long(table_with_gaps()).drop(index=range(58, 90)).iloc[::-1],
    "long, day first": lambda: long(days(table_with_gaps().head(40).reset_index(drop=True))),
}


@pytest.fixture(scope="module")
def forecaster() -> dict[str, Forecaster]:
    """A forecaster for each frequency."""
    quick: dict[str, Any] = {"seq_len": L, "pred_len": P, "device": "cpu", "settings": {"season": 1}}
    dates = {
        "h": wide(ROWS)["date"],
        "5": np.arange(ROWS) * 5,
        "D": pd.date_range("2024-01-01", periods=ROWS, freq="D"),
    }
    made = {}
    for freq, when in dates.items():
        data = femts.load_dataset(wide(ROWS).assign(date=when), na=[-9999])
        made[freq] = femts.train(data, "ridge", **{**quick, "settings": {"model.longest": P}})
    return made


def forecaster_for(forecaster: dict[str, Forecaster], name: str) -> Forecaster:
    return forecaster["5" if "counted" in name else "D" if "day first" in name else "h"]


@in_turn(name=tuple(TABLES), suffix=(".csv", ".parquet"))
def test_chunk_size_does_not_change_the_forecast(
    name: str, suffix: str, forecaster: dict[str, Forecaster], tmp_path: Path
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path, made = write_table(TABLES[name](), tmp_path / f"mine{suffix}"), forecaster_for(forecaster, name)
    with pytest.warns(GapWarning) if "day first" not in name else pytest.MonkeyPatch.context():
        expected = made.predict(read_table(path))
    for cells in PIECES:
        history = recent(path, made.freq, cells=cells)
        assert len(history) <= (L + 2) * (2 if "long" in name else 1)
        with pytest.warns(GapWarning) if "day first" not in name else pytest.MonkeyPatch.context():
            pd.testing.assert_frame_equal(made.predict(history), expected, check_exact=True)


def test_day_first_dates_are_resolved_across_chunks(forecaster: dict[str, Forecaster], tmp_path: Path) -> None:
    table = dates_without_large_days()
    table.loc[len(table) - L, "a"] = np.nan
    path = write_table(table, tmp_path / "mine.csv")
    with pytest.warns(GapWarning, match="the last value before each"):
        expected = forecaster["D"].predict(read_table(path))
    for cells in PIECES:
        history = recent(path, "D", cells=cells)
        with pytest.warns(GapWarning, match="the last value before each"):
            pd.testing.assert_frame_equal(forecaster["D"].predict(history), expected, check_exact=True)


@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz"])
def test_headerless_matrix_keeps_row_numbers(name: str, tmp_path: Path) -> None:
    table_with_gaps()[["a", "b"]].to_csv(tmp_path / name, index=False, header=False)
    whole = read_headless(tmp_path / name)
    for cells in PIECES:
        read = recent(tmp_path / name, None, cells=cells)
        assert list(read.index[-L:]) == list(range(len(whole) - L, len(whole)))
        pd.testing.assert_frame_equal(read.set_axis(["0", "1"], axis=1).tail(L), whole.tail(L), check_exact=True)


@pytest.mark.parametrize("cells", [9, 2**20])
def test_invalid_look_back_rows_are_refused(cells: int, forecaster: dict[str, Forecaster], tmp_path: Path) -> None:
    def refusal(table: pd.DataFrame) -> str:
        path = write_table(table, tmp_path / "mine.csv")
        with pytest.raises(UsageError) as caught:
            forecaster["h"].predict(recent(path, "h", cells=cells))
        return str(caught.value)

    good = wide(ROWS)
    tall = long(good)
    assert "(7 rows) repeats 1 date, the first 2024-01-03 11:00:00 at data row 7" in refusal(
        pd.concat([good, good.tail(1).assign(a=-9.5)])
    )
    assert "has series 'b' twice at 2024-01-03 11:00:00" in refusal(pd.concat([tall, tall.tail(1)]))
    assert "lacks 'b'" in refusal(tall[tall["unique_id"] == "a"])
    assert "has no value; provide at least one" in refusal(tall.assign(y=np.nan))
    assert "has 'c' besides" in refusal(pd.concat([tall.head(1).assign(unique_id="c"), tall]))
    assert "has the text 'x' in column 'y'" in refusal(
        tall.astype({"y": object}).replace({"y": {tall["y"].iloc[-1]: "x"}})
    )
    assert "infinite" in refusal(tall.replace(tall["y"].iloc[-1], np.inf))
    assert "has 'soon' where data row 61 should have a date" in refusal(
        tall.assign(ds=tall["ds"].astype(str).where(np.arange(len(tall)) != 60, "soon"))
    )
    assert "several time zones" in refusal(
        tall.assign(ds=[f"{when.isoformat()}{'+01:00' * (when.day < 3)}" for when in tall["ds"]])
    )
    assert "does not keep the step 'h'" in refusal(tall.assign(ds=tall["ds"] + 2 * (tall["ds"] - tall["ds"][0])))


def test_rows_before_the_look_back_are_ignored(forecaster: dict[str, Forecaster], tmp_path: Path) -> None:
    good = long(wide(ROWS))
    expected = forecaster["h"].predict(good)
    for spoilt in (
        pd.concat([good.head(1), good]),  # twice
        good.assign(y=good["y"].where(good.index != 2, np.inf)),
        good.astype({"y": object}).assign(y=lambda f: f["y"].where(f.index != 2, "x")),
        good.assign(ds=good["ds"].where(good.index != 2, good["ds"] + pd.Timedelta("1min"))),
    ):
        path = write_table(spoilt, tmp_path / "mine.csv")
        pd.testing.assert_frame_equal(forecaster["h"].predict(recent(path, "h")), expected)
        pd.testing.assert_frame_equal(forecaster["h"].predict(spoilt), expected)


def test_late_parse_errors_are_found_and_empty_tables_accepted(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    for row, words in (
        (b"2024-01-01 15:00,1,2,3\n", "is not a table"),
        (b"2024-01-01 15:00,\x81\xff,2\n", "is not UTF-8"),
    ):
        path.write_bytes(b"date,a,b\n" + b"2024-01-01 00:00,1,1\n" * 20 + row)
        for cells in PIECES:
            with pytest.raises(UsageError, match=words):
                recent(path, "h", cells=cells)
    for header in ("date,a,b\n", "unique_id,ds,y\n"):
        path.write_text(header)
        assert len(recent(path, "h")) == 0


def test_year_like_integers_stay_integer_steps(forecaster: dict[str, Forecaster]) -> None:
    table = wide(ROWS).assign(date=np.arange(1700, 2000, 5))
    forecast = forecaster["5"].predict(table.tail(L))
    assert forecast["date"].tolist() == [2000, 2005, 2010]


def test_last_rows_are_selected_without_mutation(forecaster: dict[str, Forecaster]) -> None:
    table = long(wide(ROWS))
    before = table.copy(deep=True)
    rows = read_rows(table.head(90), JOINT, "The frame", "h")
    last, earlier = recent_rows(rows, L, ("a", "b"))
    pd.testing.assert_frame_equal(table, before)
    assert table["unique_id"][np.flatnonzero(last)].tolist() == ["a"] * L
    assert table["ds"][np.flatnonzero(earlier)].tolist() == [table["ds"][89]] * 2, "the last of the series that ended"


def test_memory_is_independent_of_file_size(tmp_path: Path) -> None:
    peaks = []
    for name, table in (
        ("wide", wide(15000)),
        ("wide", wide(60000)),
        ("long", long(wide(8000))),
        ("long", long(wide(30000))),
    ):
        path = write_table(table, tmp_path / f"{name}.csv")
        recent(path, "h", cells=20_000)  # what is imported and cached stays out of it
        tracemalloc.start()
        assert len(recent(path, "h", cells=20_000)) == (L if name == "wide" else 2 * L)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] and peaks[3] < 1.5 * peaks[2]
