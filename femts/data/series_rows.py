"""Conversion of tables with one series per row, as published by competitions and statistics offices, to long tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from femts.data.check import check_values, words_of
from femts.data.column_names import ROW, ColumnNames
from femts.data.columns import BETWEEN, holds_dates
from femts.data.describe import quoted_names
from femts.data.header import SAME, TOTALS
from femts.data.stamps import as_text, is_short_month
from femts.text import quote

LEAST_DATES = 3  # columns whose names are dates
LEAST_STEPS = 12  # columns whose names count steps
MOST_KEYS = 4  # columns that name a series together
_STEP = re.compile(r"(d|day|w|wk|week|m|month|q|quarter|y|year|h|hour|t|step|period)[ _-]?0*(\d{1,5})", re.IGNORECASE)
_YEAR = re.compile(r"(?:y|yr|year)?\s*([12]\d{3})(?:\s*\[YR[12]\d{3}\])?", re.IGNORECASE)


def from_rows(
    frame: pd.DataFrame, names: ColumnNames, where: str, na: Sequence[float] = ()
) -> tuple[pd.DataFrame, ColumnNames, tuple[str, ...]]:
    """Convert a table with one series per row to a long one, with its column names and notes; other tables are
    unchanged.

    Either the first column names the series and all others are numbers, whose names are time stamps if they are dates,
    or else steps, numbered from 0. Or there are at least `LEAST_DATES` columns whose names are dates, or steps such as
    `d_1` to `d_400`, and those before them name the series: as few of them as tell all rows apart. Empty cells before
    the first and after the last value of a series are dropped.

    Raises:
        UsageError: A cell is not a number; the message says which.
    """
    columns = list(map(str, frame.columns))
    if names.time not in (None, ROW) or {ROW, "date", "ds"} & set(columns) or len(set(columns)) < len(columns):
        return frame, names, ()
    series = _series_of(frame, names)
    if series is not None and len(dates_among(columns[1:])) in (0, len(columns) - 1):
        values, keys, left = frame.iloc[:, 1:], [series], list[str]()
        cells = as_text(frame.iloc[:, 0])
    else:
        found = dated_columns(frame, names)
        if found is None:
            return frame, names, ()
        frame, dates, keys, left = found
        series, values = "+".join(keys), frame[dates].rename(columns=_plain_year)
        cells = _named(frame, keys)
    table = check_values(values, None, where, na)
    numbers, headers = table.to_numpy(), pd.Series(table.columns, name="date")
    totals = _totals(cells, numbers)
    total = "".join(cells[totals])
    cells, numbers = cells[~totals], numbers[~totals]
    dated = names.time is None and holds_dates(headers)
    here = ~np.isnan(numbers)
    begins, ends = here.argmax(1), here.shape[1] - here[:, ::-1].argmax(1)
    ends = np.where(here.any(1), ends, 1)  # a series without values keeps one step, so that it is reported
    steps = np.arange(here.shape[1])
    codes, places = np.nonzero((steps >= begins[:, None]) & (steps < ends[:, None]))
    names = replace(names, time=None if dated else ROW, series=series)
    long = pd.DataFrame(
        {
            series: pd.Categorical.from_codes(codes, cells),
            names.time or "ds": pd.Categorical.from_codes(places, headers) if dated else places,
            names.value: numbers[codes, places],
        }
    )
    others = "the names of the other columns are its dates" if dated else "the other columns are its steps, from 0"
    named = f"column{'s' * (len(keys) > 1)} {quoted_names(keys)}"
    notes: tuple[str, ...] = (f"each row is read as a series, named by {named}; {others}",)
    if totals.any():
        notes += (f"row '{quote(total)}' is left out, since it is the sum of the others",)
    if not left:
        return long, names, notes
    rest = f"column{'s' * (len(left) > 1)} {quoted_names(left)} {'are' if len(left) > 1 else 'is'}"
    return long, names, (*notes, f"{rest} left out, since {named} name{'s' * (len(keys) == 1)} the series")


def _totals(cells: pd.Series, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the row that is called a total and holds the sums of all others, (N,); none of two series or fewer."""
    named = cells.str.strip().str.fullmatch(TOTALS.pattern, flags=re.IGNORECASE).to_numpy(dtype=bool)
    if named.sum() != 1 or len(cells) < 4:
        return np.zeros(len(cells), dtype=bool)
    sums, total = np.nansum(numbers[~named], axis=0), numbers[named][0]
    there = ~np.isnan(total)
    same = there.any() and np.allclose(sums[there], total[there], rtol=SAME)
    return named if same else np.zeros(len(cells), dtype=bool)


def _series_of(frame: pd.DataFrame, names: ColumnNames) -> str | None:
    """The first column, if it names a series in each row: all others are numeric, and none holds time stamps."""
    columns = list(map(str, frame.columns))
    if len(columns) < 3 or names.value in columns:
        return None
    first = frame.iloc[:, 0]
    if first.isna().any() or not as_text(first).is_unique or holds_dates(first):
        return None
    words = words_of(frame.set_axis(columns, axis=1))
    return columns[0] if words in ([columns[0]], [] if columns[0] == names.series else None) else None


def dated_columns(
    frame: pd.DataFrame, names: ColumnNames
) -> tuple[pd.DataFrame, list[str], list[str], list[str]] | None:
    """The table, those of its columns whose names are dates or steps, those that name its series, and the others; None if
    it is not of this kind."""
    columns = list(map(str, frame.columns))
    dates = dates_among(columns) or _steps_among(columns, frame)
    others = [name for name in columns if name not in dates and name not in (names.series, *names.keys)]
    if not dates or columns.index(dates[0]) == 0:
        return None
    frame = frame.set_axis(columns, axis=1)
    full = frame[~frame[dates].isna().all(axis=1).to_numpy() | frame[columns[0]].notna().to_numpy()]
    ahead = [name for name in others if columns.index(name) < columns.index(dates[0]) and not full[name].isna().all()]
    given = [name for name in (names.keys or (names.series,)) if name in columns]
    try:
        keys = given or _keys(full, ahead)
    except TypeError:  # cells that cannot be compared, such as lists
        return None
    if keys is None or any(holds_dates(full[name]) for name in keys) or full[keys].isna().all(axis=1).any():
        return None
    if not _named(full, keys).is_unique:
        return None
    left = [name for name in others if name not in keys]
    return full.reset_index(drop=True), dates, list(keys), left


def _named(frame: pd.DataFrame, keys: Sequence[str]) -> pd.Series:
    """Name of the series in each row, from the cells of the columns `keys` that are not empty."""
    first, *others = (as_text(frame[name]).where(frame[name].notna(), "") for name in keys)
    for cells in others:
        first = first + np.where((first != "") & (cells != ""), BETWEEN, "") + cells
    return first


def _steps_among(columns: list[str], frame: pd.DataFrame) -> list[str]:
    """Columns of numbers behind those of text whose names count steps, such as `d_1` to `d_400`."""
    first = next((n for n, name in enumerate(columns) if _STEP.fullmatch(name)), 0)
    found = [match for name in columns[first:] if (match := _STEP.fullmatch(name))]
    counts = [int(match[2]) for match in found]
    even = len(counts) >= LEAST_STEPS and counts == list(range(counts[0], counts[0] + len(counts))) and counts[0] < 2
    if not first or not even or len(found) < len(columns) - first or len({match[1] for match in found}) > 1:
        return []
    numeric = [is_numeric_dtype(dtype) for dtype in frame.dtypes]
    return columns[first:] if all(numeric[first:]) and not any(numeric[:first]) else []


def dates_among(columns: list[str]) -> list[str]:
    """Columns whose names are dates of one kind in order, such as years."""
    years = [name for name in columns if _YEAR.fullmatch(name.strip())]
    found = years or [name for name in columns if is_short_month(name)]  # whose years are clear from one another
    if len(found) < LEAST_DATES and not years:
        found = _dates_by_shape(columns)
    if len(found) < LEAST_DATES:
        return []
    headers = pd.Series(list(map(_plain_year, found)), name="date")
    return found if headers.is_unique and holds_dates(headers) else []


def _dates_by_shape(columns: Sequence[str]) -> list[str]:
    """Columns whose names are dates, of which a few are read of each kind that differ only in their digits."""
    shapes = dict[str, list[str]]()
    for name in columns:
        if sum(map(str.isdigit, name)) > 2:
            shapes.setdefault(re.sub(r"\d+", "0", name), []).append(name)
    few = {shape: {alike[0], alike[len(alike) // 2], alike[-1]} for shape, alike in shapes.items()}
    dated = {name for shape, alike in shapes.items() if all(map(_is_date, few[shape])) for name in alike}
    return [name for name in columns if name in dated]


@lru_cache(maxsize=2**14)
def _is_date(name: str) -> bool:
    return holds_dates(pd.Series([name], name="date"))


def _plain_year(name: str) -> str:
    """A year as it is written in many tables, such as `1990 [YR1990]` of the World Bank, by its digits."""
    found = _YEAR.fullmatch(name.strip())
    return name if found is None else found[1]


def _keys(frame: pd.DataFrame, names: list[str]) -> list[str] | None:
    """As few of the columns `names` as tell all rows of a table apart, words before codes in digits and these before
    numbers; None if they do not."""
    varying = [name for name in names if frame[name].notna().all() and frame[name].nunique() > 1]
    text = [name for name in varying if not is_numeric_dtype(frame[name])]
    words = [name for name in text if pd.to_numeric(as_text(frame[name]), errors="coerce").isna().all()]
    some = [name for name in names if not is_numeric_dtype(frame[name]) and frame[name].nunique() > 1]  # parts of a few
    if len(frame) == 1 and names:
        return next(([name] for name in names if not is_numeric_dtype(frame[name])), None)
    for pool in (words, text, varying, some if words else []):
        for number in range(1, MOST_KEYS + 1):
            for few in combinations(pool, number):
                if not frame.duplicated(list(few)).any():
                    return list(few)
    return None
