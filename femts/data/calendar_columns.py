"""Columns that follow from the date: months, weekdays, hours and so on, in any usual numbering."""

from __future__ import annotations

import calendar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.name_words import calendar_field, words_in

AGREE, NAMED = 0.99, 0.9  # share of rows that agree with the dates, without and with a name that says so
_RANGES = {  # smallest and largest number of each part of a date
    **{
        "year": (1678, 2261),
        "quarter": (0, 4),
        "month": (0, 12),
        "week": (0, 53),
        "day": (0, 31),
        "day of month": (0, 31),
    },
    **{"weekday": (0, 7), "hour": (0, 24), "minute": (0, 60), "season": (0, 5), "day of year": (0, 366)},
    "code": (167800, 226153),
}
_CYCLES = {"weekday": 7, "month": 12, "hour": 24}
_NAMES = frozenset(
    name.lower()
    for names in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
    for name in names
    if name
)


def calendar_part(name: str, cells: pd.Series, stamps: pd.DatetimeIndex | None) -> str | None:
    """The part of a date that a column holds, such as `weekday`; None if it holds none.

    Args:
        name: name of the column.
        cells: its cells, numbers or text, (N,), with NaN for missing ones.
        stamps: date of each cell; None if they are unknown, so that only names and ranges tell.
    """
    field, there = calendar_field(name), cells.notna().to_numpy()
    cells = cells[there].reset_index(drop=True)
    if not len(cells):
        return None
    if pd.api.types.is_numeric_dtype(cells):
        numbers = cells.to_numpy(dtype=np.float64)
        found = _equal(numbers, stamps[there]) if stamps is not None else None
        if found is None and field is not None and _within(field, numbers):
            varies = field == "year" and stamps is not None and _varies(numbers, stamps[there])
            return None if varies else field  # such as the year of a forecast beside the year that it is for
    else:
        found = "name" if set(cells.str.lower().drop_duplicates().head(40)) <= _NAMES else None
        if field is not None and cells.nunique() <= 54 and not cells.str.contains(r"\d{4}-\d\d?-\d").any():
            return field
    if found is None and stamps is not None:
        found = _function_of(cells, stamps[there], field is not None or _are_waves(name))
    return found


def _within(field: str, numbers: NDArray[np.float64]) -> bool:
    low, high = _RANGES[field]
    if field == "year":  # also without the century, fractions of years, and years of sports
        return bool(np.mean((numbers >= low) & (numbers < high + 1)) >= NAMED) or bool(
            ((numbers >= 0) & (numbers <= 99) & (numbers == np.floor(numbers))).all() and len(np.unique(numbers)) < 50
        )
    if field == "season" and _within("year", numbers):
        return True
    # a few may stand for missing values, such as day 99
    return bool(np.mean((numbers >= low) & (numbers <= high)) >= NAMED and (numbers == np.floor(numbers)).all())


def _varies(numbers: NDArray[np.float64], stamps: pd.DatetimeIndex) -> bool:
    """Whether most of the dates that repeat have several numbers."""
    counts = pd.Series(numbers).groupby(np.asarray(stamps)).agg(["size", "nunique"])
    counts = counts[counts["size"] > 1]
    return len(counts) > 1 and bool((counts["nunique"] > 1).mean() > 0.5)


def _are_waves(name: str) -> bool:
    return not {"sin", "cos"}.isdisjoint(words_in(name))


def _equal(numbers: NDArray[np.float64], stamps: pd.DatetimeIndex) -> str | None:
    """The part of `stamps` that numbers are, up to where counting begins, over at least one whole cycle."""
    distinct = len(np.unique(numbers))
    if distinct < 2:
        return None
    year = np.asarray(stamps.year, dtype=np.float64)
    if (numbers != np.floor(numbers)).any():  # 1958.2
        middle = year + (np.asarray(stamps.day_of_year) - 0.5) / 365.25
        return "year" if np.mean(np.abs(numbers - middle) < 0.1) >= AGREE else None
    if _share(numbers - year) >= AGREE and len(np.unique(year)) == distinct and len(stamps.unique()) > 2 * distinct:
        return "year"
    codes = {"month": year * 100 + np.asarray(stamps.month), "quarter": year * 10 + np.asarray(stamps.quarter)}
    for part, values in codes.items():  # 202412, 20244
        if np.mean(numbers == values) >= AGREE:
            return part
    parts = {
        **{"month": (np.asarray(stamps.month), 12), "quarter": (np.asarray(stamps.quarter), 4)},
        **{"day of month": (np.asarray(stamps.day), 28), "weekday": (np.asarray(stamps.day_of_week), 7)},
        **{"hour": (np.asarray(stamps.hour), 24), "day of year": (np.asarray(stamps.day_of_year), 365)},
    }
    for part, (values, least) in parts.items():
        if min(distinct, len(np.unique(values))) < min(least, 28):
            continue
        shift = numbers - values
        if distinct >= 7 and not shift.any():
            return part
        if min(distinct, len(np.unique(values))) < least or len(stamps.unique()) < 2 * distinct:
            continue
        if part in ("weekday", "hour"):
            shift = np.where(numbers <= least, shift % least, np.inf)
        elif np.abs(np.median(shift)) > 1:
            continue
        if _share(shift) >= AGREE:
            return part
    week = np.asarray(stamps.isocalendar()["week"], dtype=np.float64)
    if distinct >= 50 and _share(numbers - week) >= AGREE and np.abs(np.median(numbers - week)) <= 1:
        return "week"
    return None


def _share(shift: NDArray[np.float64]) -> float:
    """Share of the rows with the usual shift."""
    return float(np.mean(shift == np.median(shift))) if np.isfinite(np.median(shift)) else 0.0


def _function_of(cells: pd.Series, stamps: pd.DatetimeIndex, named: bool) -> str | None:
    """The part of `stamps` that decides cells over at least two whole cycles. Numbers count only with two distinct ones
    or if their name says so, because values of a strictly periodic series also do."""
    codes = pd.factorize(cells)[0]
    distinct = int(codes.max()) + 1
    if distinct < 2 or (distinct > 2 and not named and pd.api.types.is_numeric_dtype(cells)):
        return None
    cycles = {
        "weekday": (stamps.day_of_week, stamps.normalize().asi8),
        "month": (stamps.month, stamps.year),
        "hour": (stamps.hour, stamps.normalize().asi8),
    }
    for part, (values, cycle) in cycles.items():
        values = np.asarray(values)
        if distinct > _CYCLES[part] or len(np.unique(values)) < _CYCLES[part]:
            continue
        pairs = pd.DataFrame({"value": values, "cell": codes}).drop_duplicates()
        if len(pairs) != _CYCLES[part]:
            continue
        seen = pd.DataFrame({"value": values, "cycle": np.asarray(cycle)}).drop_duplicates()["value"].value_counts()
        if seen.min() >= 2:
            return part
    return None
