"""Numbers that stand for missing values, such as -9999: found where they stand far apart from all others and repeat."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

FEWEST = 3  # repetitions of a sentinel
OTHERS = 10  # distinct other values to judge by; fewer suffice at `FAR` ranges of these
SPREADS, RANGES, FAR = 3.0, 1.5, 100.0  # distance to other values, in interquartile ranges and in ranges of these
SPACINGS = 10.0  # distance of a negative number to values that are never negative, in usual distances between these
MOST = 0.97  # share of cells
ALIKE = 5  # rows in which several columns are missing together, as -1 and -0.99 beside values that are never negative
OVERLAP, MOST_PAIRED = 0.9, 50  # of these rows, and columns that are compared
_NINES = re.compile(r"-?(99{1,9}|9{2,9}\.9{1,4}|9{1,9}\.?9*e[+-]?\d+)|-9\.9{1,3}")
_SMALL = re.compile(r"-(1|0\.9{1,3}|9)")
_OTHERS = (-200.0, -77.0, -88.0, -777.0, -888.0, -7777.0, -8888.0, -999.25, -6999.0)
_MACHINE = (-32768.0, 32767.0, 65535.0, -2147483648.0, 2147483647.0, 4294967295.0, -9223372036854775808.0)
_HUGE = 1e19  # and beyond: fill values such as 1e20 and 9.96921e36


def find_sentinels(values: NDArray[np.float64], sure: bool = False) -> tuple[float, ...]:
    """The numbers in a column that stand for missing values, in increasing order.

    They look like one (-999, 9999, 99.9, -200, -1, 1e20, limits of integers, ...), repeat, and lie beyond all other
    values: by `SPREADS` interquartile ranges and `RANGES` ranges of these or, for whole negative numbers among values
    that are never negative, by `SPACINGS` of the distances between these. Zero is none.

    Args:
        values: numbers, (N,), NaN for missing ones.
        sure: whether one that occurs once, or beside a single other value, counts.
    """
    if not any(map(stands_for_missing, _ends(values))):  # before copies are made
        return ()
    finite = values[np.isfinite(values)]
    numbers, counts = np.unique(finite, return_counts=True)
    first, last = 0, len(numbers)
    while first < last and stands_for_missing(numbers[first]):
        first += 1
    while last > first and stands_for_missing(numbers[last - 1]):
        last -= 1
    # from the inside out: -99 is judged by values without -999
    low = _outside(numbers, counts, range(first - 1, -1, -1), first, last, sure)
    high = _outside(numbers, counts, range(last, len(numbers)), first, last, sure)
    return tuple(float(numbers[place]) for place in sorted([*low, *high]))


def may_have_sentinels(values: NDArray[np.float64]) -> bool:
    """Whether the smallest or the largest number of a column looks like one that stands for missing values; if it does in
    no column, `sentinels_by_column` finds none."""
    low, high = _ends(values)
    return stands_for_missing(low) or stands_for_missing(high) or bool(_SMALL.fullmatch(f"{low:.6g}"))


def _ends(values: NDArray[np.float64]) -> tuple[float, float]:
    """Smallest and largest number, NaN if there is none."""
    return float(np.fmin.reduce(values, initial=np.nan)), float(np.fmax.reduce(values, initial=np.nan))


def sentinels_by_column(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, tuple[float, ...]]:
    """The sentinels of each column that has any. One that is found in a column counts in the others even if it occurs
    there once, or beside a single other value; so do the only negative numbers of several columns in the same rows."""
    found = {name: find_sentinels(values) for name, values in columns.items()}
    for name, number in _together(columns).items():
        found[name] = tuple(sorted({*found[name], number}))
    known = {number for numbers in found.values() for number in numbers}
    if known:
        for name, values in columns.items():
            more = [number for number in find_sentinels(values, sure=True) if number in known]
            found[name] = tuple(sorted({*found[name], *more}))
    return {name: numbers for name, numbers in found.items() if numbers}


def _together(columns: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """The only negative number of each column of which another one, which is not a copy, has its own in about the same
    rows."""
    lows, rows = dict[str, float](), dict[str, NDArray[np.bool_]]()
    for name, values in columns.items():
        low = float(np.fmin.reduce(values, initial=0.0))
        if not low < 0 or not (stands_for_missing(low) or _SMALL.fullmatch(f"{low:.6g}")):
            continue
        there = values == low
        others = values[~there & np.isfinite(values)]
        if there.sum() >= ALIKE and len(others) and others.min() >= 0 and len(np.unique(others)) > 1:
            lows[name], rows[name] = low, there
    found = set[str]()
    for name, other in itertools.combinations(list(rows)[:MOST_PAIRED], 2):
        either = np.count_nonzero(rows[name] | rows[other])
        varied = max(len(np.unique(columns[each])) for each in (name, other)) > OTHERS
        alike = np.count_nonzero(rows[name] & rows[other]) >= OVERLAP * either
        if alike and varied and not np.array_equal(columns[name], columns[other], equal_nan=True):
            found |= {name, other}
    return {name: lows[name] for name in found}


def stands_for_missing(number: float) -> bool:
    """Whether a number is one that stands for missing values somewhere, also if stored in single precision."""
    if abs(number) >= _HUGE or number in _MACHINE or number in _OTHERS or number == -1:
        return True
    return bool(_NINES.fullmatch(f"{number:.6g}") or _NINES.fullmatch(f"{number:.10g}"))


def _outside(
    numbers: NDArray[np.float64], counts: NDArray[np.int64], places: Iterable[int], first: int, last: int, sure: bool
) -> list[int]:
    """The `places` of sentinels beyond the values `first` to `last`; one that is none counts among the values."""
    found = list[int]()
    for place in places:
        often = sure or FEWEST <= counts[place] <= MOST * counts.sum()
        others, times = numbers[first:last], counts[first:last]
        if often and len(others) and _stands_apart(numbers[place], others, times, int(counts[place]), sure):
            found.append(place)
        else:
            first, last = min(first, place), max(last, place + 1)
            found.clear()
    return found


def _stands_apart(number: float, others: NDArray[np.float64], times: NDArray[np.int64], again: int, sure: bool) -> bool:
    spread, gap = others[-1] - others[0], others[0] - number if number < others[0] else number - others[-1]
    if not sure and len(others) < OTHERS and not (spread > 0 and gap >= FAR * spread):
        return False
    low, high = np.quantile(np.repeat(others, times) if times.sum() < 10**5 else others, (0.25, 0.75))
    if number < 0 <= others[0] and number == np.floor(number):  # amounts such as -99.99 may be payments
        near = others[: max(2, len(others) // 2)]
        spacing = float(np.median(np.diff(near))) if len(near) > 1 else 0.0
        return bool(gap >= SPACINGS * spacing and (number != -1 or (again >= 5 and len(others) >= 20 and low > 0)))
    return bool(number != -1 and gap >= SPREADS * (high - low) and gap >= RANGES * spread)
