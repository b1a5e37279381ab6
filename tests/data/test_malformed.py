"""Two hundred tables spoilt at random, frames and files: a sentence or an answer, no traceback and no changed input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data_cases import wide
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.errors import UsageError

Spoil = Callable[[pd.DataFrame, int], pd.DataFrame]


def _cell(column: str, value: object) -> Spoil:
    def spoil(frame: pd.DataFrame, row: int) -> pd.DataFrame:
        if column not in frame.columns or not len(frame):
            return frame
        changed = frame.astype({column: object})
        changed.iloc[row % len(frame), list(frame.columns).index(column)] = value
        return changed

    return spoil


VALUES = (np.nan, np.inf, "", "x", "1,5", None, True, 1e400, -9999, 10**30, b"1")
DATES = (None, "", "soon", "2024-13-01", 7, "1/2/3", pd.NaT, 1e30, "0001-01-01")
SPOILS: dict[str, Spoil] = {
    **{f"value {value!r}": _cell("a", value) for value in VALUES},
    **{f"date {value!r}": _cell("date", value) for value in DATES},
    "late": lambda f, n: f.iloc[n % (len(f) + 1) :],
    "short": lambda f, n: f.head(n % 5),
    "skipped": lambda f, n: f.drop(index=f.index[n % max(1, len(f)) : n % max(1, len(f)) + 3]),
    "turned": lambda f, n: f.iloc[::-1],
    "repeated": lambda f, n: pd.concat([f, f.head(n % 4)]),
    "column twice": lambda f, n: pd.concat([f, f.iloc[:, -1:]], axis=1),
    "column of nothing": lambda f, n: f.assign(b=np.nan),
    "column of text": lambda f, n: f.assign(b="text"),
    "no column": lambda f, n: f[[c for c in f.columns if c == "date"]],
    "no date": lambda f, n: f.drop(columns="date", errors="ignore"),
    "date in the index": lambda f, n: f.set_index("date") if "date" in f.columns else f,
    "numbers for names": lambda f, n: f.rename(columns={"a": n, "b": str(n)}),
    "no name": lambda f, n: f.rename(columns={"a": ""}),
    "integers": lambda f, n: f.assign(date=np.arange(len(f)) * (n - 5)),
    "floats": lambda f, n: f.assign(date=np.arange(len(f)) / 3),
    "long": lambda f, n: f.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"}),
    "zones": lambda f, n: f.assign(date=f"2024-03-30T00:00+0{n % 10}:00"),
    "categories": lambda f, n: f.astype("category"),
    "complex": lambda f, n: f.assign(b=1j),
    "periods": lambda f, n: f.assign(date=pd.period_range("2024", periods=len(f), freq="D")),
    "many levels": lambda f, n: f.set_axis(pd.MultiIndex.from_product([["x"], f.columns]), axis=1),
}


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
@given(
    rows=st.integers(0, 40),
    freq=st.sampled_from(["h", "15min", "D", "B", "W", "MS", "YE"]),
    spoils=st.lists(st.tuples(st.sampled_from(sorted(SPOILS)), st.integers(0, 50)), min_size=1, max_size=3),
    as_file=st.booleans(),
    na=st.sampled_from([(), (-9999,)]),
)
def test_a_sentence_or_an_answer(
    tmp_path: Path, rows: int, freq: str, spoils: list[tuple[str, int]], as_file: bool, na: tuple[float, ...]
) -> None:
    frame = wide(rows, freq=freq)
    for name, number in spoils:
        try:
            frame = SPOILS[name](frame, number)
        except (KeyError, ValueError, TypeError):  # a spoilt table need not bear to be spoilt again
            continue
    before = frame.copy(deep=True)
    source: pd.DataFrame | Path = frame
    if as_file:
        source = tmp_path / "mine.csv"
        frame.to_csv(source, index=False)
    try:
        data = load_dataset(source, na=na)
    except UsageError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
    else:
        assert (
            isinstance(data, Dataset)
            and data.stamps is not None
            and not np.isinf(data.values).any()
            and len(data.values) == len(data.stamps)
        )
        assert pd.Index(data.stamps).is_monotonic_increasing and pd.Index(data.stamps).is_unique
        assert not np.isnan(data.train_values).all(axis=0).any()
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("name", sorted(SPOILS))
@pytest.mark.parametrize("as_file", [False, True], ids=["frame", "file"])
def test_each_fault_alone(name: str, as_file: bool, tmp_path: Path) -> None:
    frame = SPOILS[name](wide(30), 7)
    source: pd.DataFrame | Path = frame
    if as_file:
        source = tmp_path / "mine.csv"
        frame.to_csv(source, index=False)
    try:
        assert isinstance(load_dataset(source), Dataset)
    except UsageError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
