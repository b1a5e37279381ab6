"""Tables of other libraries, and tables whose index holds the stamps: the same data, and the
caller's table as it was."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_cases import wide

import femts
from femts.data.columns import to_frame
from femts.data.loading import load_dataset
from femts.errors import UsageError


def long() -> pd.DataFrame:
    return wide(60).melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


class Exchanged:
    """A table of a library that knows one protocol alone."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __dataframe__(self, *_: Any, **__: Any) -> Any:
        return self.frame.__dataframe__()


INDEXED = {
    "stamps": wide(60).set_index("date"),
    "stamps without a name": wide(60).set_index("date").rename_axis(None),
    "stamps under a name": wide(60).set_index("date").rename_axis("Hour"),
    "text": wide(60).astype({"date": str}).set_index("date").rename_axis("when"),
    "periods": wide(60).set_index(pd.PeriodIndex(wide(60)["date"], freq="h")).drop(columns="date"),
    "names of series": long().set_index("unique_id"),
    "names of series and stamps": long().set_index(["unique_id", "ds"]),
    "another library's": Exchanged(wide(60)),
}


@pytest.mark.parametrize("name", INDEXED)
def test_stamps_may_be_the_index(name: str) -> None:
    table, plain = INDEXED[name], load_dataset(wide(60))
    before = table.copy(deep=True) if isinstance(table, pd.DataFrame) else None
    data = load_dataset(table)
    np.testing.assert_array_equal(data.values, plain.values)
    assert data.columns == ("a", "b") and data.freq == "h"
    assert data.dates is not None and data.dates.equals(plain.dates)
    forecast = femts.train(table, "naive", seq_len=6, pred_len=3, device="cpu").predict(table)
    expected = femts.train(plain, "naive", seq_len=6, pred_len=3, device="cpu").predict(wide(60))
    np.testing.assert_array_equal(forecast.iloc[:3, -1], expected["a" if "series" in name else "b"])
    if before is not None:
        pd.testing.assert_frame_equal(table, before)


def test_a_series_is_one_channel() -> None:
    series = wide(60).set_index("date")["a"]
    for name, column in (("a", "a"), (None, "y")):
        data = load_dataset(series.rename(name))
        assert data.columns == (column,)
        made = femts.train(series.rename(name), "naive", seq_len=6, pred_len=3, device="cpu")
        assert list(made.predict(series.rename(name)).columns) == ["date", column]
    with pytest.raises(
        UsageError, match="no time stamps in the index of its Series; give it a DatetimeIndex or PeriodIndex"
    ):
        load_dataset(series.reset_index(drop=True))


def test_an_index_that_is_none_is_left_alone() -> None:
    for index in (range(60), range(1900, 1960), [f"row {n}" for n in range(60)]):
        table = wide(60).drop(columns="date").set_axis(list(index), axis=0)
        assert to_frame(table) is table
    numbered = wide(60).set_index(pd.date_range("1999-01-01", periods=60))
    assert to_frame(numbered) is numbered  # it has a column of stamps


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library: str) -> None:
    module = pytest.importorskip(library)
    turned = (lambda f: module.from_pandas(f)) if library == "polars" else (lambda f: module.table(f))
    for frame in (wide(60), long()):
        plain, other = load_dataset(frame), load_dataset(turned(frame))
        np.testing.assert_array_equal(other.values, plain.values)
        assert other.columns == plain.columns and list(other.dates) == list(plain.dates)  # type: ignore[arg-type]
        made = femts.train(turned(frame), "naive", seq_len=6, pred_len=3, device="cpu")
        pd.testing.assert_frame_equal(made.predict(turned(frame)), made.predict(frame), check_dtype=False)


def test_what_cannot_be_exchanged_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __arrow_c_stream__(self, _: Any = None) -> Any:
            raise TypeError("no schema")

    with pytest.raises(UsageError, match=r"The frame cannot be turned into a pandas DataFrame \(no schema\)"):
        load_dataset(Stream())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"a Stream, which needs pyarrow; run pip install pyarrow"):
        load_dataset(Stream())  # type: ignore[arg-type]
    for thing in (np.zeros((3, 2)), {"a": [1]}, 3, None):
        with pytest.raises(UsageError, match="; give a name, the path of a file, or a DataFrame"):
            load_dataset(thing)  # type: ignore[arg-type]
