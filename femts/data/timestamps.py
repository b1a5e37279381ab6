"""Stamps: dates, periods and whole numbers as users write them, refused where they could mean two things."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.codes import jump_of_codes, named_parts, note_on, times_of
from femts.data.periods import first_days
from femts.errors import UsageError
from femts.text import shown

LIKE_DATES = ((1700, 2200), (17000101, 22000101))
YEARS = (1678, 2261)  # whole ones that nanoseconds in 64 bits reach, which pandas counts in
MOST_NUMBER = 2**53  # of a stamp that is a number: no larger one is sure to differ from the next
_WRITE = "write it as 2024-12-31 23:00:00"
_OFFSET = r"\s*(?:[zZ]|[+-]\d{2}(?::?\d{2}){0,2})$"
_DOTTED = r"\s*\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}\b"  # nobody writes the month before the first dot
_SHORT = r"\s*(\d{1,2})([-/.])\s?(\d{1,2})\2\s?(\d{2})(?!\d)\s*(.*)"  # a date whose year has two digits, and a time
_YEAR = re.compile(r"\d{4}(?=-\d{2}(-\d{2}|$))")
_DIGITS = {10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # stamps such as 2024123123, by their length
_HALF_DAY = re.compile(r"(?<![\d.:])(\d{1,2})((?::\d{2}(?::\d{2}(?:\.\d+)?)?)?)\s*([aApP])\.?[mM]\b\.?")
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?|\b[aApP]\.?[mM]\b"


def read_dates(column: pd.Series, where: str = "The frame", freq: str | None = None) -> pd.Index:
    """The stamps of `read_stamps`, without the notes."""
    return read_stamps(column, where, freq)[0]


def read_stamps(
    column: pd.Series, where: str = "The frame", freq: str | None = None
) -> tuple[pd.Index, tuple[str, ...]]:
    """The stamps of a column of text, datetimes, periods or whole numbers, in the order they come.

    Whole numbers that could be years or days are those, unless their step `freq` is known to be a number.

    Returns:
        The stamps, a quarter, week or month by its first day, and notes on what was done to them.

    Raises:
        UsageError: a cell is no date, or could be two; the text says which.
    """
    column = _plain(column)
    numbered = _numbered(column, freq, where)
    if numbered is not None:
        return numbered
    notes: tuple[str, ...] = ()
    dates = column
    if not pd.api.types.is_datetime64_any_dtype(column):
        dates, notes = _parse(as_text(column), where)
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        year = _YEAR.match(shown(column.iloc[row]))
        if year and not YEARS[0] <= int(year[0]) <= YEARS[1]:  # pandas 2 reads none that nanoseconds do not reach
            raise _beyond(where, int(year[0]), row)
        raise UsageError(
            f"{where} has '{shown(column.iloc[row])}' where data row {row + 1} should have a date; {_WRITE}."
        )
    stamps = pd.DatetimeIndex(dates)
    beyond = np.asarray((stamps.year < YEARS[0]) | (stamps.year > YEARS[1]))
    if beyond.any():
        row = int(np.argmax(beyond))
        raise _beyond(where, stamps[row].year, row)
    return stamps, notes


def _beyond(where: str, year: int, row: int) -> UsageError:
    return UsageError(
        f"{where} has a date in the year {year} at data row {row + 1}; dates are from {YEARS[0]} to {YEARS[1]}, so "
        "number the steps instead."
    )


def as_text(column: pd.Series) -> pd.Series:
    """The cells as text; whole numbers of thousands of digits, which Python does not write, as what they are."""
    try:
        return column.astype(str)
    except ValueError:
        return column.map(shown).astype(str)


def are_clocks(column: pd.Series) -> bool:
    """Tell whether every cell is a time of day, such as 13:30 or 1:30 PM, and nothing else."""
    text = as_text(column).str.strip()
    return bool(len(text)) and bool(text.str.fullmatch(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(\s*[aApP]\.?[mM]\.?)?").all())


def _plain(column: pd.Series) -> pd.Series:
    """Periods as their starts, and whole numbers that are stored as fractions (1956.0) as whole;
    anything else as it is."""
    if isinstance(column.dtype, pd.PeriodDtype):
        try:
            return column.dt.to_timestamp()
        except (ValueError, OverflowError):  # beyond the years that pandas counts in; the text of them is refused
            return column
    if pd.api.types.is_float_dtype(column) and len(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all() and np.abs(numbers).max() <= MOST_NUMBER:
            return pd.Series(numbers.astype(np.int64), name=column.name)
    if not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_datetime64_any_dtype(column):
        text = as_text(column)
        if len(text) and text.str.fullmatch(r"-?\d{1,18}\.0+").all():
            return text.str.partition(".")[0]
    return column


def _numbered(column: pd.Series, freq: str | None, where: str) -> tuple[pd.Index, tuple[str, ...]] | None:
    """The stamps of a column of numbers, with notes; None for anything else, and for years, months and days that
    are read as text."""
    if pd.api.types.is_datetime64_any_dtype(column) or not len(column):
        return None
    text = as_text(column)
    counted = freq is not None and freq.isdecimal()
    if not text.str.fullmatch(r"-?\d{1,18}|[1-4]\d{18}").all():
        if counted or not text.str.fullmatch(r"\d{5,10}(\.\d+)?").all():
            return None
        found = times_of(text.astype("float64").to_numpy(), sure=freq is not None)
        return None if found is None else (found[0], (found[1],))
    numbers = text.astype("int64").to_numpy()
    if not counted:
        parts = named_parts(numbers, freq)
        if parts is not None:
            names, pattern, kind = parts
            stamps = _stamps(names, format=pattern) if pattern else _parse(names, where)[0]
            if stamps.isna().any():
                row = int(np.argmax(stamps.isna()))
                raise UsageError(
                    f"{where} has '{numbers[row]}' at data row {row + 1} among stamps that are read as {kind}, but its "
                    "year has fewer; write the first day of each, such as 2024-12-30."
                )
            times = pd.DatetimeIndex(stamps)
            return times, (note_on(kind, numbers, times),)
        if like_dates(numbers, sure=freq is not None):
            return None
        jump = jump_of_codes(numbers) if freq is None else None
        found = times_of(numbers, sure=freq is not None)
        if found is not None and (jump is None or numbers.max() < 10**6):  # of ten digits are short dates with a clock
            return found[0], (found[1],)
        if jump is not None:
            row = int(np.argmax(numbers == jump[1]))
            raise UsageError(
                f"{where} has whole numbers for stamps that jump again and again to just past a round one, as from "
                f"{jump[0]} to {jump[1]} (data row {row + 1}), so they are codes of times and no counts; write them as "
                "2024-12-31 23:00:00, or number the steps from 0."
            )
    beyond = np.abs(numbers) > MOST_NUMBER
    if beyond.any():
        row = int(np.argmax(beyond))
        raise UsageError(
            f"{where} has the stamp {numbers[row]} at data row {row + 1}, beyond {MOST_NUMBER}; number the steps from "
            "0."
        )
    return pd.Index(numbers), ()


def like_dates(numbers: NDArray[np.int64], sure: bool = False) -> bool:
    """Tell if whole numbers are years, days (20241231), hours (2024123123) and so on, or months
    (202412): several of several years, unless that is `sure`."""
    if not len(numbers):
        return False
    years, days = (bool(numbers.min() >= low and numbers.max() < high) for low, high in LIKE_DATES)
    if days or (years and (sure or jump_of_codes(numbers) is None)):
        return True
    if numbers.min() >= 10**9 and _from_digits(pd.Series(numbers).astype(str)) is not None:
        return True
    year, month = np.divmod(numbers, 100)
    if not ((year >= LIKE_DATES[0][0]) & (year < LIKE_DATES[0][1]) & (month >= 1) & (month <= 12)).all():
        return False
    return sure or (len(np.unique(year)) > 1 and len(np.unique(month)) > 1)


def _from_digits(text: pd.Series) -> pd.Series | None:
    """Stamps of a day and a clock in digits alone; None where one in ten or more has another length, or a
    month or an hour that there is not."""
    if not len(text) or not text.str.fullmatch(r"\d+", na=False).all():
        return None
    length = len(text.iloc[0])
    if length not in _DIGITS:
        return None
    stamps = _stamps(text.where(text.str.fullmatch(rf"(?:19|20)\d{{{length - 2}}}")), format=_DIGITS[length])
    return stamps if stamps.notna().mean() > 0.9 else None


def _in_24_hours(clock: re.Match[str]) -> str:
    """`1:30 PM` as 13:30; as it is where no clock shows it."""
    hour = int(clock[1])
    if not 1 <= hour <= 12:
        return clock[0]
    return f"{hour % 12 + 12 * (clock[3] in 'pP'):02d}{clock[2] or ':00'}"


def _parse(cells: pd.Series, where: str) -> tuple[pd.Series, tuple[str, ...]]:
    days = first_days(cells)
    if days is not None:
        return _stamps(days, format="ISO8601"), ()
    digits = _from_digits(cells)
    if digits is not None:
        return digits, ()
    text = cells.str.replace(_HALF_DAY, _in_24_hours, regex=True)  # with AM or PM pandas guesses the day cell by cell
    try:
        # Pandas warns when it has to guess; the guesses are compared below.
        with warnings.catch_warnings(action="ignore"):
            iso = _stamps(text, format="ISO8601")
            # One ISO date makes the others mistakes; a bare number would be completed from today's date.
            if iso.notna().any() or text.str.fullmatch(r"\d+(\.\d+)?").any():
                return iso, ()
            _check_years(cells, where)
            short = _of_short_years(text, where)
            if short is not None:
                return short, ()
            day_first = _stamps(text, dayfirst=True)
            if day_first.notna().all() and text.str.match(_DOTTED).all():
                return day_first, ()
            month_first = _stamps(text)
    except UsageError:
        raise
    except ValueError as error:
        return _of_several_offsets(text, where, error)
    if not month_first.isna().any() and not day_first.isna().any() and not month_first.equals(day_first):
        row = int(np.argmax(month_first != day_first))
        raise UsageError(
            f"{where} has dates such as '{shown(cells.iloc[row])}' whose day could be the month; {_WRITE}."
        )
    return min((month_first, day_first), key=lambda dates: int(dates.isna().sum())), ()


def _of_short_years(text: pd.Series, where: str) -> pd.Series | None:
    """Stamps of dates whose years have two digits, which pandas reads cell by cell; None where they have four."""
    parts = text.str.extract(rf"^{_SHORT}$")
    if parts[0].isna().any():
        return None
    clock = parts[4].str.replace(r"^(\d):", r"0\1:", regex=True)
    orders, dotted = {"day": (3, 2, 0)}, bool((parts[1] == ".").all())
    if not dotted:
        orders["month"] = (3, 0, 2)
    if (parts[[0, 2]].map(len) == 2).all(axis=None):
        orders["year"] = (0, 2, 3)
    read = {}
    for first, (year, month, day) in orders.items():
        century = np.where(parts[year].astype(int) < 69, "20", "19")
        date = century + parts[year].str.zfill(2) + "-" + parts[month].str.zfill(2) + "-" + parts[day].str.zfill(2)
        read[first] = _stamps((date + " " + clock).str.strip(), format="ISO8601")
    whole = {first: dates for first, dates in read.items() if dates.notna().all()}
    if "year" in whole and len(whole) > 1:  # 20/07/31: in the wrong order every day is in another year
        ordered = [first for first, dates in whole.items() if _in_order(dates)]
        if ordered and ("year" not in ordered or ordered == ["year"]):
            whole = {first: dates for first, dates in whole.items() if (first == "year") == ("year" in ordered)}
    dates = next(iter(whole.values()), None)
    for other in whole.values():
        if dates is not None and not dates.equals(other) and not dotted:
            row = int(np.argmax(dates != other))
            raise UsageError(
                f"{where} has dates such as '{shown(text.iloc[row])}' whose day could be the month or the year; "
                f"{_WRITE}."
            )
    return min(read.values(), key=lambda each: int(each.isna().sum())) if dates is None else dates


def _in_order(dates: pd.Series) -> bool:
    distinct = pd.Index(dates.unique())
    return distinct.is_monotonic_increasing or distinct.is_monotonic_decreasing


def _of_several_offsets(text: pd.Series, where: str, error: ValueError) -> tuple[pd.Series, tuple[str, ...]]:
    """Stamps of a clock that is set forward and back: in UTC, or as days where each is a midnight."""
    clock = text.str.replace(_OFFSET, "", regex=True)
    if not text.str.contains(rf":\d{{2}}(?:\.\d+)?{_OFFSET}", regex=True).all():
        raise UsageError(f"{where} has dates of several time zones; write them all in UTC.") from error
    try:
        local, utc = _stamps(clock, format="ISO8601"), _stamps(text, format="ISO8601", utc=True)
    except ValueError:
        raise UsageError(f"{where} has dates of several time zones; write them all in UTC.") from error
    if local.notna().all() and (local == local.dt.normalize()).all():
        return local, ("its stamps are midnights at several offsets from UTC, so they are taken as days",)
    return utc, ("its stamps have several offsets from UTC, so they are turned into UTC",)


def _check_years(text: pd.Series, where: str) -> None:
    """Refuse times of day and days without a year with a UsageError: they would be completed from
    the day of reading."""
    day = text.str.replace(_CLOCK, " ", regex=True)
    year = day.str.contains(r"\d{4}", regex=True) | (day.str.count(r"\d+|[^\W\d_]+") >= 3)
    without = ~year & text.str.contains(r"\d", regex=True)
    if without.any():
        row = int(np.argmax(without))
        raise UsageError(
            f"{where} has '{shown(text.iloc[row])}' at data row {row + 1}, a time without its date; {_WRITE}."
        )


def _stamps(text: pd.Series, **how: Any) -> pd.Series:
    # Through an index: pandas 2 returns several time zones as objects, which an index refuses as pandas 3 does at once.
    stamps = pd.Series(pd.DatetimeIndex(pd.to_datetime(text, errors="coerce", **how)))
    if stamps.dt.tz is not None and not how.get("utc"):
        zoned = text[stamps.notna().to_numpy()].str.contains(rf"[T ]\d{{2}}[\d:.]*{_OFFSET}", regex=True)
        if zoned.any() and not zoned.all():  # pandas 2 takes those without an offset to be of the same zone
            raise ValueError("stamps with a time zone and without")
    return stamps
