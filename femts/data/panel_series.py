"""Series of a long table, checked all at once; the few that need it, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.check import LARGEST, check_frame, check_marks, parsed
from femts.data.dataset import Dataset
from femts.data.frequency import NANOSECONDS, step_of
from femts.data.loading import with_roles
from femts.data.roles import NO_ROLES
from femts.data.schema import Schema
from femts.data.splits import Split, ratio_split
from femts.errors import UsageError
from femts.text import shown

Array = NDArray[np.float64]
DAY = 24 * 3600 * 10**9


@dataclass(frozen=True, eq=False)
class LongRows:
    """Rows of a long table, sorted by series and then by stamp.

    Attributes:
        frame: the table as it came, for what is checked one by one.
        order: row in the table of each row here.
        codes: number of its series.
        names: of the series, in the order of the table.
        stamps: of each row.
        dates: stamps of the table as it came.
        starts: first row of each series.
    """

    frame: pd.DataFrame
    order: NDArray[np.intp]
    codes: NDArray[np.intp]
    names: Sequence[str]
    stamps: pd.Index
    dates: pd.Index
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, frame: pd.DataFrame, series: str, dates: pd.Index, where: str) -> LongRows:
        """Rows of `frame`, whose column `series` has names.

        Raises:
            UsageError: there are no rows, or one has no name.
        """
        codes, names = number_series(frame[series], where)
        if not names:
            raise UsageError(f"{where} has no rows; bring a table with some.")
        order = np.lexsort((_numbers_of(dates), codes))
        codes = codes[order]
        return cls(frame, order, codes, names, dates[order], dates, np.searchsorted(codes, np.arange(len(names))))

    @property
    def counts(self) -> NDArray[np.intp]:
        """Rows of each series."""
        return np.diff(self.starts, append=len(self.codes))

    @property
    def row_codes(self) -> NDArray[np.intp]:
        """Number of the series of each row of the table as it came."""
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
        return np.bincount(self.codes, rows, minlength=len(self.names)) > 0


def number_series(column: pd.Series, where: str) -> tuple[NDArray[np.intp], list[str]]:
    """Number of the series in each row, and the names of the series, in the order in which they come.

    Raises:
        UsageError: a row has no name.
    """
    try:
        codes, cells = pd.factorize(column)
    except TypeError:  # cells without a hash, such as lists
        codes, cells = pd.factorize(column.map(shown))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise UsageError(f"{where} has no name in '{shown(column.name)}' at data row {row + 1}; name the series of it.")
    names = [str(cell) for cell in cells]
    if len(set(names)) < len(names):  # 1 and "1" are written alike
        again, unique = pd.factorize(pd.Series(names))
        codes, names = again[codes], list(unique)
    return codes, names


def read_series(rows: LongRows, schema: Schema, freq: str, where: str) -> dict[str, Dataset]:
    """A data set for each series: in order of time, with the rows that the step `freq` skips, which have no values.

    All rows are looked at at once; a series that is odd in any way is then checked by itself.

    Args:
        rows: of all series.
        schema: its roles name every target.
        freq: the step.
        where: what the table is, to begin a message with.

    Raises:
        UsageError: a stamp or a cell of a series is not as it must be; the text names the first such series.
    """
    roles = schema.roles
    columns = (*roles.target, *roles.past, *roles.future)
    values, odd = _cells(rows.frame, columns, schema.na, where)
    at = _positions(rows, freq)
    again = np.zeros(len(at), dtype=np.bool_)
    again[1:] = (np.diff(at) == 0) & (np.diff(rows.codes) == 0)
    begin, counts = at[rows.starts], rows.counts
    steps = at[rows.starts + counts - 1] - begin + 1
    slow = rows.any_of(odd[rows.order] | again | (at < 0)) | (steps > 2 * counts) | ("date" in columns)
    plain = replace(schema.wide(), roles=NO_ROLES)
    pieces, stamps = list[Array](), list[pd.Index]()
    steps = np.where(slow, 0, steps)
    stops = steps.cumsum()
    place, usual = (stops - steps - begin)[rows.codes] + at, ~slow[rows.codes]
    filled = np.full((int(stops[-1]), len(columns)), np.nan)
    filled[place[usual]] = values[rows.order[usual]]
    dates = _stamps(rows, steps, begin, freq)
    firsts, shared = _numbers_of(rows.stamps)[rows.starts].tolist(), dict[tuple[int, int], pd.Index]()
    for number, (stop, count) in enumerate(zip(stops.tolist(), steps.tolist(), strict=True)):
        if not slow[number]:
            pieces.append(filled[stop - count : stop])
            span = firsts[number], count
            if span not in shared:  # most panels have few, and an index takes longer to make than numbers
                shared[span] = dates[stop - count : stop]
            stamps.append(shared[span])
            continue
        some = np.sort(rows.order[rows.starts[number] : rows.starts[number] + counts[number]])
        series = f"Series '{shown(rows.names[number])}' of {where}"
        table = rows.frame[list(columns)].iloc[some]
        table.insert(0, "date", rows.dates[some], allow_duplicates=True)
        checked = check_frame(table, plain, columns, freq, series)
        stamps.append(pd.Index(checked.pop("date")))
        pieces.append(checked.to_numpy(dtype=np.float64))
    whole = filled if not slow.any() else np.concatenate(pieces)
    return _datasets(rows.names, whole, stamps, (schema, freq))


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
        odd |= (np.abs(values) > LARGEST).any(1)
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


def _positions(rows: LongRows, freq: str) -> NDArray[np.int64]:
    """Steps of `freq` from a beginning that the rows of a series share; -1 for stamps between two steps."""
    step = _even(rows.stamps, freq)
    if step is None:
        grid = _grid(rows.stamps, freq)
        return grid.get_indexer(rows.stamps).astype(np.int64) if len(grid) else np.full(len(rows.codes), -1)
    numbers = _numbers_of(rows.stamps)
    after = numbers - numbers[rows.starts][rows.codes]
    return np.where(after % step == 0, after // step, -1)


def _stamps(rows: LongRows, steps: NDArray[np.int64], begin: NDArray[np.int64], freq: str) -> pd.Index:
    """Stamps of `steps` steps of each series, one series after the other, from its position `begin` on."""
    if steps.sum() == len(rows.codes):  # there is no gap
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


def _datasets(
    names: Sequence[str], whole: Array, stamps: Sequence[pd.Index], read: tuple[Schema, str]
) -> dict[str, Dataset]:
    """Data sets of the rows of all series, `whole`, one after the other."""
    schema, freq = read
    roles = schema.roles
    first = Dataset(
        name="panel",
        values=whole,
        dates=stamps[0],
        columns=(*roles.target, *roles.past, *roles.future),
        freq=freq,
        split=ratio_split(len(whole)),
        sha256="",
        season=schema.season_of(freq),
        schema=replace(schema.wide(), roles=NO_ROLES),
    )
    first = with_roles(first, replace(roles, static=()))
    series, begin, splits = dict[str, Dataset](), 0, dict[int, Split]()
    for name, dates in zip(names, stamps, strict=True):
        rows = slice(begin, begin + len(dates))
        begin += len(dates)
        if schema.split.test_from is not None or len(dates) not in splits:
            splits[len(dates)] = schema.split.split_series(dates, len(dates), f"Series '{shown(name)}'")
        series[name] = replace(
            first,
            name=name,
            values=first.values[rows],
            covariates=None if first.covariates is None else first.covariates[rows],
            dates=dates,
            split=splits[len(dates)],
        )
    return series
