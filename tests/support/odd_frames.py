"""Tables as nobody should bring them, and as somebody will: stamps, cells and names of every kind, drawn one by one."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

Maker = Callable[[int], Any]


def _hours(n: int) -> pd.DatetimeIndex:
    return pd.date_range("2024-03-30", periods=n, freq="h")


def _waves(n: int) -> np.ndarray:
    return np.sin(np.arange(n) / 3) + 0.1 * np.cos(np.arange(n) ** 2)


def _changed(values: Any, at: int, value: object) -> list[Any]:
    made = list(values)
    if made:
        made[at % len(made)] = value
    return made


STAMPS: dict[str, Maker] = {
    "hours": _hours,
    "days": lambda n: pd.date_range("2020-01-01", periods=n, freq="D"),
    "months": lambda n: pd.date_range("2000-01-31", periods=n, freq="ME"),
    "business days": lambda n: pd.date_range("2020-01-01", periods=n, freq="B"),
    "seconds as datetime64[s]": lambda n: pd.date_range("2020-01-01", periods=n, freq="s").as_unit("s"),
    "zone": lambda n: pd.date_range("2024-03-30", periods=n, freq="h", tz="Europe/Berlin"),
    "days over a change of clocks": lambda n: pd.date_range("2024-03-20", periods=n, freq="D", tz="Europe/Berlin"),
    "two zones": lambda n: [f"2024-03-30T{i % 24:02d}:00+0{i % 3}:00" for i in range(n)],
    "text": lambda n: _hours(n).strftime("%Y-%m-%d %H:%M"),
    "American text": lambda n: pd.date_range("2024-01-01", periods=n).strftime("%m/%d/%Y"),
    "German text": lambda n: pd.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y"),
    "categories": lambda n: pd.Categorical(_hours(n).astype(str)),
    "text of pandas": lambda n: pd.array(_hours(n).astype(str), dtype="string"),
    "descending": lambda n: _hours(n)[::-1],
    "repeated": lambda n: _changed(_hours(n), 3, _hours(9)[2]),
    "not a time": lambda n: _changed(_hours(n), 5, pd.NaT),
    "all the same": lambda n: [pd.Timestamp("2024-01-01")] * n,
    "a stray of 1970": lambda n: _changed(_hours(n), 0, pd.Timestamp("1970-01-01")),
    "a stray of 2224": lambda n: _changed(_hours(n), -1, pd.Timestamp("2224-01-01")),
    "the last that there are": lambda n: pd.date_range(end="2261-12-31", periods=n, freq="D"),
    "before nanoseconds": lambda n: np.datetime64("1500-01-01", "s") + np.arange(n) * np.timedelta64(86400, "s"),
    "after nanoseconds": lambda n: [f"{2300 + i}-01-01" for i in range(n)],
    "five digits of a year": lambda n: [f"{12000 + i}-01-01" for i in range(n)],
    "numbers": lambda n: np.arange(n) * 5 - 20,
    "negative step": lambda n: -np.arange(n),
    "years": lambda n: np.arange(1990, 1990 + n),
    "huge numbers": lambda n: np.arange(n) + 2**62,
    "stray number": lambda n: _changed(range(n), -1, 4_000_000_000),
    "extreme numbers": lambda n: _changed(_changed(range(n), 0, -(2**63)), -1, 2**63 - 1),
    "fractions": lambda n: np.arange(n) / 3,
    "time of day": lambda n: [f"{i % 24:02d}:30" for i in range(n)],
    "times": lambda n: [datetime.time(i % 24) for i in range(n)],
    "dates of Python": lambda n: [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(n)],
    "periods": lambda n: pd.period_range("2024", periods=n, freq="D"),
    "quarters": lambda n: [f"{1950 + i // 4} Q{i % 4 + 1}" for i in range(n)],
    "weeks": lambda n: [f"{1950 + i // 52}-W{i % 52 + 1:02d}" for i in range(n)],
    "a week that is none": lambda n: _changed([f"{1950 + i // 52}-W{i % 52 + 1:02d}" for i in range(n)], 7, "1951-W77"),
    "months by name": lambda n: pd.date_range("1950-01-01", periods=n, freq="MS").strftime("%b %Y"),
    "months as numbers": lambda n: pd.date_range("1950-01-01", periods=n, freq="MS").strftime("%Y%m").astype(int),
    "years as fractions": lambda n: np.arange(n) + 1850.0,
    "quarters as periods": lambda n: pd.period_range("1950Q1", periods=n, freq="Q"),
    "weeks as periods": lambda n: pd.period_range("1950-01-01", periods=n, freq="W"),
    "periods too early": lambda n: pd.period_range("1300", periods=n, freq="Y"),
    "clocks set back": lambda n: [f"2024-10-{27 - (i < 9)}T{i % 24:02d}:00+0{1 + (i < 12)}:00" for i in range(n)],
    "offsets of some": lambda n: [f"2024-10-27 {i % 24:02d}:00{'+01:00' * (i % 5 > 1)}" for i in range(n)],
    "in no order": lambda n: _hours(n)[np.random.default_rng(n).permutation(n)],
    "a long hole": lambda n: _hours(3 * n)[[*range(n // 2), *range(3 * n - n + n // 2, 3 * n)]],
    "names": lambda n: ["north", "south"][:1] * (n // 2) + ["south"] * (n - n // 2),
    "differences": lambda n: pd.to_timedelta(np.arange(n), unit="h"),
    "truths": lambda n: np.arange(n) % 2 == 0,
    "mixed": lambda n: [(1, "x", None, pd.Timestamp("2024"), 2.5)[i % 5] for i in range(n)],
    "lists": lambda n: [[i] for i in range(n)],
    "nothing": lambda n: [None] * n,
}
CELLS: dict[str, Maker] = {
    "waves": _waves,
    "whole": lambda n: np.arange(n) % 7,
    "single": lambda n: _waves(n).astype(np.float32),
    "half": lambda n: _waves(n).astype(np.float16),
    "bytes of numbers": lambda n: (np.arange(n) % 100).astype(np.int8),
    "unsigned": lambda n: np.full(n, 2**64 - 1, dtype=np.uint64) - np.arange(n).astype(np.uint64),
    "nullable": lambda n: pd.array([None if i % 9 == 3 else i for i in range(n)], dtype="Int64"),
    "nullable truths": lambda n: pd.array([None if i % 9 == 3 else i % 2 == 0 for i in range(n)], dtype="boolean"),
    "nullable fractions": lambda n: pd.array([None if i % 9 == 3 else i / 2 for i in range(n)], dtype="Float64"),
    "truths": lambda n: np.arange(n) % 3 == 0,
    "categories of numbers": lambda n: pd.Categorical(np.arange(n) % 4),
    "categories of text": lambda n: pd.Categorical([str(i % 3) for i in range(n)]),
    "categories of words": lambda n: pd.Categorical(["ab"[i % 2] for i in range(n)]),
    "text": lambda n: ["word"] * n,
    "numbers as text": lambda n: [f" {value:.3f}" for value in _waves(n)],
    "decimal commas": lambda n: [f"{value:.3f}".replace(".", ",") for value in _waves(n)],
    "thousands": lambda n: [f"{value * 1e6:,.2f}" for value in _waves(n)],
    "names": lambda n: ["north" if i % 2 else "south" for i in range(n)],
    "long text": lambda n: _changed(_waves(n), 7, "y" * 100_000),
    "text that acts": lambda n: _changed(_waves(n), 7, "\x1b[2J"),
    "bytes": lambda n: [b"1.5"] * n,
    "decimals": lambda n: [Decimal(i) / 7 for i in range(n)],
    "mixed": lambda n: [(1, 2.5, None, True)[i % 4] for i in range(n)],
    "lists": lambda n: [[i] for i in range(n)],
    "mappings": lambda n: [{"a": i} for i in range(n)],
    "complex": lambda n: _waves(n) + 1j,
    "dates": _hours,
    "differences": lambda n: pd.to_timedelta(np.arange(n), unit="h"),
    "sparse": lambda n: pd.arrays.SparseArray(np.arange(n) % 5 * 1.0),
    "huge": lambda n: _waves(n) * 1e300,
    "huge whole": lambda n: [10**400 + i for i in range(n)],
    "endless whole": lambda n: _changed([*range(n)], 5, 10**5000),
    "near 1e30": lambda n: 1e30 + _waves(n),
    "of 1e30": lambda n: 1e30 * _waves(n),
    "of 1e-300": lambda n: 1e-300 * _waves(n),
    "far off at the end": lambda n: _changed(_waves(n), -2, 1e37),
    "far off at the start": lambda n: _changed(_waves(n), 1, 1e37),
    "constant": lambda n: np.full(n, 3.25),
    "zero": lambda n: np.zeros(n),
    "infinite": lambda n: _changed(_waves(n), 4, np.inf),
    "gaps": lambda n: np.where(np.arange(n) % 5 == 2, np.nan, _waves(n)),
    "begins late": lambda n: np.where(np.arange(n) < n // 2, np.nan, _waves(n)),
    "ends early": lambda n: np.where(np.arange(n) > n // 2, np.nan, _waves(n)),
    "empty": lambda n: np.full(n, np.nan),
    "nothing": lambda n: [None] * n,
    "one step": lambda n: (np.arange(n) > n // 2) * 1.0,
}
GOOD_STAMPS = (
    *("hours", "days", "months", "zone", "text", "numbers", "dates of Python", "German text"),
    *("quarters", "weeks", "months by name", "months as numbers", "years as fractions", "in no order", "descending"),
)
GOOD_CELLS = ("waves", "whole", "single", "nullable", "numbers as text", "gaps", "constant", "of 1e30")
NAMES = (
    *("a", "b", "a-lo-80", "", " ", "date", "ds", "y", "unique_id", "step"),
    *("=1+1", "\x1b[2J", "n" * 5000, "é", "x\ny", "a,b"),
)
OTHER_NAMES = (0, 1.5, None, ("a", "b"), True, float("nan"), pd.Timestamp("2024-01-01"))


@st.composite
def good_frames(draw: st.DrawFn) -> pd.DataFrame:
    """A valid wide table."""
    rows = draw(st.integers(120, 160))
    stamps = draw(st.sampled_from(GOOD_STAMPS))
    frame = pd.DataFrame({"date": STAMPS[stamps](rows)})
    for name in draw(st.lists(st.sampled_from(NAMES[:2] + NAMES[10:]), min_size=1, max_size=3, unique=True)):
        frame[name] = CELLS[draw(st.sampled_from(GOOD_CELLS))](rows)
    return frame


@st.composite
def odd_frames(draw: st.DrawFn) -> Any:
    """An arbitrary frame, series or table of another library."""
    rows = draw(st.one_of(st.integers(0, 6), st.integers(20, 150)))
    stamps = draw(st.sampled_from(sorted(STAMPS)))
    names = draw(st.lists(st.one_of(st.sampled_from(NAMES), st.sampled_from(OTHER_NAMES)), max_size=4))
    parts: list[pd.Series] = [] if draw(st.integers(0, 9)) == 9 else [pd.Series(STAMPS[stamps](rows), name="date")]
    parts += [pd.Series(CELLS[draw(st.sampled_from(sorted(CELLS)))](rows), name=name) for name in names]
    frame = (
        pd.concat([part.reset_index(drop=True) for part in parts], axis=1) if parts else pd.DataFrame(index=range(rows))
    )
    frame.columns = pd.Index([part.name for part in parts], dtype=object)
    return draw(st.sampled_from(SHAPES))(frame)


def _long(frame: pd.DataFrame) -> pd.DataFrame:
    """The table in long form if possible."""
    try:
        return frame.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    except (KeyError, TypeError, ValueError):
        return frame


def _levels(frame: pd.DataFrame) -> pd.DataFrame:
    return (
        frame.set_axis(pd.MultiIndex.from_tuples([("x", str(c)) for c in frame.columns]), axis=1)
        if len(frame.columns)
        else frame
    )


def _indexed(frame: pd.DataFrame, to: Callable[[pd.Index], pd.Index] = lambda index: index) -> pd.DataFrame:
    """The table with its stamps as an unnamed index if possible."""
    try:
        return frame.set_axis(to(pd.Index(frame.pop("date"))), axis=0)
    except (KeyError, TypeError, ValueError, AttributeError):
        return frame


def _in_parts(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with a column for each part of its stamps if possible."""
    try:
        stamps = pd.DatetimeIndex(frame["date"])
        parts = {name: getattr(stamps, name) for name in ("year", "month", "day", "hour")}
        return frame.drop(columns="date").assign(**parts)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return frame


def _other(frame: pd.DataFrame) -> Any:
    """The table as a pyarrow table if possible."""
    pyarrow = pytest.importorskip("pyarrow")
    try:
        return pyarrow.Table.from_pandas(frame)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError, KeyError, AttributeError):
        return frame


SHAPES: tuple[Callable[[pd.DataFrame], pd.DataFrame], ...] = (
    *(lambda frame: frame,) * 6,
    _long,
    _long,
    _levels,
    lambda frame: frame.set_axis([pd.Timestamp("2024")] * len(frame)),
    lambda frame: frame.sample(frac=1, random_state=0),
    lambda frame: frame.iloc[:, ::-1],
    lambda frame: frame.T,
    lambda frame: frame.astype(object),
    lambda frame: pd.concat([frame, frame]),
    lambda frame: frame.set_index("date") if list(frame.columns).count("date") == 1 else frame,
    lambda frame: frame.rename(columns={"date": "Zeit"}),
    _in_parts,
    lambda frame: _in_parts(frame).rename(columns={"month": "quarter"}),
    lambda frame: frame.rename(columns={"date": "Zeit", "a": "shop"}),
    _indexed,
    lambda frame: _indexed(frame, lambda index: index.to_period("D")),
    lambda frame: _indexed(frame).iloc[:, 0] if frame.shape[1] > 1 else frame,
    _other,
)
