"""Rows of a user's table: which series and time stamp each belongs to, and its cells, which are not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from femts.data.check import LARGEST, MISSING, check_unique, checked_numbers, parsed, without_stamps
from femts.data.column_names import ROW
from femts.data.columns import holds_dates, match_columns
from femts.data.describe import count
from femts.data.frequency import order_of
from femts.data.pieces import CELLS, slices
from femts.data.schema import Schema
from femts.data.series_rows import from_rows
from femts.data.stamps import as_text, read_stamps
from femts.errors import GapWarning, UsageError, warn
from femts.text import Message, argument, quote

Array = NDArray[np.float64]
MOST_UNDATED = 0.2  # share of rows without a date that are left out; with more, an empty cell may repeat the one above


@dataclass(frozen=True, eq=False)
class Rows:
    """N rows of a user's table, in its order.

    Attributes:
        frame: cells of the columns other than time stamps and, in a long table, series names.
        stamps: (N,) dates or whole numbers.
        codes: (N,), number of the series of each row.
        series: names of the series, in order of appearance; a single empty one for a wide table.
        schema: how the table is read, with the names of its columns.
        where: description of the table, to start messages with.
        time: name of the column of time stamps.
        long: whether a column names the series.
        given: names of all columns of the table, in order.
        notes: messages to show the user once.
    """

    frame: pd.DataFrame
    stamps: pd.Index
    codes: NDArray[np.integer[Any]]
    series: tuple[str, ...]
    schema: Schema
    where: str
    time: str
    long: bool
    given: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of cells."""
        return tuple(self.frame.columns)

    def only(self, columns: Iterable[str]) -> Rows:
        """The same rows with those of `columns` that the table has."""
        kept = set(columns)
        return replace(self, frame=self.frame[[name for name in self.columns if name in kept]])

    def take(self, rows: NDArray[Any]) -> Rows:
        """The given rows, by number (n,) or as a mask (N,)."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return replace(self, frame=self.frame.iloc[places], stamps=self.stamps[places], codes=self.codes[places])

    def values(self, columns: Sequence[str] | None) -> Array:
        """Numbers (N, K) of `columns`, NaN where missing; None takes all, and a long table may have others.

        Raises:
            UsageError: As in `checked_numbers`.
        """
        frame, na = self.frame if columns is None or not self.long else self.frame[list(columns)], self.schema.na or ()
        try:
            return checked_numbers(frame, columns, self.where, na)
        except UsageError:
            for code, name in enumerate(self.series if self.long else ()):  # raised with the name of the series
                where = f"Series '{quote(name)}' of {self.where}"
                checked_numbers(frame[self.codes == code], columns, where, na)
            raise

    def taken(self, columns: Sequence[str]) -> Array:
        """As `values`, but the rows of a large table lose these columns, whose cells would be in memory twice."""
        made = self.values(columns)
        self.leave(columns)
        return made

    def taken_exactly(self, columns: Sequence[str]) -> NDArray[Any]:
        """As `taken`, in single precision for a large table whose numbers are the same in it."""
        if len(self) * len(columns) < CELLS:
            return self.taken(columns)
        made: NDArray[Any] = np.empty((len(self), len(columns)), dtype=np.float32)
        for k, name in enumerate(columns):
            plain = is_numeric_dtype(self.frame[name])  # text is read as a whole
            for rows in slices(len(self)) if plain else [slice(None)]:
                some = replace(self, frame=self.frame.iloc[rows][[name]])
                try:
                    numbers = some.values([name])[:, 0]
                except UsageError:
                    self.values(columns)  # raises with the number of the row
                    raise
                made[rows, k] = numbers
                if made.dtype == np.float32 and not np.array_equal(made[rows, k], numbers, equal_nan=True):
                    made = made.astype(np.float64)
                    made[rows, k] = numbers
            self.leave([name])
        return made

    def leave(self, columns: Iterable[str]) -> None:
        """Remove `columns` from these rows themselves, because those of a large table take much memory."""
        for name in columns:
            del self.frame[name]

    def readable(self, columns: Sequence[str]) -> Array:
        """Numbers (N, K) of `columns`, NaN also for what is not a number or too large."""
        made = np.full((len(self), len(columns)), np.nan)
        for k, name in enumerate(columns):
            if name in self.frame.columns:
                made[:, k] = parsed(self.frame[name], self.schema.na or ())[0]
        made[~(np.abs(made) <= LARGEST)] = np.nan
        return made

    def in_order(self) -> NDArray[np.intp] | None:
        """Row numbers by series and then by time; None if the rows are in this order."""
        numbers = as_numbers(self.stamps)
        later = (self.codes[1:] > self.codes[:-1]) | (
            (self.codes[1:] == self.codes[:-1]) & (numbers[1:] >= numbers[:-1])
        )
        return None if later.all() else np.lexsort((numbers, self.codes))


def as_numbers(stamps: pd.Index) -> NDArray[np.int64]:
    """Time stamps as whole numbers, in the unit of dates."""
    return stamps.asi8 if isinstance(stamps, pd.DatetimeIndex) else stamps.to_numpy(dtype=np.int64)


def read_rows(
    frame: pd.DataFrame, schema: Schema, where: str, freq: str | None = None, needed: Sequence[str] = ()
) -> Rows:
    """Find series and time stamps of a table.

    Args:
        frame: the table, from `to_frame`.
        schema: how to read it.
        where: description of the table, to start messages with.
        freq: step between time stamps, if it is known.
        needed: columns that a long table of several series has to have.

    Raises:
        UsageError: There are no time stamps, or one or the name of a series cannot be read.

    Warns:
        GapWarning: A few rows without a date are left out.
    """
    frame, schema, notes = _arranged(frame, schema, where)
    names, columns = schema.form, list(frame.columns)
    by_dates = names.dates if names.time == ROW and ROW not in columns else None
    time = by_dates or names.time_among(columns)
    keyed = {names.series, names.dates if names.dates in columns else names.time_among(columns), *needed}
    long = names.is_long(frame) if schema.panel is False else keyed <= set(columns)
    if time not in columns:
        raise without_stamps(frame, schema, where)
    if not long and time != "date" and "date" in columns:
        if holds_dates(frame["date"]):
            notes = (*notes, f"column 'date' is left out, since '{quote(time)}' holds the time stamps")
            frame, columns = frame.drop(columns="date"), [name for name in columns if name != "date"]
        elif not schema.panel:
            raise UsageError(
                f"{where} has a column 'date' in addition to its time stamps in '{quote(time)}'; rename or drop it."
            )
    codes, series = number_series(frame[names.series] if long else None, len(frame), where)
    try:
        stamps, more = read_stamps(frame[time], where, None if by_dates else freq or schema.freq)
    except UsageError:
        cells = as_text(frame[time]).str.strip().str.lower()
        without = (frame[time].isna() | cells.isin(MISSING)).to_numpy()
        if not 0 < without.mean() <= MOST_UNDATED:
            raise
        many, first = int(without.sum()), int(np.argmax(without)) + 1
        whose = f"{where} has {count(many, 'row')} without a date, the first at data row {first}"
        warn(f"{whose}; {'it is' if many == 1 else 'they are'} left out.", GapWarning)
        rows = read_rows(frame[~without].reset_index(drop=True), schema, where, freq, needed)
        return replace(rows, notes=(*notes, *rows.notes))
    if schema.freq is not None and pd.MultiIndex.from_arrays([codes, stamps]).has_duplicates:
        exact = read_stamps(frame[time], where)  # two may have been moved onto the same step
        if not pd.MultiIndex.from_arrays([codes, exact[0]]).has_duplicates:
            stamps, more = exact
    notes = (*notes, *more)
    if isinstance(stamps, pd.DatetimeIndex) and (by_dates or schema.freq == "1"):
        if not by_dates:
            note = f"its rows are numbered in the order of the dates in '{quote(time)}'"
            notes = (*notes, Message(f"{note}; set the season length with {argument('season=N')}"))
        names = replace(names, time=ROW, dates=time)
        stamps = _numbered(stamps, codes, series, where)
    keys = [name for name in (names.series, *names.keys) if name in columns] if long else []
    return Rows(
        frame=frame.drop(columns=[time, *keys]),
        stamps=stamps.rename(None),
        codes=codes,
        series=series,
        schema=replace(schema, form=names),
        where=where,
        time=names.time_among(columns),
        long=long,
        given=tuple(name for name in columns if name not in keys[1:]),
        notes=notes,
    )


def numbered_rows(frame: pd.DataFrame, schema: Schema, where: str) -> Rows:
    """Rows of a table without time stamps: those of a frame that was cut keep the numbers of its index."""
    check_unique(frame.columns, where)
    index = frame.index
    counts = pd.api.types.is_integer_dtype(index) and index.is_monotonic_increasing and index.is_unique
    stamps = pd.Index(index.to_numpy(dtype=np.int64)) if counts else pd.RangeIndex(len(frame))
    codes, series = number_series(None, len(frame), where)
    return Rows(frame, stamps, codes, series, schema, where, ROW, long=False, given=tuple(frame.columns))


def _arranged(frame: pd.DataFrame, schema: Schema, where: str) -> tuple[pd.DataFrame, Schema, tuple[str, ...]]:
    """The frame with one row per time stamp and series, the schema with the names of its columns, and notes."""
    check_unique(frame.columns, where)
    frame, names, notes = from_rows(frame, schema.form, where, schema.na or ())
    if names.time_among(list(frame.columns)) not in frame.columns:
        names = match_columns(frame, names)
    if schema.panel and names.time is None and {names.series, "date"} <= set(frame.columns):
        names = replace(names, time="date")
    return frame, replace(schema, form=names), notes


def number_series(column: pd.Series | None, rows: int, where: str) -> tuple[NDArray[np.integer[Any]], tuple[str, ...]]:
    """Number of the series in each row, and the names of the series in order of appearance; without a column of names,
    all `rows` rows are one series without a name.

    Raises:
        UsageError: A row has no name.
    """
    if column is None:
        return np.zeros(rows, dtype=np.int32), ("",)
    try:
        categorical = isinstance(column.dtype, pd.CategoricalDtype)
        codes, cells = _numbered_categories(column) if categorical else pd.factorize(column)
    except TypeError:  # unhashable cells, such as lists
        codes, cells = pd.factorize(column.map(quote))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise UsageError(f"{where} has no name in '{quote(column.name)}' at data row {row + 1}; name its series.")
    names = [str(cell) for cell in cells]
    if len(set(names)) < len(names):  # 1 and "1" are written alike
        again, unique = pd.factorize(pd.Series(names))
        codes, names = again[codes], list(unique)
    return codes.astype(np.int32, copy=False), tuple(names)  # half the memory of the numbers of pandas


def _numbered_categories(column: pd.Series) -> tuple[NDArray[np.int32], pd.Index]:
    """As `pd.factorize` of a categorical, with less memory."""
    given = column.cat.codes.to_numpy()
    there = pd.unique(given)
    there = there[there >= 0]
    places = np.full(len(column.cat.categories) + 1, -1, dtype=np.int32)  # the last one is of missing cells
    places[there] = np.arange(len(there))
    codes = np.empty(len(given), dtype=np.int32)
    for rows in slices(len(given)):
        codes[rows] = places[given[rows]]
    return codes, column.cat.categories[there]


def _numbered(
    dates: pd.DatetimeIndex, codes: NDArray[np.integer[Any]], series: tuple[str, ...], where: str
) -> pd.Index:
    """Number of each row within its series, from 0 in the order of the dates; UsageError for a date twice."""
    refuse_repeats(dates, codes, series, where, several=series != ("",))
    order = np.lexsort((dates.asi8, codes))
    begins = np.append(True, codes[order][1:] != codes[order][:-1]) if len(order) else order.astype(bool)
    numbers = np.empty(len(dates), dtype=np.int64)
    numbers[order] = np.arange(len(dates)) - np.flatnonzero(begins)[begins.cumsum() - 1]
    return pd.Index(numbers)


def refuse_repeats(
    stamps: pd.Index, codes: NDArray[np.integer[Any]], series: Sequence[str], where: str, several: bool = False
) -> None:
    """Raise UsageError if a series has the same time stamp twice; `several` says that there are series with names."""
    if not several:
        order_of(stamps, where)
        return
    again = pd.MultiIndex.from_arrays([codes, stamps]).duplicated()
    if again.any():
        row = int(np.argmax(again))
        raise UsageError(
            f"{where} has series '{quote(series[codes[row]])}' twice at {stamps[row]} (data row {row + 1}); keep one "
            "of the rows."
        )
