"""Time stamps, dates or whole numbers: their order, the even step between them, and the stamps to come."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.config.values import check_plain
from femts.data.describe import count
from femts.data.timestamps import MOST_NUMBER, YEARS
from femts.errors import UsageError
from femts.text import shown

STRETCHES = (12, 3)  # stamps that a step is read from where others are missing; twelve business days have a weekend
MOST_MISSING, ISLAND = 10, 3  # stamps for each that is there, and dates beside the longest hole
_QUARTERS = re.compile(r"^(\d*B?QS-)(OCT|NOV|DEC)$")
_SECONDS = {"D": 86_400, "h": 3600, "min": 60, "s": 1}  # in steps of one length, by the base of a frequency
_A_YEAR = {
    "W": 52,
    "SMS": 24,
    "SME": 24,
    "MS": 12,
    "ME": 12,
    "BMS": 12,
    "BME": 12,
    "QS": 4,
    "QE": 4,
    "BQS": 4,
    "BQE": 4,
}
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def order_of(dates: pd.Index, where: str = "The frame") -> NDArray[np.intp] | None:
    """The rows in order of time; None where they are. UsageError for repeated stamps, which says which."""
    again = dates.duplicated()
    if again.any():
        row = int(np.argmax(again))
        first = f"the first {dates[row]} at data row {row + 1}"
        remedy = ", or write the stamps in UTC, where a clock was set back" if _of_clocks(dates[again]) else ""
        raise UsageError(f"{where} repeats {count(int(again.sum()), 'date')}, {first}; keep one row a date{remedy}.")
    return None if dates.is_monotonic_increasing else np.argsort(dates.to_numpy(), kind="stable")


def _of_clocks(dates: pd.Index) -> bool:
    """Tell whether repeated stamps may be those of a clock that is set back: without a time zone, early in the day."""
    return isinstance(dates, pd.DatetimeIndex) and dates.tz is None and bool(dates.hour.isin((1, 2, 3)).all())


def step_of(dates: pd.Index, where: str = "The frame") -> str:
    """The step of ordered `dates`: a pandas frequency (business days, months and so on), or a number for whole numbers.

    Stamps may be missing, as `few_missing` says: the step is then that of the coarsest grid that has every stamp.

    Raises:
        UsageError: fewer than three dates, or stamps on no grid; the text says between which two.
    """
    if len(dates) < 3:
        raise UsageError(f"{where} has {len(dates)} data rows; at least 3 are needed to see the step between them.")
    if not isinstance(dates, pd.DatetimeIndex):
        step = int(np.gcd.reduce(np.diff(dates)))
        if few_missing(dates, str(step)):
            return str(step)
        row = int(np.argmax(np.diff(dates)))
        raise UsageError(
            f"{where} has times with no even step: less than half of {dates[0]}, {dates[0] + step}, ... is there, and "
            f"nothing between {dates[row]} and {dates[row + 1]} (data rows {row + 1} and {row + 2}); "
            "put the rows on an even grid."
        )
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
    odd = int(np.argmin(steps)) if steps[odd] == usual else odd
    often = "mostly" if counts.iloc[0] > len(steps) / 2 else "elsewhere also"
    remedy = "put the rows on an even grid"
    if (steps % usual == pd.Timedelta(0)).all():
        whole = (dates[-1] - dates[0]) // usual + 1
        remedy = f"only {len(dates)} of {whole} stamps are there; leave out those beyond a long hole"
    elif usual.days >= 28 and len(set(dates.day)) == 1:
        remedy = "if a row is a month, stamp it with the first day of that month"
    raise UsageError(
        f"{where} has an uneven step: from {dates[odd]} to {dates[odd + 1]} (data rows {odd + 1} and {odd + 2}) it is "
        f"{steps[odd]}, {often} {usual}; {remedy}."
    )


def few_missing(dates: pd.Index, freq: str, sure: bool = False) -> bool:
    """Tell if ordered `dates` are enough of the stamps of the step `freq` from the first of them to the last.

    That is half of them; or a tenth, where the step is `sure`, or where nine of ten dates follow each other and the
    others lie in long holes, the longest of which has several dates on either side: a stray one is a mistake.
    Where the step has one length the stamps are counted, not made: a stray one would make billions.
    """
    stamps = _stamps_between(dates, freq)
    if stamps <= 2 * len(dates):
        return True
    if sure or stamps > MOST_MISSING * len(dates):
        return stamps <= MOST_MISSING * len(dates)
    distances = np.diff(grid_of(dates, freq).get_indexer(dates))
    longest = int(np.argmax(distances))
    return (
        10 * int((distances == 1).sum()) >= 9 * len(distances) and min(longest + 1, len(distances) - longest) >= ISLAND
    )


def _stamps_between(dates: pd.Index, freq: str) -> int:
    if _other_kind(dates, freq):
        return 0
    if not isinstance(dates, pd.DatetimeIndex):
        return (int(dates[-1]) - int(dates[0])) // int(freq) + 1
    offset = to_offset(freq)
    if isinstance(offset, pd.offsets.Tick):
        span = (int(dates.asi8[-1]) - int(dates.asi8[0])) * NANOSECONDS[dates.unit]
        return span // int(offset.nanos) + 1
    if isinstance(offset, pd.offsets.BusinessHour):  # made one by one, an hour of four at most
        hours = (dates[-1] - dates[0]) // pd.Timedelta(hours=4 * offset.n)
        if hours > 4 * len(dates):
            return int(hours)
    return len(grid_of(dates, freq))  # steps of days and more, of which the calendar has few


def steps_between(first: object, last: object, freq: str) -> int | None:
    """Number of steps of `freq` from one stamp to another, below 0 where `last` comes before; None
    where they do not compare, such as dates with a time zone and without."""
    try:
        if freq.isdecimal():
            return (int(str(last)) - int(str(first))) // int(freq)
        ends = pd.DatetimeIndex([pd.Timestamp(str(first)), pd.Timestamp(str(last))])
        if ends.hasnans or ends[1] < ends[0]:
            return None if ends.hasnans else -1
        return _stamps_between(ends, freq) - 1
    except (TypeError, ValueError, OverflowError):
        return None


def _other_kind(dates: pd.Index, freq: str) -> bool:
    """Numbers for a step that is a frequency, or dates for one that is a number."""
    return freq.isdecimal() == isinstance(dates, pd.DatetimeIndex)


def grid_of(dates: pd.Index, freq: str) -> pd.Index:
    """Every stamp of the step `freq` from the first of `dates` to the last; `few_missing` says
    before if they are few."""
    if _other_kind(dates, freq):
        return dates[:0]
    if freq.isdecimal():
        return pd.Index(np.arange(dates[0], dates[-1] + 1, int(freq)))
    return pd.date_range(dates[0], dates[-1], freq=freq).as_unit(dates.unit)


def _candidates(dates: pd.DatetimeIndex, usual: pd.Timedelta) -> list[str]:
    """Steps that stretches of stamps without a gap have, and last the usual distance."""
    starts = range(0, len(dates) - 2, max(1, len(dates) // 200))
    stretches = (dates[start : start + length] for length in STRETCHES for start in starts)
    inferred = {_inferred(stretch) for stretch in stretches if len(stretch) > 2}
    return [*sorted(freq for freq in inferred if freq is not None), str(to_offset(usual).freqstr)]


def _has_all(dates: pd.DatetimeIndex, freq: str) -> bool:
    return few_missing(dates, freq) and bool(dates.isin(grid_of(dates, freq)).all())


def _inferred(dates: pd.DatetimeIndex) -> str | None:
    # Pandas 3 announces that a later one returns an offset; both are taken.
    with warnings.catch_warnings(action="ignore"):
        inferred = pd.infer_freq(dates)
    return None if inferred is None else _QUARTERS.sub(_first_quarter, str(to_offset(inferred).freqstr))


def _first_quarter(step: re.Match[str]) -> str:
    """The step of quarter starts, named by the first of its months: pandas 2 names it by the last one, QS-OCT."""
    return step[1] + {"OCT": "JAN", "NOV": "FEB", "DEC": "MAR"}[step[2]]


def check_step(dates: pd.Index, freq: str, where: str = "The frame", given: bool = False) -> None:
    """Refuse `dates` that are not stamps of the step `freq`, of the training data or `given` by a user, with a
    UsageError that says where; some may be missing."""
    if not len(dates):
        raise UsageError(f"{where} has no data rows; give at least one.")
    whose, remedy = "of the training data", "put the rows on that grid"
    if given:
        whose, remedy = "of --freq", "give the step of the rows, or put them on that grid"
    if not few_missing(dates, freq, given):
        row = int(np.argmax(dates[1:] - dates[:-1]))
        raise UsageError(
            f"{where} does not keep the step '{freq}' {whose} at data row {row + 2} ({dates[row + 1]}): "
            f"{'nine in ten' if given else 'more than half'} of the stamps are missing, most of them after "
            f"{dates[row]}; {remedy}."
        )
    wrong = ~np.asarray(dates.isin(grid_of(dates, freq)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UsageError(
            f"{where} does not keep the step '{freq}' {whose} at data row {row + 1} ({dates[row]}); {remedy}."
        )


def season_of(freq: str | None) -> int:
    """Steps in the season of a pandas frequency, 1 for none: a day for steps below it, a week for those below a week,
    a year for longer ones.

    Of steps that do not divide a day or a week (5 h, 7 min, 3 days), the fewest that make whole ones, to a part in
    200 of one, up to four weeks.
    """
    offset = to_offset(freq) if freq and not freq.isdecimal() else None
    if offset is None:
        return 1
    base, step, day, week = offset.rule_code.split("-")[0], int(offset.n), 1, 5
    if base in _SECONDS:
        step, day, week = step * _SECONDS[base], _SECONDS["D"], 7 * _SECONDS["D"]
        if step % week == 0:
            base, step = "W", step // week
    if base in _A_YEAR:
        return _A_YEAR[base] // step if _A_YEAR[base] % step == 0 else 1
    if base not in (*_SECONDS, "B"):
        return 1
    cycle = day if step < day else week
    for span in range(cycle, 4 * week + 1, cycle):
        steps = round(span / step)
        if abs(steps * step - span) <= cycle / 200:
            return steps
    return 1


def read_step(freq: object) -> str | None:
    """A step that a user gave, as `step_of` writes it: a pandas frequency, or a number; UsageError where it is none."""
    if freq is None:
        return None
    check_plain(freq, "Argument 'freq'")
    text = str(freq).strip()
    try:
        if text.isdecimal():
            step: Any = int(text) if 0 < int(text) <= MOST_NUMBER else None
        else:
            with warnings.catch_warnings(action="ignore"):  # of pandas 2, which still reads some that pandas 3 does not
                step = to_offset(text)
        if step is not None and (isinstance(step, int) or step.n > 0):
            return str(step) if isinstance(step, int) else _QUARTERS.sub(_first_quarter, str(step.freqstr))
    except (ValueError, TypeError, OverflowError):
        pass
    raise UsageError(
        f"Step '{shown(freq)}' is no frequency of pandas; write --freq h, 15min, D, W-WED, MS or the like, or a whole "
        "number for rows that are numbered."
    )


def past_date(last: Any, freq: str, n: int) -> Any:
    """The stamp `n` steps of `freq` before `last`; the first that pandas knows, where there is none so early."""
    if freq.isdecimal():
        return last - n * int(freq)
    try:
        return pd.date_range(end=last, periods=n + 1, freq=freq)[0]
    except (OverflowError, ValueError):  # pandas' own for dates out of bounds is a ValueError
        return pd.Timestamp.min.tz_localize(last.tz)


def future_dates(last: Any, freq: str, n: int) -> pd.Index:
    """The `n` stamps that follow `last` at the step `freq`."""
    if freq.isdecimal():
        if int(last) + n * int(freq) > MOST_NUMBER:
            raise UsageError(
                f"A forecast of {n} steps after {last} leads beyond {MOST_NUMBER}; number the steps from 0."
            )
        return pd.Index(np.arange(1, n + 1) * int(freq) + last)
    try:
        after = pd.date_range(last, periods=n + 1, freq=freq)
        if after[-1].year <= YEARS[1]:
            return after[after > last][:n]
    except (OverflowError, ValueError) as error:  # pandas' own for dates out of bounds is a ValueError
        late: Exception | None = error
    else:
        late = None
    raise UsageError(
        f"A forecast of {n} steps after {last} leads beyond the year {YEARS[1]}; ask for fewer steps."
    ) from late


def last_dates(dates: pd.Index, freq: str, n: int) -> pd.Index:
    """The last `n` of `dates`, continued at the step `freq` before the first where these are fewer."""
    missing = n - len(dates)
    if missing <= 0:
        return dates[len(dates) - n :]
    if freq.isdecimal():
        return pd.Index(np.arange(-missing, 0) * int(freq) + dates[0]).append(dates)
    try:
        before = pd.date_range(end=dates[0], periods=missing + 1, freq=freq)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"A look-back of {n} steps that ends at {dates[-1]} leads beyond all dates.") from error
    return before[before < dates[0]][-missing:].append(dates)


def _off_grid(dates: pd.DatetimeIndex, freq: str) -> np.ndarray:
    """Per stamp, whether it differs from the grid of `freq` that begins at or after the first one."""
    grid = pd.date_range(dates[0], periods=len(dates), freq=freq)
    # pandas 3 keeps several units; only stamps of one unit compare equal.
    return np.asarray(grid.as_unit("ns") != dates.as_unit("ns"))
