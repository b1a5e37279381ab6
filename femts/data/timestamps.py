"""Reading stamps: dates and whole numbers as users write them, refused where they could mean two things."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from femts.errors import UsageError
from femts.text import shown

LIKE_DATES = ((1800, 2200), (18000101, 22000101))
YEARS = (1678, 2261)  # whole ones that nanoseconds in 64 bits reach, which pandas counts in
MOST_NUMBER = 2**53  # of a stamp that is a number: no larger one is sure to differ from the next
_WRITE = "write it as 2024-12-31 23:00:00"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?|\b[aApP]\.?[mM]\b"


def read_dates(column: pd.Series, where: str = "The frame", freq: str | None = None) -> pd.Index:
    """The stamps of a column of text, datetimes or whole numbers, in the order they come.

    Whole numbers that could be years or days are those, unless their step `freq` is known to be a number.

    Raises:
        UsageError: a cell is no date, or could be two; the text says which.
    """
    counted = _counted(column, freq, where)
    if counted is not None:
        return counted
    dates = column if pd.api.types.is_datetime64_any_dtype(column) else _parse(column.astype(str), where)
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        raise UsageError(f"{where} has '{shown(column.iloc[row])}' where data row {row + 1} should have a date; {_WRITE}.")
    stamps = pd.DatetimeIndex(dates)
    beyond = np.asarray((stamps.year < YEARS[0]) | (stamps.year > YEARS[1]))
    if beyond.any():
        row = int(np.argmax(beyond))
        raise UsageError(
            f"{where} has a date in the year {stamps[row].year} at data row {row + 1}; dates are from {YEARS[0]} to "
            f"{YEARS[1]}, so number the steps instead."
        )
    return stamps


def _counted(column: pd.Series, freq: str | None, where: str) -> pd.Index | None:
    """Whole numbers, written as such; None for anything else and, where `freq` is no number, for years and for 20241231."""
    if pd.api.types.is_datetime64_any_dtype(column) or not column.astype(str).str.fullmatch(r"-?\d{1,18}").all():
        return None
    numbers = pd.Index(column.astype(str).astype("int64"))
    beyond = np.abs(numbers) > MOST_NUMBER
    if beyond.any():
        row = int(np.argmax(beyond))
        raise UsageError(
            f"{where} has the stamp {numbers[row]} at data row {row + 1}, beyond {MOST_NUMBER}; number the steps from 0."
        )
    if freq is not None and freq.isdecimal():
        return numbers
    return None if any(numbers.min() >= low and numbers.max() < high for low, high in LIKE_DATES) else numbers


def _parse(text: pd.Series, where: str) -> pd.Series:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas warns when it has to guess; the guesses are compared below
            iso = _stamps(text, format="ISO8601")
            # One ISO date makes the others mistakes; a bare number would be completed from today's date.
            if iso.notna().any() or text.str.fullmatch(r"\d+(\.\d+)?").any():
                return iso
            _check_years(text, where)
            month_first = _stamps(text)
            day_first = _stamps(text, dayfirst=True)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{where} has dates of several time zones; write them all in UTC.") from error
    if not month_first.isna().any() and not day_first.isna().any() and not month_first.equals(day_first):
        row = int(np.argmax(month_first != day_first))
        raise UsageError(f"{where} has dates such as '{shown(text.iloc[row])}' whose day could be the month; {_WRITE}.")
    return min((month_first, day_first), key=lambda dates: int(dates.isna().sum()))


def _check_years(text: pd.Series, where: str) -> None:
    """Refuse times of day and days without a year with a UsageError: they would be completed from the day of reading."""
    day = text.str.replace(_CLOCK, " ", regex=True)
    year = day.str.contains(r"\d{4}", regex=True) | (day.str.count(r"\d+|[^\W\d_]+") >= 3)
    without = ~year & text.str.contains(r"\d", regex=True)
    if without.any():
        row = int(np.argmax(without))
        raise UsageError(f"{where} has '{shown(text.iloc[row])}' at data row {row + 1}, a time without its date; {_WRITE}.")


def _stamps(text: pd.Series, **how: Any) -> pd.Series:
    # Through an index: pandas 2 returns several time zones as objects, which an index refuses as pandas 3 does at once.
    return pd.Series(pd.DatetimeIndex(pd.to_datetime(text, errors="coerce", **how)))
