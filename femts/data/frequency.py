"""The even step between time stamps, dates or whole numbers: inference, checks, continuation, and its season."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.config.values import check_plain
from femts.data.describe import count
from femts.data.near_steps import near_even
from femts.data.stamps import MOST_NUMBER, YEARS, first_of_periods
from femts.data.wall_clock import NANOSECONDS, dates_at, follows_clock
from femts.errors import UsageError, reads
from femts.text import argument, arguments, quote

STRETCHES = (12, 3)  # lengths of gap-free stretches to infer a step from; twelve business days include a weekend
MOST_MISSING, ISLAND = 10, 3  # grid points per time stamp, and time stamps required on each side of the longest gap
LEAST_APART = pd.Timedelta(days=90)  # between two days on which clocks are set back
MONTH = 365.2425 / 12  # days
_SECONDS = {"D": 86_400, "h": 3600, "min": 60, "s": 1}  # by the base of a frequency with steps of constant length
_ROUND_STEPS = {  # in seconds
    **{"1s": 1, "10s": 10, "30s": 30, "1min": 60, "5min": 300, "10min": 600, "15min": 900, "30min": 1800},
    **{"1h": 3600, "2h": 7200, "3h": 10_800, "6h": 21_600, "12h": 43_200},
    **{"1D": 86_400, "W": 604_800, "MS": 2_629_746, "QS": 7_889_238, "YS": 31_556_952},
}
_SELDOM = {  # others, in seconds, of steps that are close to them
    **{"2s": 2, "5s": 5, "15s": 15, "20s": 20, "2min": 120, "3min": 180, "20min": 1200, "4h": 14_400, "8h": 28_800}
}
_CLOSE = 0.02  # relative difference
_BUSINESS_DAY = 8  # hours
_PER_YEAR = {"W": 52, **dict.fromkeys(("SMS", "SME"), 24), **dict.fromkeys(("MS", "ME", "BMS", "BME"), 12)}
_PER_YEAR |= dict.fromkeys(("QS", "QE", "BQS", "BQE"), 4)
_FIRST_MONTH = {"OCT": "JAN", "NOV": "FEB", "DEC": "MAR"}


def order_of(dates: pd.Index, where: str = "The frame") -> NDArray[np.intp] | None:
    """Indices that sort the rows by time; None if they are sorted. Raises UsageError for repeated time stamps."""
    again = dates.duplicated()
    if again.any():
        row, remedy = int(np.argmax(again)), ""
        if is_set_back(dates, again):
            with suppress(UsageError):
                remedy = f", give {arguments({'freq': step_of(dates.unique().sort_values())})} to average them"
            remedy += ", or write the stamps in UTC, in case a clock was set back"
        elif isinstance(dates, pd.DatetimeIndex):
            remedy = f", or add them up, as with {arguments({'freq': 'D', 'aggregate': 'sum'})}"
        raise UsageError(
            f"{where} repeats {count(int(again.sum()), 'date')}, the first {dates[row]} at data row {row + 1}; keep "
            f"one row per date{remedy}."
        )
    return None if dates.is_monotonic_increasing else np.argsort(dates.to_numpy(), kind="stable")


def is_set_back(dates: pd.Index, again: NDArray[np.bool_]) -> bool:
    """Return whether the dates that repeat, in the rows `again`, may be hours that clocks without a time zone show
    twice: at most one at night of a day, months apart, and most of its readings."""
    if not isinstance(dates, pd.DatetimeIndex) or dates.tz is not None or (dates == dates.normalize()).all():
        return False
    twice = dates[again].unique().sort_values()
    evening = pd.Timedelta(hours=1)  # some clocks are set back from midnight to 11 pm
    days, hours = (twice + evening).normalize(), np.asarray(twice.hour)
    apart = np.diff(days.unique())
    if 2 * len(twice) <= dates.unique().floor("h").isin(twice.floor("h")).sum():
        return False
    return bool(
        ((hours <= 3) | (hours == 23)).all()
        and (apart >= LEAST_APART).all()
        and (pd.Series(twice).groupby(days).agg(np.ptp) < evening).all()
    )


def step_of(dates: pd.Index, where: str = "The frame") -> str:
    """Step of sorted `dates`: a pandas frequency (business days, months and so on), or a number for whole numbers.

    Some time stamps may be missing, see `few_missing`; the step is that of the coarsest grid that contains all of them.
    If there is no such grid, it is that of even steps that all are close to, see `femts.data.near_steps`, or, if each
    falls into a different month, quarter or year, that period, see `first_of_periods`.

    Raises:
        UsageError: There are fewer than three dates, or no grid contains them; the message quotes two of them.
    """
    if len(dates) < 3:
        raise UsageError(
            f"{where} has {count(len(dates), 'time stamp')}; at least 3 are needed to infer the step between them."
        )
    if not isinstance(dates, pd.DatetimeIndex):
        step = int(np.gcd.reduce(np.diff(dates)))
        if few_missing(dates, str(step)):
            return str(step)
        row = int(np.argmax(np.diff(dates)))
        raise UsageError(
            f"{where} has no regular frequency: less than half of {dates[0]}, {dates[0] + step}, ... exist, and none "
            f"between {dates[row]} and {dates[row + 1]} (data rows {row + 1} and {row + 2}); "
            "resample the rows to a regular frequency."
        )
    inferred = _inferred(dates)
    # pandas also infers steps (business hours) that do not generate the same time stamps.
    if inferred is not None:
        grid = dates_at(inferred, dates[0], periods=len(dates))
        if grid.as_unit("ns").equals(dates.as_unit("ns")):  # pandas 3 keeps the unit of its input
            return inferred
    steps = dates[1:] - dates[:-1]
    counts = pd.Series(steps).value_counts()
    usual = counts.index[0]
    starts = range(0, len(dates) - 2, max(1, len(dates) // 200))
    stretches = (dates[start : start + length] for length in STRETCHES for start in starts)
    candidates = {_inferred(stretch) for stretch in stretches if len(stretch) > 2} - {None}
    fitting = [
        freq
        for freq in (*sorted(map(str, candidates)), str(to_offset(usual).freqstr))
        if few_missing(dates, freq) and dates.isin(grid_of(dates, freq)).all()
    ]
    if fitting:
        return min(fitting, key=lambda freq: len(grid_of(dates, freq)))
    moved = near_even(dates)
    if moved is not None and not moved.equals(dates):
        return step_of(moved, where)
    periods = _step_of_periods(dates)
    if periods is not None:
        return periods
    odd = int(np.argmax(steps != usual)) if counts.iloc[0] > 0.9 * len(steps) else int(np.argmax(steps))
    odd = int(np.argmin(steps)) if steps[odd] == usual else odd
    others = "most others" if counts.iloc[0] > len(steps) / 2 else "others"
    remedy = f"resample with {arguments({'freq': round_step(steps)})}"
    if (steps % usual == pd.Timedelta(0)).all():
        whole = (dates[-1] - dates[0]) // usual + 1
        remedy = f"remove those beyond a long gap, as only {len(dates)} of {whole} are present"
    text = (
        f"{where} has irregular time stamps: {dates[odd]} and {dates[odd + 1]} (data rows {odd + 1} and {odd + 2}) are "
        f"{_apart(steps[odd])} apart, {others} {_apart(usual)}; {remedy}, or number the rows instead with "
        f"{argument('freq=1')}, and {argument('season=N')} if N rows are a season."
    )
    raise UsageError(text, remedy={"freq": 1})


def _apart(step: pd.Timedelta) -> str:
    """A duration in its largest unit of which there are at least two, as in `90 min`."""
    for unit, name in (("D", "days"), ("h", "h"), ("min", "min")):
        if (number := step / pd.Timedelta(1, unit)) >= 2:
            return f"{number:{'.0f' if number > 1000 else '.4g'}} {name}"
    return f"{step / pd.Timedelta(1, 's'):.4g} s"


def round_step(steps: pd.TimedeltaIndex) -> str:
    """The common step, such as 15 minutes, or the number of years that is nearest to the median of `steps`."""
    median = max(pd.Series(steps).median(), pd.Timedelta(1, "s"))
    if (years := round(median / pd.Timedelta(12 * MONTH, "D"))) > 1:
        return f"{years}YS"
    apart = median / pd.Timedelta(1, "s")
    far = {freq: abs(np.log(seconds / apart)) for freq, seconds in (_ROUND_STEPS | _SELDOM).items()}
    return min((freq for freq in far if freq in _ROUND_STEPS or far[freq] < _CLOSE), key=far.__getitem__)


def _step_of_periods(dates: pd.DatetimeIndex) -> str | None:
    """Month, quarter, year or day if sorted `dates` fall into a different one each. None if two share a period, or if a
    skipped period is shorter than the gap suggests (between 28 March and 2 May, April is not missing)."""
    for freq, months in (("MS", 1), ("QS-JAN", 3), ("YS-JAN", 12)):
        first, notes = first_of_periods(dates, freq)
        if not notes:
            continue
        counts = np.diff(np.asarray(first.year) * 12 + np.asarray(first.month)) // months
        lengths = np.asarray((dates[1:] - dates[:-1]) / pd.Timedelta(days=MONTH * months))
        if ((counts > 1) & (np.round(lengths) != counts)).any():
            continue
        with suppress(UsageError):
            return step_of(first)
    days, notes = first_of_periods(dates, "D")
    with suppress(UsageError):
        return step_of(days) if notes and days.is_unique else None
    return None


def check_step(dates: pd.Index, freq: str, where: str = "The frame", given: bool = False) -> None:
    """Raise UsageError with the place if `dates` are not time stamps at the step `freq`, of the training data or
    `given` by the user; some may be missing."""
    if not len(dates):
        raise UsageError(f"{where} has no data rows; provide at least one.")
    step, remedy = f"the step '{freq}' of the training data", "resample the rows to that grid"
    if isinstance(dates, pd.DatetimeIndex) and not freq.isdecimal():
        remedy += f", or train with {arguments({'freq': freq})}, which averages them"
    if given:
        step, remedy = f"the requested step '{freq}'", "give the step of the rows, or resample them to that grid"
    if few_missing(dates, freq, given):
        wrong = ~np.asarray(dates.isin(grid_of(dates, freq)))
        if not wrong.any():
            return
        row, missing = int(np.argmax(wrong)), ""
    else:
        row = int(np.argmax(dates[1:] - dates[:-1])) + 1
        missing = f": {'nine in ten' if given else 'more than half'} of the stamps are missing, most of them after "
        missing += str(dates[row - 1])
    text = f"{where} does not keep {step} at data row {row + 1} ({dates[row]}){missing}; {remedy}."
    raise UsageError(text, argument="freq" if given else None, value=freq if given else None)


def few_missing(dates: pd.Index, freq: str, sure: bool = False) -> bool:
    """Return whether sorted `dates` contain enough of the time stamps at the step `freq` in their range.

    Half of them are enough. So is a tenth if the step is `sure`, or if nine of ten dates are consecutive and the others
    are in long gaps, with several dates on either side of the longest one; a single stray date is more likely a
    mistake. Time stamps at a step of constant length are counted, not generated, because a stray one could imply
    billions.
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
    if not _same_kind(dates, freq):
        return 0
    if not isinstance(dates, pd.DatetimeIndex):
        return (int(dates[-1]) - int(dates[0])) // int(freq) + 1
    offset = to_offset(freq)
    if isinstance(offset, pd.offsets.Tick):
        span = (int(dates.asi8[-1]) - int(dates.asi8[0])) * NANOSECONDS[dates.unit]
        return span // int(offset.nanos) + 1
    if isinstance(
        offset, pd.offsets.BusinessHour
    ):  # generated one by one, so first bounded by at least an hour in four
        hours = (dates[-1] - dates[0]) // pd.Timedelta(hours=4 * offset.n)
        if hours > 4 * len(dates):
            return int(hours)
    return len(grid_of(dates, freq))  # steps of days and more are few


def _same_kind(dates: pd.Index, freq: str) -> bool:
    """Return whether the step is a number for dates that are numbers, or a frequency for dates."""
    return freq.isdecimal() != isinstance(dates, pd.DatetimeIndex)


def grid_of(dates: pd.Index, freq: str) -> pd.Index:
    """All time stamps at the step `freq` in the range of `dates`; check with `few_missing` first that there are not too
    many."""
    if not _same_kind(dates, freq):
        return dates[:0]
    if freq.isdecimal():
        return pd.Index(np.arange(dates[0], dates[-1] + 1, int(freq)))
    grid = dates_at(freq, dates[0], dates[-1]).as_unit(dates.unit)
    if dates.tz is not None and isinstance(to_offset(freq), pd.offsets.Tick) and not dates.isin(grid).all():
        even = pd.date_range(dates[0], dates[-1], freq=freq).as_unit(dates.unit)
        if dates.isin(even).all():  # hours of another zone, which seemed to count from midnight
            return even
    return grid


def steps_between(first: object, last: object, freq: str) -> int | None:
    """Number of steps of `freq` from `first` to `last`, negative if `last` is earlier; None if they cannot be compared,
    such as dates with and without a time zone."""
    try:
        if freq.isdecimal():
            return (int(str(last)) - int(str(first))) // int(freq)
        each = [pd.Timestamp(str(first)), pd.Timestamp(str(last))]
        if None not in (each[0].tz, each[1].tz):  # text has UTC offsets, which differ before and after a change
            each = [one.tz_localize(None) if follows_clock(freq) else one.tz_convert("UTC") for one in each]
        ends = pd.DatetimeIndex(each)
        if ends.hasnans or ends[1] < ends[0]:
            return None if ends.hasnans else -1
        return _stamps_between(ends, freq) - 1
    except (TypeError, ValueError, OverflowError):
        return None


@reads("freq")
def read_step(freq: object) -> str | None:
    """Normalise a user's step as in `step_of`: a pandas frequency or a number; UsageError if it is invalid."""
    if freq is None:
        return None
    check_plain(freq, "Argument 'freq'")
    text = str(freq).strip()
    try:
        if text.isdecimal() and 0 < int(text) <= MOST_NUMBER:
            return str(int(text))
        with warnings.catch_warnings(action="ignore"):  # pandas 2 warns about aliases that pandas 3 rejects
            step = None if text.isdecimal() else to_offset(text)
        if step is not None and step.n > 0:
            _ = pd.Timestamp(2000, 1, 1).as_unit("ns") + step  # refuses steps that no dates have
            return _name_of(step)
    except (ValueError, TypeError, OverflowError):
        pass
    raise UsageError(
        f"Step '{quote(freq)}' is not a pandas frequency; use h, 15min, D, W-WED or MS, or a whole number for "
        "numbered rows."
    )


def _inferred(dates: pd.DatetimeIndex) -> str | None:
    # pandas 3 announces that a later version returns an offset; both types are handled.
    with warnings.catch_warnings(action="ignore"):
        inferred = pd.infer_freq(dates)
    return None if inferred is None else _name_of(to_offset(inferred))


def _name_of(offset: Any) -> str:
    """Name of a step; quarter starts are named by their first month, where pandas 2 uses the last one (QS-OCT)."""
    return re.sub(r"^(\d*B?QS-)(OCT|NOV|DEC)$", lambda step: step[1] + _FIRST_MONTH[step[2]], str(offset.freqstr))


def past_date(last: Any, freq: str, n: int) -> Any:
    """Time stamp `n` steps of `freq` before `last`, or the earliest that pandas supports."""
    if freq.isdecimal():
        return last - n * int(freq)
    try:
        return dates_at(freq, end=last, periods=n + 1)[0]
    except (OverflowError, ValueError):  # OutOfBoundsDatetime is a ValueError
        return pd.Timestamp.min.tz_localize(last.tz)


def future_dates(last: Any, freq: str, n: int) -> pd.Index:
    """The `n` time stamps after `last` at the step `freq`."""
    if freq.isdecimal():
        if int(last) + n * int(freq) > MOST_NUMBER:
            raise UsageError(
                f"A forecast of {count(n, 'step')} after {last} exceeds {MOST_NUMBER}; number the steps from 0."
            )
        return pd.Index(np.arange(1, n + 1) * int(freq) + last)
    late: Exception | None = None
    try:
        after = dates_at(freq, last, periods=n + 1)
        if after[-1].year <= YEARS[1]:
            return after[after > last][:n]
    except (OverflowError, ValueError) as error:
        late = error
    raise UsageError(
        f"A forecast of {count(n, 'step')} after {last} goes beyond the year {YEARS[1]}; use fewer steps."
    ) from late


def last_dates(dates: pd.Index, freq: str, n: int) -> pd.Index:
    """The last `n` of `dates`, extended before the first one at the step `freq` if there are fewer."""
    missing = n - len(dates)
    if missing <= 0:
        return dates[len(dates) - n :]
    if freq.isdecimal():
        return pd.Index(np.arange(-missing, 0) * int(freq) + dates[0]).append(dates)
    try:
        before = dates_at(freq, end=dates[0], periods=missing + 1)
    except (OverflowError, ValueError) as error:
        raise UsageError(
            f"A look-back of {count(n, 'step')} that ends at {dates[-1]} reaches before the first possible date; use fewer steps."
        ) from error
    return before[before < dates[0]][-missing:].append(dates)


def further_seasons(freq: str | None) -> tuple[int, ...]:
    """Numbers of steps in seasons other than that of `season_of`: the week, for steps that divide a day."""
    day = season_of(freq)
    offset = to_offset(freq) if day > 1 and freq is not None else None
    within = isinstance(offset, pd.offsets.Tick) and pd.Timedelta(offset) * day == pd.Timedelta(days=1)
    return (7 * day,) if within else ()


def season_of(freq: str | None) -> int:
    """Number of steps in the season of a pandas frequency: a day for steps below a day, a week for steps below a week,
    a year for longer ones; 1 for no season.

    If the step divides neither a day nor a week (5 h, 7 min, 3 days), the season is the smallest whole number of them
    that it divides up to one part in 200, of at most four weeks.
    """
    offset = to_offset(freq) if freq and not freq.isdecimal() else None
    if offset is None:
        return 1
    if isinstance(offset, pd.offsets.BusinessHour):
        return _BUSINESS_DAY // offset.n if _BUSINESS_DAY % offset.n == 0 else 1
    base, step, day, week = offset.rule_code.split("-")[0], int(offset.n), 1, 5
    if base in _SECONDS:
        step, day, week = step * _SECONDS[base], _SECONDS["D"], 7 * _SECONDS["D"]
        if step % week == 0:
            base, step = "W", step // week
    if base in _PER_YEAR:
        return _PER_YEAR[base] // step if _PER_YEAR[base] % step == 0 else 1
    if base not in (*_SECONDS, "B"):
        return 1
    cycle = day if step < day else week
    for span in range(cycle, 4 * week + 1, cycle):
        steps = round(span / step)
        if abs(steps * step - span) <= cycle / 200:
            return steps
    return 1


def phases(stamps: pd.Index | None, freq: str | None, season: int) -> NDArray[np.int64] | None:
    """Phase of each of `stamps` (n,) within its season, in steps from 0 to `season` - 1.

    Seasons are counted from a fixed time stamp, in the local time of the stamps' time zone. None without time stamps or
    a season, and for steps that cannot be counted, such as half-months.
    """
    if stamps is None or freq is None or season < 2:
        return None
    if freq.isdecimal():
        return np.asarray(stamps, dtype=np.int64) // int(freq) % season
    assert isinstance(stamps, pd.DatetimeIndex)
    offset, stamps = to_offset(freq), stamps.tz_localize(None)
    base = offset.rule_code.split("-")[0]
    if isinstance(offset, pd.offsets.Tick):
        step = int(pd.Timedelta(offset.nanos, unit="ns").value)
        return stamps.asi8 * NANOSECONDS[stamps.unit] // step % season
    if base in ("D", "W"):
        return stamps.as_unit("s").asi8 // (86_400 * (7 if base == "W" else 1) * offset.n) % season
    if base == "B" or isinstance(offset, pd.offsets.BusinessHour):
        days = np.busday_count("1970-01-01", stamps.to_numpy().astype("datetime64[D]"))
        hours = _BUSINESS_DAY * days + np.asarray(stamps.hour) - offset.start[0].hour if base != "B" else days
        return hours // offset.n % season
    months = {"YS": 1, "YE": 1, **_PER_YEAR}.get(base)
    if months is None or base in ("SMS", "SME"):
        return None
    month = np.asarray(stamps.year, dtype=np.int64) * 12 + np.asarray(stamps.month) - 1
    return month // (12 // months * offset.n) % season
