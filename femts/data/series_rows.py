"""Conversion of tables with one series per row, as published by competitions, to long tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from femts.data.check import check_values, words_of
from femts.data.column_names import ROW, ColumnNames
from femts.data.columns import holds_dates
from femts.data.stamps import as_text
from femts.text import quote


def from_rows(
    frame: pd.DataFrame, names: ColumnNames, where: str, na: Sequence[float] = ()
) -> tuple[pd.DataFrame, ColumnNames, tuple[str, ...]]:
    """Convert a table with one series per row to a long one, with its column names and a note; other tables are
    unchanged.

    The first column names the series. The names of the other columns are time stamps if they are dates; otherwise steps
    are numbered from 0. Empty cells before the first and after the last value of a series are dropped.

    Raises:
        UsageError: A cell is not a number; the message says which.
    """
    series = _series_of(frame, names)
    if series is None:
        return frame, names, ()
    table = check_values(frame.iloc[:, 1:], None, where, na)
    values, headers = table.to_numpy(), pd.Series(table.columns, name="date")
    dated = names.time is None and holds_dates(headers)
    here = ~np.isnan(values)
    begins, ends = here.argmax(1), here.shape[1] - here[:, ::-1].argmax(1)
    ends = np.where(here.any(1), ends, 1)  # a series without values keeps one step, so that it is reported
    steps = np.arange(here.shape[1])
    codes, places = np.nonzero((steps >= begins[:, None]) & (steps < ends[:, None]))
    names = replace(names, time=None if dated else ROW, series=series)
    long = pd.DataFrame(
        {
            series: pd.Categorical.from_codes(codes, as_text(frame.iloc[:, 0])),
            names.time or "ds": pd.Categorical.from_codes(places, headers) if dated else places,
            names.value: values[codes, places],
        }
    )
    others = "the names of the other columns are its dates" if dated else "the other columns are its steps, from 0"
    return long, names, (f"each row is read as a series, named by column '{quote(series)}'; {others}",)


def _series_of(frame: pd.DataFrame, names: ColumnNames) -> str | None:
    """The first column, if it names a series in each row: all others are numeric, and none holds time stamps."""
    columns = list(map(str, frame.columns))
    if len(set(columns)) < max(3, len(columns)) or names.time not in (None, ROW):
        return None
    if {ROW, "date", "ds", names.value} & set(columns):
        return None
    first = frame.iloc[:, 0]
    if first.isna().any() or not as_text(first).is_unique or holds_dates(first):
        return None
    words = words_of(frame.set_axis(columns, axis=1))
    return columns[0] if words in ([columns[0]], [] if columns[0] == names.series else None) else None
