"""Row numbers in place of time stamps, for tables without dates or with uneven ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from femts.data.column_names import ROW, ColumnNames
from femts.data.frequency import order_of
from femts.data.stamps import as_text, read_dates, read_stamps
from femts.errors import UsageError
from femts.text import quote


def with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with row numbers as its first column, taken from the index if that increases by 1."""
    index = frame.index
    counts = pd.api.types.is_integer_dtype(index) and bool((np.diff(index.to_numpy()) == 1).all())
    numbered = frame.reset_index(drop=True)
    numbered.insert(0, ROW, index.to_numpy() if counts else np.arange(len(frame)))
    return numbered


def numbered(frame: pd.DataFrame, names: ColumnNames, where: str) -> pd.DataFrame:
    """Add the column `row` if `names` uses numbers as time stamps and the frame lacks it: from 0 in the order of the
    dates of each series, or else in the order of the rows.

    Raises:
        UsageError: A cell is not a date, or a series has the same date twice.
    """
    columns = list(map(str, frame.columns))
    if names.time != ROW or ROW in columns or len(set(columns)) < len(columns):  # duplicate names are refused later
        return frame
    if names.dates is not None and names.dates in columns:
        return _by_dates(frame.set_axis(columns, axis=1), names.dates, names.series, where)
    return frame if names.series in columns else with_numbers(frame)


def by_order(
    frame: pd.DataFrame, names: ColumnNames, freq: str | None, where: str
) -> tuple[pd.DataFrame, ColumnNames, tuple[str, ...]]:
    """Number the rows of a table by date if the step `freq` given by the user is 1; unchanged if its time stamps are
    numbers.

    Raises:
        UsageError: As in `numbered`.
    """
    columns = list(map(str, frame.columns))
    time = names.time_among(columns)
    if freq != "1" or time not in columns or len(set(columns)) < len(columns):
        return frame, names, ()
    if not isinstance(read_stamps(frame.iloc[:, columns.index(time)], where, freq)[0], pd.DatetimeIndex):
        return frame, names, ()
    names = replace(names, time=ROW, dates=time)
    note = f"its rows are numbered in the order of the dates in '{quote(time)}'"
    return numbered(frame, names, where), names, (f"{note}; set the season length with season=N",)


def _by_dates(frame: pd.DataFrame, time: str, series: str, where: str) -> pd.DataFrame:
    dates, codes = read_dates(frame[time], where), np.zeros(len(frame), dtype=np.int64)
    if series in frame.columns:
        codes = pd.factorize(as_text(frame[series]))[0]
        again = pd.MultiIndex.from_arrays([codes, dates]).duplicated()
        if again.any():
            row = int(np.argmax(again))
            raise UsageError(
                f"{where} has series '{quote(frame[series].iloc[row])}' twice at {dates[row]} (data row {row + 1}); "
                "keep one of the rows."
            )
    else:
        order_of(dates, where)  # refuses repeats
    order = np.lexsort((dates.asi8, codes))
    begins = np.append(True, codes[order][1:] != codes[order][:-1]) if len(order) else order.astype(bool)
    numbers = np.empty(len(frame), dtype=np.int64)
    numbers[order] = np.arange(len(frame)) - np.flatnonzero(begins)[begins.cumsum() - 1]
    made = frame.drop(columns=time).reset_index(drop=True)
    made.insert(0, ROW, numbers)
    made.attrs = frame.attrs
    return made
