"""Numbers that stand for a time: codes of a year and a part of it, Unix time, and day numbers of spreadsheets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

YEARS = (1700, 2199)  # of codes
# Digits after the year: what they count, its pattern, the most there is of it, and the least that the largest of them
# is: of weeks it is more than any month has days, so that 200131 is no week of 2001.
_PARTS = {1: ("quarters", "{}Q{}", 4, 4), 2: ("ISO weeks", "{}-W{:02d}", 53, 32), 3: ("days of a year", "", 366, 1)}
_UNIX = {
    "s": ("seconds", 1),
    "ms": ("milliseconds", 10**3),
    "us": ("microseconds", 10**6),
    "ns": ("nanoseconds", 10**9),
}
_SECONDS = (631_152_000, 4_102_444_800)  # of Unix time, from 1990 to 2100
_DAYS = (32_874, 54_789)  # of a spreadsheet, from 1990 to 2050: counts of steps are seldom there
_EVERY = (1, 7, 14, 28, 29, 30, 31, 90, 91, 92, 365, 366)  # days between two of its rows; hours are less than one
_ENDS = {100: (12, 52, 53), 1000: (365, 366)}  # last part of a year, by the round number at which the next one begins


def times_of(numbers: NDArray[Any], days: bool = True, sure: bool = False) -> tuple[pd.DatetimeIndex, str] | None:
    """The times that are given in Unix time or, where `days` may be, in days of a spreadsheet, and a note on them.

    Args:
        numbers: finite, whole or with fractions, in any order.
        days: whether numbers of the size of such days are taken for them.
        sure: whether they are known to be times, and need not show the step of a calendar.

    Returns:
        None where numbers are of another size, or of days have another step than a calendar.
    """
    if not len(numbers):
        return None
    low, high = numbers.min(), numbers.max()
    for unit, (name, per) in _UNIX.items():
        if _SECONDS[0] * per <= low and high < _SECONDS[1] * per:
            times = pd.DatetimeIndex(pd.to_datetime(numbers, unit=unit)).as_unit("ns")  # type: ignore[call-overload]
            if np.issubdtype(numbers.dtype, np.floating):
                times = times.round("ms")
            return times, note_on(f"Unix {name} in UTC", numbers, times)
    steps = np.diff(np.unique(numbers))
    usual = float(np.median(steps)) if len(steps) else 1.0
    if days and _DAYS[0] <= low and high < _DAYS[1] and (sure or usual < 1 or usual in _EVERY):
        seconds = np.round(numbers.astype(np.float64) * 86_400).astype(np.int64)
        times = pd.Timestamp("1899-12-30") + pd.to_timedelta(seconds, unit="s")
        times = pd.DatetimeIndex(times).as_unit("ns")
        return times, note_on("day numbers of a spreadsheet", numbers, times)
    return None


def named_parts(numbers: NDArray[np.int64], freq: str | None = None) -> tuple[pd.Series, str, str] | None:
    """The quarters, weeks or days that whole numbers such as 20243, 202431 or 2024212 name.

    Args:
        numbers: in any order.
        freq: the step that they are known to have, which is no number; None where they have to show what they are.

    Returns:
        Texts that name them, the format of these for pandas (empty for what `first_days` reads) and what they are; None
        for numbers of another kind.
    """
    for digits, (kind, pattern, most, least) in _PARTS.items():
        years, parts = np.divmod(numbers, 10**digits)
        if (
            not len(numbers)
            or years.min() < YEARS[0]
            or years.max() > YEARS[1]
            or parts.min() < 1
            or parts.max() > most
        ):
            continue
        if freq is None:
            steps = np.unique(np.diff(np.unique(numbers)))
            # One year of quarters has no end to show, and an even step over the end of a year is one of numbers.
            if parts.max() < least or (years.min() == years.max() and digits == 1):
                continue
            if years.min() < years.max() and len(steps) == 1:
                continue
        elif digits == 2 and parts.max() <= 12 and not _is_weekly(freq):
            continue  # months
        if not pattern:
            return pd.Series(numbers).astype(str), "%Y%j", kind
        text = pd.Series([pattern.format(*each) for each in zip(years.tolist(), parts.tolist(), strict=True)])
        return text, "", kind
    return None


def _is_weekly(freq: str) -> bool:
    offset = to_offset(freq)
    return offset is not None and offset.rule_code.startswith("W")


def jump_of_codes(numbers: NDArray[np.int64]) -> tuple[int, int] | None:
    """Two neighbours between which whole numbers jump to just past a round one, where they do so again and again.

    A count goes past 100 by its step, but for a hole; an hour of 60 minutes, or a year of 53 weeks, never does.
    """
    numbers = np.unique(numbers)
    if len(numbers) < 3 or numbers[0] < 0:
        return None
    steps = np.diff(numbers)
    lengths, counts = np.unique(steps, return_counts=True)
    usual = lengths[np.argmax(counts)]
    base = 10
    while (over := np.flatnonzero(np.diff(numbers // base))).size:
        parts = numbers % base
        landed = parts[over + 1] == parts.min()
        ended = len(over) == 1 and parts[0] == parts[over + 1] == 1 and parts[over[0]] in _ENDS.get(base, ())
        again = len(over) > 1 and 2 * landed.sum() > len(over)
        # A count with holes may lack what comes before a few round numbers by chance.
        within = np.delete(steps, over) == usual
        often = len(over) > 11 or 10 * within.sum() > 9 * len(within)
        if (steps[over] > usual).all() and (ended or (again and often)):
            return int(numbers[over[0]]), int(numbers[over[0] + 1])
        base *= 10
    return None


def note_on(kind: str, numbers: NDArray[Any], times: pd.DatetimeIndex) -> str:
    """A note on numbers that are read as `times`, which are of a `kind`."""
    first = str(times[0]).removesuffix(" 00:00:00")
    return f"its stamps are read as {kind} ({numbers[0]} is {first}); number the steps from 0 if they only count"
