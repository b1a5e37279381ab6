"""Reading long tables: all series are checked at once, and only unusual ones individually."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.check import LARGEST, check_frame, check_marks, check_unique, check_values, parsed
from femts.data.columns import infer_columns
from femts.data.frequency import step_of
from femts.data.roles import NO_ROLES
from femts.data.schema import Schema
from femts.data.stamps import first_of_periods, read_stamps
from femts.data.static import read_static
from femts.data.wall_clock import NANOSECONDS, dates_at
from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
DAY = 24 * 3600 * 10**9


class LongTable(NamedTuple):
    """Rows of a long table by series and time, including skipped steps.

    Attributes:
        values: (N, K) float64: targets, past covariates, then future covariates.
        spans: (S, 2), first row of each series and one past its last.
        series: names of the series.
        stamps: time stamp of each row.
        freq: step between time stamps.
        schema: schema with the names of the table's columns.
        static: result of `read_static`; None without static covariates.
        notes: messages to show the user once.
    """

    values: Array
    spans: NDArray[np.int64]
    series: tuple[str, ...]
    stamps: pd.Index
    freq: str
    schema: Schema
    static: pd.DataFrame | None
    notes: tuple[str, ...]


def read_long(frame: pd.DataFrame, schema: Schema, where: str, freq: str | None = None) -> LongTable:
    """Read a long table, or a wide one with one series per column.

    `freq` is the step between rows; None infers it from the longest series.

    Raises:
        UsageError: A series, time stamp or cell is invalid; the message names it.
    """
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_unique(frame.columns, where)
    frame, schema, notes = _settled(frame, schema, where)
    check_unique(frame.columns, where)  # a role may also name the column of time stamps or series
    roles, form = schema.roles, schema.form
    freq = freq or schema.freq
    dates, more = read_stamps(frame[form.time or "ds"], where, freq)
    rows = _SortedRows.of(frame, form.series, dates, where)
    if freq is None:
        freq = rows.step(where)
        dates, periods = first_of_periods(dates, freq)
        if periods:
            rows, more = _SortedRows.of(frame, form.series, dates, where), (*more, *periods)
    columns = (*(roles.target or (form.value,)), *roles.past, *roles.future)
    values, spans, stamps = _series(rows, schema, columns, freq, where)
    static = read_static(frame, roles.static, rows.row_codes, rows.names) if roles.static else None
    return LongTable(values, spans, tuple(rows.names), stamps, freq, schema, static, (*notes, *more))


def _settled(frame: pd.DataFrame, schema: Schema, where: str) -> tuple[pd.DataFrame, Schema, tuple[str, ...]]:
    """The data as a long table, its schema with the names of its columns, and notes on them."""
    notes: tuple[str, ...] = ()
    form, roles = schema.form, schema.roles
    if not {form.series, form.time or "ds"} <= set(frame.columns):
        form, notes = infer_columns(frame, form, where)
        if form.time is None and {form.series, "date"} <= set(frame.columns):
            form = replace(form, time="date")
    schema = replace(schema, form=form)
    time = form.time or "ds"
    columns = [str(column) for column in frame.columns if column not in (form.series, time)]
    if {form.series, time} <= set(frame.columns) and (roles.target or form.value in columns):
        named = replace(roles, target=roles.target or (form.value,)).check(columns, where)
        further = [column for column in columns if column not in named and column not in form.keys]
        if further and not roles.target:
            raise UsageError(
                f"{where} has the additional column '{quote(further[0])}'; name it in past_covariates, "
                "future_covariates or static_covariates, or remove it."
            )
        return frame[[form.series, time, *named]], schema, notes
    if roles.any:
        lacking = next((n for n in (form.series, time, form.value) if n not in frame.columns), form.value)
        raise UsageError(
            f"{where} has no column '{quote(lacking)}', so it is not a long table, and columns of a wide table cannot "
            "have roles in a panel; provide a long table, or remove panel=True."
        )
    return _as_long(frame, schema, form.time_of(frame), where), schema, notes


def _as_long(frame: pd.DataFrame, schema: Schema, time: str, where: str) -> pd.DataFrame:
    """Convert a wide table to a long one."""
    form = schema.form
    if time not in frame.columns:
        check_frame(frame, schema, where=where)  # raises the error that names what is missing
    values = check_values(frame.drop(columns=time), None, where, schema.na)
    rows, columns = values.shape
    stamps = frame[time].iloc[np.tile(np.arange(rows), columns)].reset_index(drop=True)
    names = values.columns.repeat(rows)
    return pd.DataFrame({form.series: names, form.time or "ds": stamps, form.value: values.to_numpy().ravel("F")})


@dataclass(frozen=True, eq=False)
class _SortedRows:
    """Rows of a long table, sorted by series and then by time.

    Attributes:
        frame: the original table, for checks of individual series.
        order: row of the original table for each sorted row; None if it was sorted.
        codes: number of the series of each row.
        names: names of the series, in the order of the table.
        stamps: time stamp of each row.
        dates: time stamps in the order of the original table.
        starts: first row of each series.
    """

    frame: pd.DataFrame
    order: NDArray[np.intp] | None
    codes: NDArray[np.integer[Any]]
    names: Sequence[str]
    stamps: pd.Index
    dates: pd.Index
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, frame: pd.DataFrame, series: str, dates: pd.Index, where: str) -> _SortedRows:
        """Sort the rows of `frame` by the series names in its column `series`; UsageError if it is empty or a name is
        missing."""
        codes, names = number_series(frame[series], where)
        if not names:
            raise UsageError(f"{where} has no rows; provide a table with rows.")
        codes, numbers, order, stamps = codes.astype(np.int32), _numbers_of(dates), None, dates
        if not ((codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (numbers[1:] >= numbers[:-1]))).all():
            order = np.lexsort((numbers, codes))
            codes, stamps = codes[order], dates[order]
        return cls(frame, order, codes, names, stamps, dates, np.searchsorted(codes, np.arange(len(names))))

    def sorted(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Sort `cells`, one per row of the original table."""
        return cells if self.order is None else cells[self.order]

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows of each series."""
        return np.diff(self.starts, append=len(self.codes))

    @property
    def row_codes(self) -> NDArray[np.integer[Any]]:
        """Number of the series of each row of the original table."""
        if self.order is None:
            return self.codes
        codes = np.empty_like(self.codes)
        codes[self.order] = self.codes
        return codes

    def step(self, where: str) -> str:
        """Step of the longest series; UsageError if it has none."""
        longest = int(np.argmax(self.counts))
        first = self.starts[longest]
        stamps = self.stamps[first : first + self.counts[longest]]
        return step_of(stamps.unique(), where)  # repeats are reported later, with their series

    def any_of(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the series that contain any of `rows`."""
        marked = np.zeros(len(self.names), dtype=np.bool_)
        marked[self.codes[rows]] = True
        return marked


def number_series(column: pd.Series, where: str) -> tuple[NDArray[np.intp], list[str]]:
    """Number of the series in each row, and the names of the series in order of appearance.

    Raises:
        UsageError: A row has no name.
    """
    try:
        codes, cells = pd.factorize(column)
    except TypeError:  # unhashable cells, such as lists
        codes, cells = pd.factorize(column.map(quote))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise UsageError(f"{where} has no name in '{quote(column.name)}' at data row {row + 1}; name its series.")
    names = [str(cell) for cell in cells]
    if len(set(names)) < len(names):  # 1 and "1" are written alike
        again, unique = pd.factorize(pd.Series(names))
        codes, names = again[codes], list(unique)
    return codes, names


def _series(
    rows: _SortedRows, schema: Schema, columns: Sequence[str], freq: str, where: str
) -> tuple[Array, NDArray[np.int64], pd.Index]:
    """Values, spans and time stamps of all series in order of time, with empty rows for steps of `freq` that are
    skipped.

    All rows are checked at once; only series with anything unusual are checked individually.

    Raises:
        UsageError: A time stamp or cell is invalid; the message names the first such series.
    """
    values, odd = _cells(rows.frame, columns, schema.na, where)
    at = _positions(rows, freq)
    again = np.zeros(len(at), dtype=np.bool_)
    again[1:] = (at[1:] == at[:-1]) & (rows.codes[1:] == rows.codes[:-1])
    begin, counts = at[rows.starts], rows.counts
    steps = at[rows.starts + counts - 1] - begin + 1
    slow = rows.any_of(rows.sorted(odd) | again | (at < 0)) | (steps > 2 * counts) | ("date" in columns)
    steps = np.where(slow, 0, steps)
    stops = steps.cumsum()
    if (steps == counts).all():
        filled = rows.sorted(values)
    else:
        place, usual = (stops - steps - begin)[rows.codes] + at, ~slow[rows.codes]
        filled = np.full((int(stops[-1]), len(columns)), np.nan)
        filled[place[usual]] = rows.sorted(values)[usual]
    stamps = _stamps(rows, steps, begin, freq)
    if slow.any():
        filled, stamps, stops = _with_odd(rows, schema, columns, (freq, where), slow, (filled, stamps, stops, steps))
    return filled, np.stack([np.append(0, stops[:-1]), stops], axis=1).astype(np.int64), stamps


def _with_odd(
    rows: _SortedRows,
    schema: Schema,
    columns: Sequence[str],
    step: tuple[str, str],
    slow: NDArray[np.bool_],
    read: tuple[Array, pd.Index, NDArray[np.int64], NDArray[np.int64]],
) -> tuple[Array, pd.Index, NDArray[np.int64]]:
    """The arrays `read` with the `slow` series, which are checked individually, inserted."""
    freq, where = step
    filled, stamps, stops, steps = read
    plain = replace(schema.wide(), roles=NO_ROLES)
    pieces, dates, lengths = list[Array](), list[pd.Index](), steps.copy()
    for number, (stop, count) in enumerate(zip(stops.tolist(), steps.tolist(), strict=True)):
        if not slow[number]:
            pieces.append(filled[stop - count : stop])
            dates.append(stamps[stop - count : stop])
            continue
        some = np.arange(rows.starts[number], rows.starts[number] + rows.counts[number])
        some = some if rows.order is None else np.sort(rows.order[some])
        table = rows.frame[list(columns)].iloc[some]
        table.insert(0, "date", rows.dates[some], allow_duplicates=True)
        checked = check_frame(table, plain, columns, freq, f"Series '{quote(rows.names[number])}' of {where}")
        dates.append(pd.Index(checked.pop("date")))
        pieces.append(checked.to_numpy(dtype=np.float64))
        lengths[number] = len(checked)
    return np.concatenate(pieces), dates[0].append(dates[1:]), lengths.cumsum()


def _cells(
    frame: pd.DataFrame, columns: Sequence[str], na: Sequence[float], where: str
) -> tuple[Array, NDArray[np.bool_]]:
    """Numbers (rows, K) of `columns`, NaN where missing, and a mask of rows with unreadable cells."""
    values, odd = np.empty((len(frame), len(columns))), np.zeros(len(frame), dtype=np.bool_)
    for k, name in enumerate(columns):
        values[:, k], unread = parsed(frame[name], na)
        check_marks(frame[name], name, where)
        odd |= False if unread is None else unread
    with np.errstate(invalid="ignore"):
        odd |= ((values > LARGEST) | (values < -LARGEST)).any(1)
    return values, odd


def _numbers_of(stamps: pd.Index) -> NDArray[np.int64]:
    return stamps.asi8 if isinstance(stamps, pd.DatetimeIndex) else stamps.to_numpy(dtype=np.int64)


def _even(stamps: pd.Index, freq: str) -> int | None:
    """Step in the unit of `stamps`; None if its length varies with the calendar, or for another kind of time stamp."""
    if freq.isdecimal() or not isinstance(stamps, pd.DatetimeIndex):
        return int(freq) if freq.isdecimal() and not isinstance(stamps, pd.DatetimeIndex) else None
    offset, unit = to_offset(freq), NANOSECONDS[stamps.unit]
    if isinstance(offset, pd.offsets.Day) and stamps.tz is None:
        return offset.n * DAY // unit
    if isinstance(offset, pd.offsets.Tick) and int(offset.nanos) % unit == 0:
        return int(offset.nanos) // unit
    return None


def _grid(stamps: pd.Index, freq: str) -> pd.Index:
    """All time stamps at a calendar step in the range of `stamps`; none if there would be too many."""
    if not isinstance(stamps, pd.DatetimeIndex) or freq.isdecimal():
        return stamps[:0]
    if isinstance(to_offset(freq), pd.offsets.BusinessHour | pd.offsets.Tick):
        return stamps[:0]
    return dates_at(freq, stamps.min(), stamps.max()).as_unit(stamps.unit)


def _positions(rows: _SortedRows, freq: str) -> NDArray[np.int64]:
    """Position of each row in steps of `freq` from a common origin of its series; -1 between two steps."""
    step = _even(rows.stamps, freq)
    if step is None:
        grid = _grid(rows.stamps, freq)
        return grid.get_indexer(rows.stamps).astype(np.int64) if len(grid) else np.full(len(rows.codes), -1)
    numbers = _numbers_of(rows.stamps)
    after = numbers[rows.starts][rows.codes]
    np.subtract(numbers, after, out=after)
    between = after % step != 0
    after //= step
    after[between] = -1
    return after


def _stamps(rows: _SortedRows, steps: NDArray[np.int64], begin: NDArray[np.int64], freq: str) -> pd.Index:
    """Time stamps of all series, one after the other: `steps` steps each, from the position `begin` on."""
    if (steps == rows.counts).all():  # no gaps
        return rows.stamps
    within = np.arange(int(steps.sum())) - np.repeat(steps.cumsum() - steps, steps)
    step = _even(rows.stamps, freq)
    if step is None:
        return _grid(rows.stamps, freq)[within + np.repeat(begin, steps)] if len(within) else rows.stamps[:0]
    numbers = within * step + np.repeat(_numbers_of(rows.stamps)[rows.starts], steps)
    if not isinstance(rows.stamps, pd.DatetimeIndex):
        return pd.Index(numbers)
    dates = pd.DatetimeIndex(numbers.view(f"M8[{rows.stamps.unit}]"))
    return dates if rows.stamps.tz is None else dates.tz_localize("UTC").tz_convert(rows.stamps.tz)
