"""Time stamps, dates or whole numbers: reading them, their order, the even step between them, and the stamps to come."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from femts.errors import UsageError

STRETCHES = (12, 3)  # stamps that a step is read from where others are missing; twelve business days have a weekend
LIKE_DATES = ((1800, 2200), (18000101, 22000101))
_WRITE = "write it as 2024-12-31 23:00:00"


def read_dates(column: pd.Series, where: str = "The frame", freq: str | None = None) -> pd.Index:
    """The stamps of a column of text, datetimes or whole numbers, in the order they come.

    Whole numbers that could be years or days are those, unless their step `freq` is known to be a number.

    Raises:
        UsageError: a cell is no date, or could be two; the text says which.
    """
    counted = _counted(column, freq)
    if counted is not None:
        return counted
    dates = column if pd.api.types.is_datetime64_any_dtype(column) else _parse(column.astype(str), where)
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        raise UsageError(f"{where} has '{column.iloc[row]}' where data row {row + 1} should have a date; {_WRITE}.")
    return pd.DatetimeIndex(dates)


def check_order(dates: pd.Index, where: str = "The frame") -> None:
    """Refuse repeated stamps and stamps out of order with a UsageError that says which."""
    again = dates.duplicated()
    if again.any():
        row = int(np.argmax(again))
        first = f"the first {dates[row]} at data row {row + 1}"
        raise UsageError(f"{where} repeats {int(again.sum())} dates, {first}; keep one row a date.")
    if not dates.is_monotonic_increasing:
        row = int(np.argmax(dates[1:] < dates[:-1])) + 1
        raise UsageError(f"{where} goes back in time at data row {row + 1} ({dates[row]}); sort it by date.")


def step_of(dates: pd.Index, where: str = "The frame") -> str:
    """The step of ordered `dates`: a pandas frequency (business days, months and so on), or a number for whole numbers.

    Stamps may be missing: the step is then that of the coarsest grid that has every stamp, where at least half of it is there.

    Raises:
        UsageError: fewer than three dates, or stamps on no grid; the text says between which two.
    """
    if len(dates) < 3:
        raise UsageError(f"{where} has {len(dates)} data rows; at least 3 are needed to see the step between them.")
    if not isinstance(dates, pd.DatetimeIndex):
        step = int(np.gcd.reduce(np.diff(dates)))
        if len(grid_of(dates, str(step))) <= 2 * len(dates):
            return str(step)
        raise UsageError(f"{where} has times with no even step: less than half of {dates[0]}, {dates[0] + step}, ... is there.")
    inferred = _inferred(dates)
    # Inference alone is not enough: it also names steps (business hours) that do not generate the same stamps.
    if inferred is not None and not _off_grid(dates, inferred).any():
        return inferred
    steps = dates[1:] - dates[:-1]
    counts = pd.Series(steps).value_counts()
    usual = counts.index[0]
    fitting = [freq for freq in _candidates(dates, usual) if _has_all(dates, freq)]
    if fitting:
        return min(fitting, key=lambda freq: len(grid_of(dates, freq)))
    odd = int(np.argmax(steps != usual)) if counts.iloc[0] > 0.9 * len(steps) else int(np.argmax(steps))
    raise UsageError(
        f"{where} has an uneven step: from {dates[odd]} to {dates[odd + 1]} (data rows {odd + 1} and {odd + 2}) it is "
        f"{steps[odd]}, mostly {usual}; put the rows on an even grid."
    )


def grid_of(dates: pd.Index, freq: str) -> pd.Index:
    """Every stamp of the step `freq` from the first of `dates` to the last."""
    if freq.isdecimal() != (not isinstance(dates, pd.DatetimeIndex)):
        return dates[:0]  # times of another kind have none
    if freq.isdecimal():
        return pd.Index(np.arange(dates[0], dates[-1] + 1, int(freq)))
    return pd.date_range(dates[0], dates[-1], freq=freq).as_unit(dates.unit)


def _candidates(dates: pd.DatetimeIndex, usual: pd.Timedelta) -> list[str]:
    """Steps that stretches of stamps without a gap have, and last the usual distance."""
    starts = range(0, len(dates) - 2, max(1, len(dates) // 200))
    stretches = (dates[start : start + length] for length in STRETCHES for start in starts)
    found = {_inferred(stretch) for stretch in stretches if len(stretch) > 2}
    return [*sorted(freq for freq in found if freq is not None), str(to_offset(usual).freqstr)]


def _has_all(dates: pd.DatetimeIndex, freq: str) -> bool:
    grid = grid_of(dates, freq)
    return len(grid) <= 2 * len(dates) and bool(dates.isin(grid).all())


def _inferred(dates: pd.DatetimeIndex) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 3 announces that a later one returns an offset; both are taken
        inferred = pd.infer_freq(dates)
    return None if inferred is None else str(to_offset(inferred).freqstr)


def check_step(dates: pd.Index, freq: str, where: str = "The frame") -> None:
    """Refuse `dates` that are not stamps of the step `freq` with a UsageError that says where; some may be missing."""
    if not len(dates):
        raise UsageError(f"{where} has no data rows; give at least one.")
    grid = grid_of(dates, freq)
    wrong = ~np.asarray(dates.isin(grid))
    if len(grid) > 2 * len(dates):  # more than half is missing: it is another step
        wrong = np.arange(len(dates)) > 0
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UsageError(
            f"{where} does not keep the step '{freq}' of the training data at data row {row + 1} ({dates[row]}); "
            "put the rows on that grid."
        )


def season_of(freq: str | None) -> int:
    """Steps in the season of a pandas frequency: a day for steps below it, a week for days, a year above; else 1."""
    offset = to_offset(freq) if freq and not freq.isdecimal() else None
    if offset is None:
        return 1
    calendar = {"D": 7, "B": 5, "W": 52, "MS": 12, "ME": 12, "BMS": 12, "BME": 12, "QS": 4, "QE": 4}
    base = offset.rule_code.split("-")[0]
    if base not in ("h", "min", "s"):
        return calendar.get(base, 1) if offset.n == 1 else 1
    return max(1, int(pd.Timedelta(days=1) / pd.Timedelta(offset.nanos, unit="ns")))


def future_dates(last: Any, freq: str, n: int) -> pd.Index:
    """The `n` stamps that follow `last` at the step `freq`."""
    if freq.isdecimal():
        return pd.Index(np.arange(1, n + 1) * int(freq) + last)
    after = pd.date_range(last, periods=n + 1, freq=freq)
    return after[after > last][:n]


def _off_grid(dates: pd.DatetimeIndex, freq: str) -> np.ndarray:
    """Per stamp, whether it differs from the grid of `freq` that begins at or after the first one."""
    grid = pd.date_range(dates[0], periods=len(dates), freq=freq)
    # pandas 3 keeps several units; only stamps of one unit compare equal.
    return np.asarray(grid.as_unit("ns") != dates.as_unit("ns"))


def _counted(column: pd.Series, freq: str | None) -> pd.Index | None:
    """Whole numbers, written as such; None for anything else and, where `freq` is no number, for years and for 20241231."""
    if pd.api.types.is_datetime64_any_dtype(column) or not column.astype(str).str.fullmatch(r"-?\d{1,18}").all():
        return None
    numbers = pd.Index(column.astype(str).astype("int64"))
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
            month_first = _stamps(text)
            day_first = _stamps(text, dayfirst=True)
    except ValueError as error:
        raise UsageError(f"{where} has dates of several time zones; write them all in UTC.") from error
    if not month_first.isna().any() and not day_first.isna().any() and not month_first.equals(day_first):
        row = int(np.argmax(month_first != day_first))
        raise UsageError(f"{where} has dates such as '{text.iloc[row]}' whose day could be the month; {_WRITE}.")
    return min((month_first, day_first), key=lambda dates: int(dates.isna().sum()))


def _stamps(text: pd.Series, **how: Any) -> pd.Series:
    # Through an index: pandas 2 returns several time zones as objects, which an index refuses as pandas 3 does at once.
    return pd.Series(pd.DatetimeIndex(pd.to_datetime(text, errors="coerce", **how)))
