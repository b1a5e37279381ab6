from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data_cases import wide
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import femts
from femts.data.check import check_frame, check_values
from femts.data.loading import load_dataset
from femts.data.panel import load_panel
from femts.data.read import read_headless, read_table, write_table
from femts.errors import RunFailure, UsageError


def read_checked(path: Path) -> pd.DataFrame:
    return check_frame(read_table(path), where=f"File {path}")


GOOD = "date,a,b\n2024-01-01 00:00,1,2\n2024-01-01 01:00,3,4\n2024-01-01 02:00,5,6\n"

BAD_FILES = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "binary": (b"\x7fELF\x00\x00", "is binary"),
    "no zip file": (b"PK\x03\x04\x00\x00", "is damaged (File is not a zip file); get it anew"),
    "latin-1": ("date,\u00b0C\n".encode("latin-1"), "not UTF-8 text"),
    "no date": (
        b"time,a\nsoon,1\n",
        "no 'date' column (it has 'time', 'a'); name the column of time stamps so, or say which",
    ),
    "semicolons": (b"date;a\n2024-01-01;1\n", "has 1 data rows; at least 3"),
    "no values": (b"date\n2024-01-01\n2024-01-02\n2024-01-03\n", "no value columns"),
    "header alone": (b"date,a\n", "has 0 data rows; at least 3"),
    "two rows": (b"date,a\n2024-01-01,1\n2024-01-02,1\n", "has 2 data rows; at least 3"),
    "long row": (GOOD.encode() + b"2024-01-01 03:00,7,8,9\n", "is not a table (Expected 3 fields in line 5, saw 4)"),
    "all rows long": (b"date,a\n2024-01-01,1,2\n2024-01-02,1,2\n", "is not a table"),
    "unnamed index": (b",date,a\n0,2024-01-01,1\n", "no name for column 1"),
    "twice": (b"date,a,a\n2024-01-01,1,2\n", "two columns named 'a'"),
    "text": (GOOD.replace("3,4", "3,off").encode(), "the text 'off' in column 'b' at data row 2"),
    "decimal comma": (GOOD.replace("3,4", '3,"4,5"').encode(), "the text '4,5' in column 'b' at data row 2"),
    "inf": (GOOD.replace("5,6", "5,-inf").encode(), "1 infinite cell, the first in column 'b' at data row 3"),
    "no such date": (GOOD.replace("2024-01-01 01", "2024-13-01 01").encode(), "'2024-13-01 01:00' where data row 2"),
    "no date in a row": (GOOD.replace("2024-01-01 01:00", "").encode(), "where data row 2 should have a date"),
    "day or month": (b"date,a\n01/02/2024,1\n02/02/2024,1\n03/02/2024,1\n", "whose day could be the month"),
    "zones": (
        b"date,a\n2024-03-30T00:00+01:00,1\n2024-03-31T00:00+01:00,1\n2024-04-01T00:00,1\n",
        "dates of several time zones",
    ),
    "repeated": (
        GOOD.replace("02:00", "01:00").encode(),
        "repeats 1 date, the first 2024-01-01 01:00:00 at data row 3",
    ),
    "unordered": (
        GOOD.replace("02:00", "00:25").encode(),
        "uneven step: from 2024-01-01 00:25:00 to 2024-01-01 01:00:00",
    ),
    "uneven": (GOOD.replace("02:00", "02:30").encode(), "uneven step: from 2024-01-01 01:00:00 to 2024-01-01 02:30:00"),
    "months by their 15th": (
        b"date,a\n2024-01-15,1\n2024-02-15,2\n2024-03-15,3\n2024-04-15,4\n",
        "stamp it with the first day of that month",
    ),
    "long, twice": (b"unique_id,ds,y\nu,2024-01-01,1\nu,2024-01-01,2\n", "gives series 'u' twice"),
    "long, text": (b"unique_id,ds,y\nu,2024-01-01,x\n", "the text 'x' in column 'y' at data row 1"),
}


def is_one_sentence(error: object) -> bool:
    text = str(error)
    return "\n" not in text and text.endswith(".") and "Traceback" not in text


@pytest.mark.parametrize(("content", "words"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_file_is_refused_in_one_sentence_that_names_it(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_checked(path)
    assert words in str(caught.value) and str(path) in str(caught.value) and is_one_sentence(caught.value)


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.csv does not exist"):
        read_checked(tmp_path / "nothing.csv")
    with pytest.raises(UsageError, match="is a folder"):
        read_checked(tmp_path)


@pytest.mark.parametrize(
    "content", [GOOD, "\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD + "\n\n", "\n" + GOOD], ids=repr
)
def test_good_file_in_its_usual_spellings(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content.encode())
    frame = read_checked(path)
    assert list(frame.columns) == ["date", "a", "b"]
    assert frame["b"].tolist() == [2.0, 4.0, 6.0] and str(frame["b"].dtype) == "float64"


def test_long_form_becomes_wide_with_series_in_order_of_appearance(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(
        "ds,y,unique_id\n2024-01-01,1,7\n2024-01-03,3,7\n2024-01-02,2,7\n2024-01-01,4,2\n2024-01-02,5,2\n2024-01-03,6,2\n"
    )
    frame = read_checked(path)
    assert list(frame.columns) == ["date", "7", "2"]
    assert frame["7"].tolist() == [1.0, 2.0, 3.0] and frame["2"].tolist() == [4.0, 5.0, 6.0]
    assert frame["date"].is_monotonic_increasing


@given(st.integers(3, 40), st.integers(1, 4), st.sampled_from(["15min", "h", "D", "B", "W", "MS"]))
def test_a_written_table_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: int, columns: int, freq: str
) -> None:
    frame = wide(rows, columns, freq)
    path = write_table(frame, tmp_path_factory.mktemp("csv") / "t.csv")
    pd.testing.assert_frame_equal(read_checked(path), check_frame(frame), check_dtype=False)


def test_columns_come_back_in_the_order_asked_for(table: pd.DataFrame) -> None:
    assert list(check_frame(table, columns=["b", "a"]).columns) == ["date", "b", "a"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [(["a", "b", "c"], "lacks 'c'; give"), (["a"], "has 'b' besides"), (["a", "x"], "lacks 'x' and has 'b' besides")],
)
def test_other_columns_than_in_training_are_named(table: pd.DataFrame, columns: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_frame(table, columns=columns)


def test_a_known_step_serves_histories_too_short_to_show_it(table: pd.DataFrame) -> None:
    assert len(check_frame(table.head(1), freq="h")) == 1
    friday_to_tuesday = wide(3, freq="B", start="2024-01-05")
    assert len(check_frame(friday_to_tuesday, freq="B")) == 3
    assert check_frame(friday_to_tuesday, freq="D")["a"].isna().tolist() == [False, True, True, False, False]
    with pytest.raises(UsageError, match=r"step 'h' of the training data at data row 2 \(2024-01-08"):
        check_frame(friday_to_tuesday, freq="h")
    with pytest.raises(UsageError, match="no data rows"):
        check_frame(table.head(0), freq="h")


def test_the_index_of_a_frame_does_not_matter(table: pd.DataFrame) -> None:
    tail = table.tail(10)
    for index in (tail.index, [5] * 10, tail["date"]):
        assert check_frame(tail.set_axis(index, axis=0))["a"].tolist() == tail["a"].tolist()


def test_no_input_frame_is_changed(table: pd.DataFrame) -> None:
    before = table.copy()
    check_frame(table, columns=["b", "a"])
    pd.testing.assert_frame_equal(table, before)


def test_columns_of_other_types(table: pd.DataFrame) -> None:
    whole = table.assign(a=range(30), b=[True, False] * 15)
    assert check_frame(whole)["b"].tolist() == [1.0, 0.0] * 15
    nullable = table.assign(a=pd.array([1] * 29 + [None], dtype="Int64"))
    assert np.isnan(check_frame(nullable)["a"].iloc[-1])
    with pytest.raises(UsageError, match=r"has the text '2024-01-01.*' in column 'a' at data row 1"):
        check_frame(table.assign(a=table["date"]))
    assert list(check_frame(table.rename(columns={"a": 0})).columns) == ["date", "0", "b"]


def test_matrix_without_header_gzipped_or_not(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).uniform(size=(50, 7)).round(2)
    for name in ("s.txt", "s.txt.gz"):
        pd.DataFrame(matrix).to_csv(tmp_path / name, header=False, index=False)
        frame = read_headless(tmp_path / name)
        assert list(frame.columns) == list("0123456") and np.array_equal(frame.to_numpy(), matrix)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("s.txt", b"1,2\n3,x\n", "the text 'x' in column '1' at data row 2"),
        ("s.txt", b"1,2\n3,4,5\n", "cannot be read as a matrix"),
        ("s.txt.gz", b"\x1f\x8b\x08\x00", "is damaged"),
        ("s.txt.gz", gzip.compress(b"1,2\n", mtime=0)[:10] + b"\xff" * 20, "is damaged"),
    ],
)
def test_bad_matrix_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words) as caught:
        read_headless(tmp_path / name)
    assert is_one_sentence(caught.value)


def test_values_need_no_dates(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("0,1\n1,2\n3,4\n")
    assert check_values(read_table(tmp_path / "v.csv"), columns=["0", "1"]).to_numpy().tolist() == [[1, 2], [3, 4]]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunFailure, match=r"Could not write .*out\.csv: No space left on device; make room"):
        write_table(table, path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, table: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="is a folder; name a file"):
        write_table(table, tmp_path)
    with pytest.raises(UsageError, match="in a folder that does not exist"):
        write_table(table, tmp_path / "no" / "out.csv")


SPARSE_AND_OTHERS: dict[str, Callable[[NDArray[np.float64]], object]] = {
    "sparse": pd.arrays.SparseArray,
    "sparse, zeros left out": lambda values: pd.arrays.SparseArray(values, fill_value=0.0),
    "sparse whole numbers": lambda values: pd.arrays.SparseArray(values.astype(int)),
    "nullable": lambda values: pd.array(values.astype(int), dtype="Int64"),
    "categories": pd.Categorical,
    "decimals": lambda values: [Decimal(str(value)) for value in values],
    "float16": lambda values: values.astype(np.float16),
}


@pytest.mark.parametrize("kind", SPARSE_AND_OTHERS)
def test_numbers_of_every_kind_are_read(kind: str) -> None:
    values = np.arange(40.0) % 5
    frame = pd.DataFrame({"date": pd.date_range("2024", periods=40), "y": SPARSE_AND_OTHERS[kind](values)})
    np.testing.assert_array_equal(load_dataset(frame, na=4).values[:, 0], np.where(values == 4, np.nan, values))
    long = frame.rename(columns={"date": "ds"}).assign(unique_id="s")
    np.testing.assert_array_equal(load_panel(long).series["s"].values[:, 0], values)


def test_columns_of_several_levels_go_by_their_text() -> None:
    frame = pd.DataFrame({("date", ""): pd.date_range("2024", periods=40), ("a", "x"): np.arange(40.0)})
    assert load_dataset(frame).columns == ("('a', 'x')",)


def test_twenty_thousand_columns_and_ids_take_seconds() -> None:
    """The time of neither goes by their square, nor by a fit of each, where a series is too short to learn from."""
    many, began = 20_000, time.process_time()
    values = pd.DataFrame(np.random.default_rng(0).normal(size=(50, many)), columns=[f"c{i}" for i in range(many)])
    dated = pd.concat([values, pd.Series(pd.date_range("2024", periods=50), name="date")], axis=1)
    assert len(load_dataset(dated).columns) == many
    ids, days = np.repeat(np.arange(many), 3), np.tile(pd.date_range("2024", periods=3), many)
    panel = load_panel(pd.DataFrame({"unique_id": ids, "ds": days, "y": np.arange(3.0 * many)}))
    with pytest.raises(UsageError, match=r"has a window of 7 steps .* \(the longest has 3 rows\)"):
        femts.train(panel, "naive", 7, seq_len=14)
    assert time.process_time() - began < 20
