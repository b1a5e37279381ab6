"""Validation of tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from checked import checked
from data_cases import wide
from drawn import attempt, copied, same
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from odd_frames import good_frames, odd_frames

import femts
from femts.data.catalog import CATALOG, DatasetCard, register_dataset
from femts.data.check import check_values
from femts.data.loading import load_dataset
from femts.data.read import read_table, write_table
from femts.data.roles import Roles
from femts.data.schema import Schema
from femts.errors import UsageError

DAYS = pd.date_range("2021-10-01", periods=60, freq="D")
GOOD = "date,a,b\n2024-01-01 00:00,1,2\n2024-01-01 01:00,3,4\n2024-01-01 02:00,5,6\n"
BAD_FILES: dict[str, tuple[str, str]] = {
    "no date": (
        "time,a\nsoon,1\n",
        "no 'date' column (it has 'time', 'a'); rename the time stamp column, or name it with",
    ),
    "semicolons": ("date;a\n2024-01-01;1\n", "has 1 time stamp; at least 3"),
    "no values": ("date\n2024-01-01\n2024-01-02\n2024-01-03\n", "no value columns"),
    "header alone": ("date,a\n", "has 0 time stamps; at least 3"),
    "decimal comma": (GOOD.replace("3,4", '3,"4,5"'), "the text '4,5' in column 'b' at data row 2"),
    "inf": (GOOD.replace("5,6", "5,-inf"), "1 infinite cell, the first in column 'b' at data row 3"),
    "no such date": (GOOD.replace("2024-01-01 01", "2024-13-01 01"), "'2024-13-01 01:00' where data row 2"),
    "no date in a row": (GOOD.replace("2024-01-01 01:00", ""), "where data row 2 should have a date"),
    "day or month": ("date,a\n01/02/2024,1\n02/02/2024,1\n03/02/2024,1\n", "whose day could be the month"),
    "repeated": (GOOD.replace("02:00", "01:00"), "repeats 1 date, the first 2024-01-01 01:00:00 at data row 3"),
    "unordered": (
        GOOD.replace("02:00", "00:25"),
        "irregular time stamps: 2024-01-01 00:25:00 and 2024-01-01 01:00:00",
    ),
    "uneven": (GOOD.replace("02:00", "02:30"), "irregular time stamps: 2024-01-01 01:00:00 and 2024-01-01 02:30:00"),
    "long, twice": ("unique_id,ds,y\nu,2024-01-01,1\nu,2024-01-01,2\n", "has series 'u' twice"),
    "long, text": ("unique_id,ds,y\nu,2024-01-01,x\n", "the text 'x' in column 'y' at data row 1"),
}


def test_invalid_table_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for content, words in BAD_FILES.values():
        path = tmp_path / "mine.csv"
        path.write_text(content)
        with pytest.raises(UsageError) as caught:
            checked(read_table(path), where=f"File {path}")
        text = str(caught.value)
        assert words in text and str(path) in text and text.endswith(".") and "\n" not in text


def test_long_table_is_pivoted_in_order_of_appearance() -> None:
    days = [f"2024-01-{day:02d}" for day in (1, 3, 2, 1, 2, 3)]
    frame = checked(pd.DataFrame({"ds": days, "y": [1, 3, 2, 4, 5, 6], "unique_id": [7, 7, 7, 2, 2, 2]}))
    assert list(frame.columns) == ["date", "7", "2"] and frame["date"].is_monotonic_increasing
    assert frame["7"].tolist() == [1.0, 2.0, 3.0] and frame["2"].tolist() == [4.0, 5.0, 6.0]


@given(st.integers(3, 40), st.integers(1, 4), st.sampled_from(["15min", "h", "D", "B", "W", "MS"]))
def test_csv_roundtrip(tmp_path_factory: pytest.TempPathFactory, rows: int, columns: int, freq: str) -> None:
    frame = wide(rows, columns, freq)
    path = write_table(frame, tmp_path_factory.mktemp("csv") / "t.csv")
    pd.testing.assert_frame_equal(checked(read_table(path)), checked(frame), check_dtype=False)


def test_missing_and_unexpected_columns_are_refused(table: pd.DataFrame) -> None:
    for columns, words in [
        (["a", "b", "c"], "lacks 'c'; give"),
        (["a"], "has 'b' besides"),
        (["a", "x"], "lacks 'x' and has 'b' besides"),
    ]:
        with pytest.raises(UsageError, match=words):
            checked(table, columns=columns, freq="h")
        assert list(checked(table, columns=["b", "a"], freq="h").columns) == ["date", "b", "a"], (
            "in the order asked for"
        )


def test_known_frequency_is_used_for_short_histories(table: pd.DataFrame) -> None:
    assert len(checked(table.head(1), freq="h")) == 1
    friday_to_tuesday = wide(3, freq="B", start="2024-01-05")
    assert len(checked(friday_to_tuesday, freq="B")) == 3
    assert checked(friday_to_tuesday, freq="D")["a"].isna().tolist() == [False, True, True, False, False]
    with pytest.raises(UsageError, match=r"step 'h' of the training data at data row 2 \(2024-01-08"):
        checked(friday_to_tuesday, freq="h")
    with pytest.raises(UsageError, match="no data rows"):
        checked(table.head(0), freq="h")


def test_index_is_ignored_and_rows_are_sorted(table: pd.DataFrame) -> None:
    tail = table.tail(10)
    for index in (tail.index, [5] * 10, tail["date"]):
        assert checked(tail.set_axis(index, axis=0))["a"].tolist() == tail["a"].tolist()
    assert checked(table).attrs["notes"] == ()
    for rows, words in (
        (table[::-1], "rows run backwards and were sorted"),
        (table.sample(frac=1), "not in order"),
    ):
        before = rows.copy(deep=True)
        made = checked(rows)
        pd.testing.assert_frame_equal(made, checked(table))
        assert words in made.attrs["notes"][0]
        pd.testing.assert_frame_equal(rows, before)
    made = femts.train(wide(60), "naive", seq_len=6, pred_len=3)
    pd.testing.assert_frame_equal(made.predict(wide(60)[::-1]), made.predict(wide(60)))


def test_non_float_columns_are_converted(table: pd.DataFrame) -> None:
    whole = table.assign(a=range(30), b=[True, False] * 15)
    assert checked(whole, Schema(roles=Roles(("a", "b"))))["b"].tolist() == [1.0, 0.0] * 15
    nullable = table.assign(a=pd.array([1, 2, 4] * 9 + [1, 4, None], dtype="Int64"))
    assert np.isnan(checked(nullable)["a"].iloc[-1])
    with pytest.raises(UsageError, match=r"has the text '2024-01-01.*' in column 'a' at data row 1"):
        checked(table.assign(a=table["date"]), Schema(roles=Roles(("a", "b"))))
    assert list(checked(table.rename(columns={"a": 0})).columns) == ["date", "0", "b"]
    assert check_values(table[["a", "b"]], columns=["b", "a"]).columns.tolist() == ["b", "a"], "without dates"


KINDS: dict[str, Callable[[NDArray[np.float64]], object]] = {
    "sparse": pd.arrays.SparseArray,
    "sparse, zeros left out": lambda values: pd.arrays.SparseArray(values, fill_value=0.0),
    "sparse whole numbers": lambda values: pd.arrays.SparseArray(values.astype(int)),
    "nullable": lambda values: pd.array(values.astype(int), dtype="Int64"),
    "categories": pd.Categorical,
    "decimals": lambda values: [Decimal(str(value)) for value in values],
    "float16": lambda values: values.astype(np.float16),
}


def test_every_numeric_dtype_is_read() -> None:
    for kind in KINDS:
        values = np.arange(40.0) % 5
        frame = pd.DataFrame({"date": pd.date_range("2024", periods=40), "y": KINDS[kind](values)})
        np.testing.assert_array_equal(load_dataset(frame, na=4).values[:, 0], np.where(values == 4, np.nan, values))
        long = frame.rename(columns={"date": "ds"}).assign(unique_id="s")
        np.testing.assert_array_equal(load_dataset(long, panel=True)["s"].values[:, 0], values)


def test_multiindex_columns_are_flattened_to_text() -> None:
    frame = pd.DataFrame({("date", ""): pd.date_range("2024", periods=40), ("a", "x"): np.arange(40.0)})
    assert load_dataset(frame).columns == ("('a', 'x')",)


def test_twenty_thousand_series_load_in_seconds() -> None:
    many, began = 20_000, time.process_time()
    values = pd.DataFrame(np.random.default_rng(0).normal(size=(50, many)), columns=[f"c{i}" for i in range(many)])
    dated = pd.concat([values, pd.Series(pd.date_range("2024", periods=50), name="date")], axis=1)
    assert len(load_dataset(dated).columns) == many
    ids, days = np.repeat(np.arange(many), 3), np.tile(pd.date_range("2024", periods=3), many)
    panel = load_dataset(pd.DataFrame({"unique_id": ids, "ds": days, "y": np.arange(3.0 * many)}), panel=True)
    with pytest.raises(UsageError, match="has 3 rows, but training, validation and test require 4"):
        femts.train(panel, "naive", 7, seq_len=14)
    assert time.process_time() - began < 20


ROWS, SENTINEL = 200, -999.9


def with_sentinels(dtype: str = "float64") -> pd.DataFrame:
    """Two waves; the first has ten sentinels, three of them in the last rows."""
    day = np.arange(ROWS)
    values = pd.DataFrame({"a": 20 + np.sin(day / 7 * 2 * np.pi), "b": 5 + np.cos(day)})
    values.loc[[*range(20, 90, 10), *range(ROWS - 3, ROWS)], "a"] = SENTINEL
    frame = values.astype({"a": dtype})
    frame.insert(0, "date", pd.date_range("2024-01-01", periods=ROWS))
    return frame


def test_sentinel_matches_in_column_precision() -> None:
    for dtype in ["float64", "float32", "Float32", "float16"]:
        frame = with_sentinels(dtype)
        long = frame[["date", "a"]].rename(columns={"date": "ds", "a": "y"}).assign(unique_id="u")
        assert np.isnan(load_dataset(frame, na=[SENTINEL]).values[:, 0]).sum() == 10
        for panel in (False, True):
            assert np.isnan(load_dataset(long, na=[SENTINEL], panel=panel).values).sum() == 10
        assert np.isnan(load_dataset(frame, na=[SENTINEL], panel=True)["a"].values).sum() == 10
        assert not np.isnan(load_dataset(with_sentinels().assign(b=1e8), na=[99_999_999]).values).any(), (
            "alike in float32"
        )


def test_float32_sentinel_matches_at_prediction(tmp_path: Path) -> None:
    of_card: dict[str, Any] = {"rows": ROWS, "channels": 2, "freq": "D", "season": 7, "description": "x"}
    try:
        register_dataset(DatasetCard(name="Single", make=lambda: with_sentinels("float32"), **of_card))
        assert np.isnan(load_dataset("Single", na=[SENTINEL]).values).sum() == 10
    finally:
        CATALOG.pop("Single", None)
    with_sentinels().to_csv(tmp_path / "table.csv", index=False)
    forecaster = femts.train(load_dataset(tmp_path / "table.csv", na=[SENTINEL]), "ridge", 7, seq_len=14)
    with pytest.warns(femts.errors.GapWarning):
        first, again = (forecaster.predict(with_sentinels(dtype))[["a", "b"]] for dtype in ("float64", "float32"))
    np.testing.assert_allclose(first, again, rtol=1e-4)


def marked_rows(cells: list[str], separator: str) -> str:
    rows = (f"{day:%d.%m.%Y}{separator}{cells[k % len(cells)]}\n" for k, day in enumerate(DAYS[:40]))
    return f"Datum{separator}Wert\n" + "".join(rows)


def test_ambiguous_thousands_separators_are_refused(tmp_path: Path) -> None:
    for cells, separator, row in [
        (["1.027", "960"], ";", 1),
        (["960", "-1.027"], "\t", 2),
        (["1.027", "960"], ",", 1),
        (["1,027", "960"], ";", 1),
        (["", "1.027", "5"], "|", 2),
        ([*["960"] * 39, "1.027"], ";", 40),
    ]:
        path = tmp_path / "mine.csv"
        path.write_text(marked_rows(cells, separator))
        with pytest.raises(
            UsageError, match=rf"in column 'Wert' at data row {row} next to '\d+', .* thousands or a decimal"
        ):
            load_dataset(path)
        remedy = [cell.replace(".", "").replace(",", "") for cell in cells]
        path.write_text(marked_rows(remedy, separator))
        assert np.nanmax(np.abs(load_dataset(path).values)) == 1027


def test_unambiguous_decimals_are_read(tmp_path: Path) -> None:
    for cells in [
        ["1.027", "0.960"],
        ["1.5", "3", "1.125"],
        ["1.027", "960", "1027"],
        ["1.027", "1.034"],
        ["1.027", "0"],
    ]:
        (tmp_path / "mine.csv").write_text(marked_rows(cells, ";"))
        texts = pd.DataFrame({"date": DAYS[:40], "x": [cells[k % len(cells)] for k in range(40)]})
        for source in (tmp_path / "mine.csv", texts):
            assert load_dataset(source).values[: len(cells), 0].tolist() == [float(cell) for cell in cells]


def test_ambiguous_thousands_separators_in_frames_are_refused() -> None:
    long = pd.DataFrame({"ds": [*DAYS] * 2, "unique_id": ["a"] * 60 + ["b"] * 60, "y": ["1.027"] * 60 + ["5"] * 60})
    wide = pd.DataFrame({"date": DAYS, "y": ["1.027", "960"] * 30})
    for table in (wide, wide.astype("category").assign(date=DAYS), long):
        for reads in (load_dataset, partial(load_dataset, panel=False)):
            with pytest.raises(UsageError, match=r"has '1\.027' in column 'y' at data row 1 next to '(960|5)'"):
                reads(table)
    assert load_dataset(wide.assign(y=pd.Series([1.027, 960] * 30, dtype=object))).values[0, 0] == 1.027


# A table, what is said of it, and how it looks and is read once that is followed.
REFUSED: dict[str, tuple[pd.DataFrame, str, Callable[[pd.DataFrame], pd.DataFrame], dict[str, Any]]] = {
    "codes": (
        pd.DataFrame({"date": [year * 10 + half for year in range(2000, 2030) for half in (1, 2)], "x": range(60)}),
        "or number the steps from 0",
        lambda table: table.assign(date=range(60)),
        {},
    ),
    "orders": (
        pd.DataFrame({"day": DAYS.repeat(5), "order": range(300), "amount": np.arange(300) ** 2 % 97 + 0.5}),
        r"aggregate them with freq='D', aggregate='sum', target=\['amount'\]\.",
        lambda table: table,
        {"freq": "D", "aggregate": "sum", "target": ["amount"]},
    ),
    "events": (
        pd.DataFrame({"day": DAYS.repeat(range(60)), "person": [f"p{n}" for n in range(1770)]}),
        "aggregate them with freq='D', aggregate='count'",
        lambda table: table,
        {"freq": "D", "aggregate": "count"},
    ),
}


def test_suggested_remedies_work() -> None:
    for name in REFUSED:
        table, words, follow, reading = REFUSED[name]
        with pytest.raises(UsageError, match=words):
            load_dataset(table)
        assert load_dataset(follow(table), **reading).rows in (59, 60)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(frame=st.one_of(good_frames(), odd_frames()), na=st.sampled_from([(), (-9999,)]), as_file=st.booleans())
def test_any_table_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, frame: Any, na: tuple[float, ...], as_file: bool
) -> None:
    before, source = copied(frame), frame
    if as_file and isinstance(frame, pd.DataFrame):
        source = tmp_path_factory.mktemp("odd") / "mine.csv"
        with suppress(ValueError):  # numbers of thousands of digits have no text
            frame.to_csv(source, index=False)
    data = attempt(lambda: load_dataset(source, na=na))
    assert same(frame, before)
    if data is not None:
        assert data.stamps is not None and len(data.values) == len(data.stamps)
        for first, stop in data.spans.tolist():
            assert data.stamps[first:stop].is_monotonic_increasing and data.stamps[first:stop].is_unique
        assert not np.isinf(data.values).any() and not np.isnan(data.train_values).all(axis=0).any()
