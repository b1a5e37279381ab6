"""Series of a long table, checked all at once; the few that need it, one by one."""

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
from femts.data.frequency import NANOSECONDS, step_of
from femts.data.roles import NO_ROLES
from femts.data.schema import Schema
from femts.data.stamps import first_of_periods, read_stamps
from femts.data.static import read_static
from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
DAY = 24 * 3600 * 10**9


class LongTable(NamedTuple):
    """Rows of a long table, series by series and in order of time, with the rows that the step skips.

    Attributes:
        values: (N, K) float64: targets, columns known up to now, and those known in advance.
        spans: (S, 2), first row of each series and one past its last.
        series: their names.
        stamps: of each row.
        freq: the step.
        schema: with the names of its columns.
        static: as `read_static` gives it; None without static columns.
        notes: what a user should be told once.
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
    """The rows of a long table, or of a wide one, a series a column, with the step `freq`, which the longest series
    shows unless it is given.

    Raises:
        UsageError: a series, a stamp or a cell is not as it must be; the text names it.
    """
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_unique(frame.columns, where)
    frame, schema, notes = _settled(frame, schema, where)
    check_unique(frame.columns, where)  # a role may name the stamps or the series
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
    """A long table of what is to be read, its schema with the names of its columns, and notes on them."""
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
                f"{where} has the further column '{quote(further[0])}'; name it in --past-covariates, "
                "--future-covariates or --static-covariates, or "
                "leave it out."
            )
        return frame[[form.series, time, *named]], schema, notes
    if roles.any:
        lacking = next((n for n in (form.series, time, form.value) if n not in frame.columns), form.value)
        raise UsageError(
            f"{where} has no column '{quote(lacking)}', so it is no long table, and columns of a wide table cannot "
            "have roles in a panel; provide a long table, or remove --panel."
        )
    return _as_long(frame, schema, form.time_of(frame), where), schema, notes


def _as_long(frame: pd.DataFrame, schema: Schema, time: str, where: str) -> pd.DataFrame:
    """A wide table as a long one."""
    form = schema.form
    if time not in frame.columns:
        check_frame(frame, schema, where=where)  # says what is missing
    values = check_values(frame.drop(columns=time), None, where, schema.na)
    rows, columns = values.shape
    stamps = frame[time].iloc[np.tile(np.arange(rows), columns)].reset_index(drop=True)
    names = values.columns.repeat(rows)
    return pd.DataFrame({form.series: names, form.time or "ds": stamps, form.value: values.to_numpy().ravel("F")})


@dataclass(frozen=True, eq=False)
class _SortedRows:
    """Rows of a long table, sorted by series and then by stamp.

    Attributes:
        frame: the table as it came, for what is checked one by one.
        order: row in the table of each row here; None where it is the same one.
        codes: number of its series.
        names: of the series, in the order of the table.
        stamps: of each row.
        dates: stamps of the table as it came.
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
        """Rows of `frame`, whose column `series` has names; UsageError where there are no rows, or one has no name."""
        codes, names = number_series(frame[series], where)
        if not names:
            raise UsageError(f"{where} has no rows; provide a table with rows.")
        codes, numbers, order, stamps = codes.astype(np.int32), _numbers_of(dates), None, dates
        if not ((codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (numbers[1:] >= numbers[:-1]))).all():
            order = np.lexsort((numbers, codes))
            codes, stamps = codes[order], dates[order]
        return cls(frame, order, codes, names, stamps, dates, np.searchsorted(codes, np.arange(len(names))))

    def sorted(self, cells: NDArray[Any]) -> NDArray[Any]:
        """`cells` of each row of the table as it came, in the order of the rows here."""
        return cells if self.order is None else cells[self.order]

    @property
    def counts(self) -> NDArray[np.intp]:
        """Rows of each series."""
        return np.diff(self.starts, append=len(self.codes))

    @property
    def row_codes(self) -> NDArray[np.integer[Any]]:
        """Number of the series of each row of the table as it came."""
        if self.order is None:
            return self.codes
        codes = np.empty_like(self.codes)
        codes[self.order] = self.codes
        return codes

    def step(self, where: str) -> str:
        """The step that the longest series shows; UsageError where it shows none."""
        longest = int(np.argmax(self.counts))
        first = self.starts[longest]
        stamps = self.stamps[first : first + self.counts[longest]]
        return step_of(stamps.unique(), where)  # what repeats is told of its series

    def any_of(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the series that have one of `rows`."""
        marked = np.zeros(len(self.names), dtype=np.bool_)
        marked[self.codes[rows]] = True
        return marked


def number_series(column: pd.Series, where: str) -> tuple[NDArray[np.intp], list[str]]:
    """Number of the series in each row, and the names of the series, in the order in which they come.

    Raises:
        UsageError: a row has no name.
    """
    try:
        codes, cells = pd.factorize(column)
    except TypeError:  # cells without a hash, such as lists
        codes, cells = pd.factorize(column.map(quote))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise UsageError(f"{where} has no name in '{quote(column.name)}' at data row {row + 1}; name the series of it.")
    names = [str(cell) for cell in cells]
    if len(set(names)) < len(names):  # 1 and "1" are written alike
        again, unique = pd.factorize(pd.Series(names))
        codes, names = again[codes], list(unique)
    return codes, names


def _series(
    rows: _SortedRows, schema: Schema, columns: Sequence[str], freq: str, where: str
) -> tuple[Array, NDArray[np.int64], pd.Index]:
    """Values, spans and stamps of all series: in order of time, with the rows that the step `freq` skips, which have no
    values.

    All rows are looked at at once; a series that is odd in any way is then checked by itself.

    Raises:
        UsageError: a stamp or a cell of a series is not as it must be; the text names the first such series.
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
    """What was `read` of the usual series, with those that are `slow` in their places, each checked by itself."""
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
    """Numbers (rows, K) of `columns`, NaN where missing, and the rows in which one is none that can be read."""
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
    """The step of one length in the unit of `stamps`; None for one of the calendar, or for stamps of another kind."""
    if freq.isdecimal() or not isinstance(stamps, pd.DatetimeIndex):
        return int(freq) if freq.isdecimal() and not isinstance(stamps, pd.DatetimeIndex) else None
    offset, unit = to_offset(freq), NANOSECONDS[stamps.unit]
    if isinstance(offset, pd.offsets.Day) and stamps.tz is None:
        return offset.n * DAY // unit
    if isinstance(offset, pd.offsets.Tick) and int(offset.nanos) % unit == 0:
        return int(offset.nanos) // unit
    return None


def _grid(stamps: pd.Index, freq: str) -> pd.Index:
    """Stamps of a step of the calendar from the first of `stamps` to the last; none where they would be too many."""
    if not isinstance(stamps, pd.DatetimeIndex) or freq.isdecimal():
        return stamps[:0]
    if isinstance(to_offset(freq), pd.offsets.BusinessHour | pd.offsets.Tick):
        return stamps[:0]
    return pd.date_range(stamps.min(), stamps.max(), freq=freq).as_unit(stamps.unit)


def _positions(rows: _SortedRows, freq: str) -> NDArray[np.int64]:
    """Steps of `freq` from a beginning that the rows of a series share; -1 for stamps between two steps."""
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
    """Stamps of `steps` steps of each series, one series after the other, from its position `begin` on."""
    if (steps == rows.counts).all():  # there is no gap
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
