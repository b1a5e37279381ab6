"""Even spacing of the rows of each series: the step between them, their order, and empty rows for skipped steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.describe import count
from femts.data.frequency import MOST_MISSING, check_step, few_missing, grid_of, order_of, step_of
from femts.data.pieces import slices
from femts.data.rows import Rows, as_numbers
from femts.data.stamps import first_of_periods
from femts.data.wall_clock import NANOSECONDS, dates_at, follows_clock
from femts.text import quote

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
DAY = 24 * 3600 * 10**9


class Even(NamedTuple):
    """Even steps of S series, one after the other.

    Attributes:
        values: tables (N, K), NaN for skipped steps.
        spans: (S, 2), first step of each series and one past its last.
        stamps: (N,).
        freq: step between time stamps.
        notes: messages to show the user once.
    """

    values: tuple[Array, ...]
    spans: Numbers
    stamps: pd.Index
    freq: str
    notes: tuple[str, ...]


def evenly_spaced(rows: Rows, values: Sequence[Array], freq: str | None) -> Even:
    """Sort rows by series and time, merge those that agree, and add the skipped steps.

    Args:
        rows: N rows of a table.
        values: tables (N, K) of their numbers, NaN where missing; they are separate because most need no copy then.
        freq: the step between them; None infers it from the longest series.

    Raises:
        UsageError: Time stamps repeat, or do not keep the step; the message names the first such series.
    """
    where, single = rows.where, len(rows.series) == 1
    if not len(rows):
        step_of(rows.stamps, where) if freq is None else check_step(rows.stamps, freq, where)
    order, notes = rows.in_order(), tuple[str, ...]()
    codes, stamps = (rows.codes, rows.stamps) if order is None else (rows.codes[order], rows.stamps[order])
    if single and order is not None:
        how = "run backwards" if rows.stamps.is_monotonic_decreasing else "are not in order of time"
        notes = (f"its rows {how} and were sorted",)
    starts = np.searchsorted(codes, np.arange(len(rows.series), dtype=codes.dtype))  # of another type, it would copy
    counts = np.diff(starts, append=len(codes))
    numbers = as_numbers(stamps)
    again = numbers[1:] == numbers[:-1]
    again &= codes[1:] == codes[:-1]
    if again.any():
        again = np.append(False, again)
        even = evenly_spaced(*_merged(rows, values, np.arange(len(rows)) if order is None else order, again), freq)
        note = f"{count(int(again.sum()), 'row')} that repeat a date without another value are left out"
        return even._replace(notes=(note, *even.notes))
    given = rows.schema.freq is not None
    if freq is None:
        longest = int(np.argmax(counts))
        freq, given = step_of(stamps[starts[longest] : starts[longest] + counts[longest]], where), False
        stamps, more = (
            first_of_periods(pd.DatetimeIndex(stamps), freq) if isinstance(stamps, pd.DatetimeIndex) else (stamps, ())
        )
        notes = (*notes, *more)
    stops = counts.cumsum()
    if order is None and counts.all() and _consecutive(stamps, codes, freq):
        return Even(tuple(values), np.stack([stops - counts, stops], axis=1), stamps, freq, notes)
    steps, at, grids = _steps(rows, codes, stamps, starts, counts, freq, given)
    stops = steps.cumsum()
    if order is not None:
        values = [each[order] for each in values]
    if (steps != counts).any():
        values = [_filled(each, (stops - steps)[codes] + at, int(stops[-1])) for each in values]
    if single and steps[0] > 2 * counts[0]:
        there = f"only {counts[0]} of the {steps[0]} time stamps at its step '{freq}' are present"
        notes = (*notes, f"{there}; the others are filled with missing values")
    full = _stamps(stamps, starts, steps, counts, freq, grids)
    return Even(tuple(values), np.stack([stops - steps, stops], axis=1), full, freq, notes)


def _consecutive(stamps: pd.Index, codes: NDArray[np.integer[Any]], freq: str) -> bool:
    """Whether no sorted row is further than a step of constant length from the row of its series before it, as in most
    large tables, for which `_steps` would take much memory."""
    step, numbers = _length(stamps, freq), as_numbers(stamps)
    if step is None:
        return False
    pieces = (slice(piece.start, piece.stop + 1) for piece in slices(len(numbers) - 1))
    return all(((np.diff(numbers[piece]) == step) | (np.diff(codes[piece]) > 0)).all() for piece in pieces)


def _filled(values: Array, places: Numbers, steps: int) -> Array:
    """Values (steps, K) with those of (n, K) at their places (n,) and NaN elsewhere."""
    filled = np.full((steps, values.shape[1]), np.nan)
    filled[places] = values
    return filled


def _merged(rows: Rows, values: Sequence[Array], order: Numbers, again: NDArray[np.bool_]) -> tuple[Rows, list[Array]]:
    """Rows and values without those that repeat the series and time stamp of another one and hold no other value.

    Args:
        rows, values: as in `evenly_spaced`.
        order: rows by series and time.
        again: mask in this order of those that repeat the one before.

    Raises:
        UsageError: Two values differ; the message names the first.
    """
    group = np.cumsum(~again) - 1
    together = np.concatenate(values, axis=1)
    cells = pd.DataFrame(together[order]).groupby(group)
    differ = ((cells.max() != cells.min()) & (cells.count() > 0)).any(axis=1).to_numpy()
    if differ.any():
        code = int(rows.codes[order][differ[group]][0])
        named = f"Series '{quote(rows.series[code])}' of {rows.where}" if rows.long else rows.where
        order_of(rows.stamps[rows.codes == code], named)
    first = np.sort(order[~again])
    together[order[~again]] = cells.first().to_numpy()
    return rows.take(first), np.split(together[first], np.cumsum([each.shape[1] for each in values])[:-1], axis=1)


def _steps(
    rows: Rows,
    codes: NDArray[np.integer[Any]],
    stamps: pd.Index,
    starts: Numbers,
    counts: Numbers,
    freq: str,
    given: bool,
) -> tuple[Numbers, Numbers, dict[int, pd.Index]]:
    """Number of steps of each series, (S,), the position of each sorted row within its series, (N,), and all time
    stamps of series at steps that are not of constant length.

    All rows are placed at once; series with anything unusual are checked one by one.
    """
    step, firsts = _length(stamps, freq), np.minimum(starts, len(codes) - 1)  # of series without rows, none is used
    if step is None:
        at = _grid_positions(stamps, freq)
    else:
        numbers = as_numbers(stamps)
        at = np.repeat(numbers[firsts], counts)
        np.subtract(numbers, at, out=at)
        for part in (at[piece] for piece in slices(len(at))):
            between = part % step != 0
            part //= step
            part[between] = -1
    odd = np.zeros(len(counts), dtype=np.bool_)
    odd[codes[at < 0]] = True
    if step is None:
        at -= np.repeat(at[firsts], counts)
    steps = at[starts + counts - 1] + 1
    grids = dict[int, pd.Index]()
    longest, short = int(steps[np.argmax(counts)]), steps.sum() <= MOST_MISSING * len(codes)
    for number in np.flatnonzero(odd | (steps > 2 * counts)).tolist():
        some = slice(int(starts[number]), int(starts[number] + counts[number]))
        dates = stamps[some]
        named = f"Series '{quote(rows.series[number])}' of {rows.where}" if rows.long else rows.where
        sparse = len(counts) > 1 and (few_missing(dates, freq, sure=True) or (short and steps[number] <= longest))
        if not (sparse and dates.isin(grid_of(dates, freq)).all()):  # otherwise, the step is clear from other series
            check_step(dates, freq, named, given)
        if step is None:
            grids[number] = grid_of(dates, freq)
            at[some], steps[number] = grids[number].get_indexer(dates), len(grids[number])
    return steps, at, grids


def _length(stamps: pd.Index, freq: str) -> int | None:
    """Step in the unit of `stamps`; None if its length varies with the calendar, or for another kind of time stamp."""
    if freq.isdecimal() or not isinstance(stamps, pd.DatetimeIndex):
        return int(freq) if freq.isdecimal() and not isinstance(stamps, pd.DatetimeIndex) else None
    offset, unit = to_offset(freq), NANOSECONDS[stamps.unit]
    if stamps.tz is not None and follows_clock(freq):
        return None
    if isinstance(offset, pd.offsets.Day):  # a Tick in pandas 2
        return offset.n * DAY // unit
    return int(offset.nanos) // unit if isinstance(offset, pd.offsets.Tick) and int(offset.nanos) % unit == 0 else None


def _calendar(stamps: pd.Index, freq: str) -> pd.Index:
    """All time stamps at a step of the calendar in the range of `stamps`; none if there would be too many."""
    if not isinstance(stamps, pd.DatetimeIndex) or freq.isdecimal():
        return stamps[:0]
    if isinstance(to_offset(freq), pd.offsets.BusinessHour) or not follows_clock(freq):
        return stamps[:0]
    return dates_at(freq, stamps.min(), stamps.max()).as_unit(stamps.unit)


def _grid_positions(stamps: pd.Index, freq: str) -> Numbers:
    """Position of each time stamp among those of `_calendar`; -1 for others."""
    grid = _calendar(stamps, freq)
    return grid.get_indexer(stamps).astype(np.int64) if len(grid) else np.full(len(stamps), -1)


def _stamps(
    stamps: pd.Index, starts: Numbers, steps: Numbers, counts: Numbers, freq: str, grids: dict[int, pd.Index]
) -> pd.Index:
    """Time stamps of all steps of all series, one after the other."""
    if (steps == counts).all():  # no gaps
        return stamps
    within = np.arange(int(steps.sum())) - np.repeat(steps.cumsum() - steps, steps)
    step = _length(stamps, freq)
    if step is None:
        grid = _calendar(stamps, freq)
        begin = grid.get_indexer(stamps[starts]) if len(grid) else np.zeros_like(steps)
        if not grids:
            return grid[within + np.repeat(begin, steps)]
        pieces = [
            grids[n] if n in grids else grid[first : first + count]
            for n, (first, count) in enumerate(zip(begin.tolist(), steps.tolist(), strict=True))
        ]
        return pieces[0].append(pieces[1:])
    numbers = within * step + np.repeat(as_numbers(stamps)[starts], steps)
    if not isinstance(stamps, pd.DatetimeIndex):
        return pd.Index(numbers)
    dates = pd.DatetimeIndex(numbers.view(f"M8[{stamps.unit}]"))
    return dates if stamps.tz is None else dates.tz_localize("UTC").tz_convert(stamps.tz)
