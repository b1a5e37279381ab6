"""Columns that follow from the date: months, weekdays, hours and so on, in any usual numbering."""

from __future__ import annotations

import calendar
from functools import cached_property

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
Array = NDArray[np.float64]
_CYCLES = {"weekday": 7, "month": 12, "hour": 24}
_NAMES = frozenset(
    name.lower()
    for names in (calendar.month_name, calendar.month_abbr, calendar.day_name, calendar.day_abbr)
    for name in names
    if name
)


class Dates:
    """Dates of some rows, (N,), and their parts, each computed once for all columns."""

    def __init__(self, stamps: pd.DatetimeIndex) -> None:
        self.stamps = stamps

    @cached_property
    def distinct(self) -> int:
        return self.stamps.nunique()

    @cached_property
    def year(self) -> Array:
        return np.asarray(self.stamps.year, dtype=np.float64)

    @cached_property
    def day(self) -> NDArray[np.int64]:
        """Number of the day."""
        return self.stamps.normalize().asi8

    @cached_property
    def ordinal(self) -> Array:
        """Days since 1970."""
        return np.asarray((self.stamps.tz_localize(None) - pd.Timestamp(0)).days, dtype=np.float64)

    @cached_property
    def day_of_year(self) -> Array:
        return np.asarray(self.stamps.day_of_year, dtype=np.float64)

    @cached_property
    def week(self) -> Array:
        return np.asarray(self.stamps.isocalendar()["week"], dtype=np.float64)

    @cached_property
    def parts(self) -> dict[str, tuple[Array, int]]:
        """Parts of the dates, with the number of distinct ones in a cycle, at least."""
        stamps = self.stamps
        parts = {
            **{"month": (stamps.month, 12), "quarter": (stamps.quarter, 4), "day of month": (stamps.day, 28)},
            **{"weekday": (stamps.day_of_week, 7), "hour": (stamps.hour, 24), "day of year": (self.day_of_year, 365)},
        }
        return {name: (np.asarray(values, dtype=np.float64), least) for name, (values, least) in parts.items()}

    @cached_property
    def counts(self) -> dict[str, int]:
        """Distinct values of each part."""
        return {name: len(np.unique(values)) for name, (values, _) in self.parts.items()}

    @cached_property
    def whole_cycles(self) -> dict[str, bool]:
        """Whether each value of a part is in at least two cycles, such as two weeks."""
        cycles = {"weekday": self.day, "month": self.year, "hour": self.day}
        whole = {}
        for name, cycle in cycles.items():
            seen = (
                pd.DataFrame({"value": self.parts[name][0], "cycle": cycle}).drop_duplicates()["value"].value_counts()
            )
            whole[name] = len(seen) == _CYCLES[name] and seen.min() >= 2
        return whole

    def at(self, there: NDArray[np.bool_]) -> Dates:
        """The dates of some rows."""
        return self if there.all() else Dates(self.stamps[there])


def calendar_part(name: str, cells: pd.Series, dates: Dates | None) -> str | None:
    """The part of a date that a column holds, such as `weekday`; None if it holds none.

    Args:
        name: name of the column.
        cells: its cells, numbers or text, (N,), with NaN for missing ones.
        dates: the dates of its rows; None if they are unknown, so that only names and ranges tell.
    """
    field, there = calendar_field(name), cells.notna().to_numpy()
    cells = cells if there.all() else cells[there].reset_index(drop=True)
    if not len(cells):
        return None
    dates = None if dates is None else dates.at(there)
    if pd.api.types.is_numeric_dtype(cells):
        numbers = cells.to_numpy(dtype=np.float64)
        found = _equal(numbers, dates) if dates is not None else None
        if found is None and field is not None and _within(field, numbers):
            varies = field == "year" and dates is not None and _varies(numbers, dates.stamps)
            return None if varies else field  # such as the year of a forecast beside the year that it is for
    else:
        found = "name" if set(cells.str.lower().drop_duplicates().head(40)) <= _NAMES else None
        if field is not None and cells.nunique() <= 54 and not cells.str.contains(r"\d{4}-\d\d?-\d").any():
            return field
    if found is None and dates is not None:
        waves = not {"sin", "cos"}.isdisjoint(words_in(name))
        found = _function_of(cells, dates, field is not None or waves)
    return found


def _within(field: str, numbers: Array) -> bool:
    low, high = _RANGES[field]
    if field == "year":  # also without the century, fractions of years, and years of sports
        return bool(np.mean((numbers >= low) & (numbers < high + 1)) >= NAMED) or bool(
            ((numbers >= 0) & (numbers <= 99) & (numbers == np.floor(numbers))).all() and len(np.unique(numbers)) < 50
        )
    if field == "season" and _within("year", numbers):
        return True
    # a few may stand for missing values, such as day 99
    return bool(np.mean((numbers >= low) & (numbers <= high)) >= NAMED and (numbers == np.floor(numbers)).all())


def _varies(numbers: Array, stamps: pd.DatetimeIndex) -> bool:
    """Whether most of the dates that repeat have several numbers."""
    counts = pd.Series(numbers).groupby(np.asarray(stamps)).agg(["size", "nunique"])
    counts = counts[counts["size"] > 1]
    return len(counts) > 1 and bool((counts["nunique"] > 1).mean() > 0.5)


def _equal(numbers: Array, dates: Dates) -> str | None:
    """The part of `dates` that numbers are, up to where counting begins, over at least one whole cycle."""
    if not _may_be_part(numbers[:50]):
        return None
    distinct = len(np.unique(numbers))
    if distinct < 2:
        return None
    if (numbers != np.floor(numbers)).any():  # 1958.2
        middle = dates.year + (dates.day_of_year - 0.5) / 365.25
        return "year" if np.mean(np.abs(numbers - middle) < 0.1) >= AGREE else None
    years = len(np.unique(dates.year))
    if _share(numbers - dates.year) >= AGREE and years == distinct and dates.distinct > 2 * distinct:
        return "year"
    for part, factor in (("month", 100), ("quarter", 10), ("day of year", 1000)):  # 202412, 20244, 2024366
        if np.mean(numbers == factor * dates.year + dates.parts[part][0]) >= AGREE:
            return part
    uneven = len(np.unique(np.diff(np.unique(dates.ordinal)))) > 1  # any column that grows evenly numbers even days
    if uneven and _share(numbers - dates.ordinal) >= AGREE:
        return "day"
    for part, (values, least) in dates.parts.items():
        several = min(distinct, dates.counts[part])
        if several < min(least, 28):
            continue
        shift = numbers - values
        if distinct >= 7 and not shift.any():
            return part
        if several < least or dates.distinct < 2 * distinct:
            continue
        if part in ("weekday", "hour"):
            shift = np.where(numbers <= least, shift % least, np.inf)
        elif np.abs(np.median(shift)) > 1:
            continue
        if _share(shift) >= AGREE:
            return part
    shift = numbers - dates.week
    return "week" if distinct >= 50 and _share(shift) >= AGREE and np.abs(np.median(shift)) <= 1 else None


def _may_be_part(numbers: Array) -> bool:
    """Whether numbers may be a part of dates: whole, or years with fractions."""
    whole = bool((numbers == np.floor(numbers)).all())
    return whole or bool(((numbers >= _RANGES["year"][0]) & (numbers < _RANGES["year"][1] + 1)).all())


def _share(shift: Array) -> float:
    """Share of the rows with the usual shift."""
    usual = np.median(shift)
    return float(np.mean(shift == usual)) if np.isfinite(usual) else 0.0


def _function_of(cells: pd.Series, dates: Dates, named: bool) -> str | None:
    """The part of `dates` that decides cells over at least two whole cycles. Numbers count only with two distinct ones
    or if their name says so, because values of a strictly periodic series also do."""
    numeric = pd.api.types.is_numeric_dtype(cells)
    if numeric and not named and cells.head(50).nunique() > 2:
        return None
    codes = pd.factorize(cells)[0]
    distinct = int(codes.max()) + 1
    if distinct < 2 or (distinct > 2 and not named and numeric):
        return None
    for part, length in _CYCLES.items():
        if distinct > length or not dates.whole_cycles[part]:
            continue
        if len(pd.DataFrame({"value": dates.parts[part][0], "cell": codes}).drop_duplicates()) == length:
            return part
    return None
