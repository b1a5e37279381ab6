"""Aggregation of rows over the steps of the calendar and clock that the user gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.typing import SeriesGroupBy
from pandas.tseries.frequencies import to_offset

from femts.data.check import numbers_of, words_of
from femts.data.describe import count
from femts.data.frequency import is_set_back
from femts.data.schema import Schema
from femts.data.stamps import as_text, read_dates
from femts.data.wall_clock import NANOSECONDS, dates_at, follows_clock, instants
from femts.errors import UsageError

STEADY = 0.9  # share of distances between rows that are near the usual one
_KEY, _LAST = "femts.step", "femts.last"  # columns that no table has


def by_step(frame: pd.DataFrame, schema: Schema, where: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """One row for each step of `schema.freq` and each series, and a note, if `is_aggregated`; otherwise the frame itself.

    Steps are whole ones of the calendar and clock. A row belongs to the step in which it lies or, if there is about one
    row per step, to the nearest. Targets are aggregated as `schema.aggregate` says, and covariates averaged, without
    missing values. Text, static covariates and the indicators of categories keep their last value in each step. If
    targets are named, columns without a role are dropped. If rows come at steady distances, as from sensors, the last
    step of a series is left out unless they reach its end.

    Raises:
        UsageError: A cell is not a number, or not a date; the message says which.
    """
    dated = _to_aggregate(frame, schema, where)
    if dated is None:
        return frame, ()
    (stamps, series, note), frame = dated, frame.reset_index(drop=True)
    names, roles, freq, columns = schema.form, schema.roles, str(schema.freq), list(frame.columns)
    time = names.time_among(columns)
    keys = [name for name in (names.series, *names.keys) if name in columns]
    listed = {*roles.target, *roles.past, *roles.future, *roles.static}
    cells = [name for name in columns if name not in (time, *keys) and (not roles.target or name in listed)]
    if not cells:  # refused later
        return frame, ()
    kept = {*words_of(frame[cells]), *roles.static, *(each for one in names.categories for each in one.indicators)}
    table = {name: frame[name] if name in kept else numbers_of(frame[name], name, where, schema.na) for name in cells}
    usual, steady = _distance(stamps, series)
    zone = stamps.tz if follows_clock(freq) else None
    stamps = stamps if zone is None else stamps.tz_localize(None)
    length = _length(freq)
    if schema.aggregate is None and length is not None and usual > length / 2:
        stamps += length / 2  # so that a row belongs to the nearest step
    # The constant key makes groups of the steps that have rows, and of no others.
    by = {_KEY: np.zeros(len(frame), np.int8), **{name: frame[name] for name in keys}, time: stamps, _LAST: stamps}
    # Steps that do not divide a day count from the same moment in every table; time zones have none.
    origin: Any = "epoch" if _is_even(freq) and not _divides_a_day(freq) and stamps.tz is None else "start_day"
    grid: Any = pd.Grouper(key=time, freq=freq, origin=origin)
    cells_by = pd.DataFrame({**by, **table})
    if isinstance(to_offset(freq), pd.offsets.BusinessHour):  # which a Grouper does not support
        grid, cells_by[time] = time, _business_hours(stamps, freq)
        closed = cells_by[time].isna()
        if closed.all():
            raise UsageError(f"{where} has no rows in business hours, the requested step '{freq}'; give another step.")
        cells_by = cells_by[~closed]
        note += f"; {count(int(closed.sum()), 'row')} outside business hours left out" * bool(closed.any())
    rows = cells_by.groupby([_KEY, *keys, grid], sort=False, observed=True, dropna=False)
    targets = [name for name in cells if name not in {*roles.past, *roles.future, *kept}]
    how = dict.fromkeys(cells, "mean") | dict.fromkeys(kept, "last")
    how |= {**dict.fromkeys(targets, schema.aggregate or "mean"), _LAST: "max"}
    made = pd.DataFrame({name: _reduced(rows[name], how[name]) for name in (*cells, _LAST)}).reset_index()
    if steady:
        last = made.groupby([_KEY, *keys], sort=False, observed=True, dropna=False)[time].transform("max")
        over = made[_LAST] + 1.5 * usual >= _ends(pd.DatetimeIndex(made[time]), freq)
        made = made[over | (made[time] < last)].reset_index(drop=True)
    made = made.drop(columns=[_KEY, _LAST])
    if zone is not None:
        made[time] = instants(pd.DatetimeIndex(made[time]), zone)
    if schema.aggregate == "sum":
        made = _with_zeros(made, keys, time, targets, freq)
    made.attrs = frame.attrs
    return made, (note,)


def _reduced(cells: SeriesGroupBy, how: str) -> pd.Series:
    return cells.sum(min_count=1) if how == "sum" else getattr(cells, how)()


def _with_zeros(made: pd.DataFrame, keys: list[str], time: str, targets: list[str], freq: str) -> pd.DataFrame:
    """The sums with rows of 0 for steps without any, from the first of each series to the last of all."""
    steps = pd.DataFrame({time: dates_at(freq, made[time].min(), made[time].max())})
    every = steps
    if keys:
        first = made.groupby(keys, sort=False, observed=True, dropna=False)[time].min().rename(_KEY).reset_index()
        every = first.merge(steps, how="cross")
        every = every.loc[every[time] >= every[_KEY], [*keys, time]]
    full = every.merge(made, on=[*keys, time], how="left", indicator=_KEY)
    full.loc[full[_KEY] == "left_only", targets] = 0.0
    return full.drop(columns=_KEY)


def is_aggregated(frame: pd.DataFrame, schema: Schema, where: str) -> bool:
    """Return whether `by_step` makes new rows: the table has dates, and the user gave an aggregate, or a step that the
    dates do not keep; repeated dates are then refused elsewhere."""
    return _to_aggregate(frame, schema, where) is not None


def _to_aggregate(
    frame: pd.DataFrame, schema: Schema, where: str
) -> tuple[pd.DatetimeIndex, NDArray[np.intp], str] | None:
    """Date of each row, number of its series, (N,), and a note why; None if the rows are not to be aggregated, see
    `is_aggregated`."""
    names, freq, columns = schema.form, schema.freq, list(frame.columns)
    time = names.time_among(columns)
    if freq is None or freq.isdecimal() or time not in columns or len(set(columns)) < len(columns):
        return None
    stamps, series = read_dates(frame[time], where, freq), np.zeros(len(frame), dtype=np.intp)
    if not isinstance(stamps, pd.DatetimeIndex):
        return None
    if names.series in columns:
        series = pd.factorize(as_text(frame[names.series]))[0]
    if schema.aggregate is not None:
        return stamps, series, f"each step of '{freq}' is the {schema.aggregate} of its rows"
    note = f"its {len(frame)} rows do not keep the step '{freq}' and are averaged over such steps"
    again = pd.MultiIndex.from_arrays([series, stamps]).duplicated()
    if again.any():
        if is_set_back(stamps, again):
            return stamps, series, note if _between_steps(stamps, series, freq) else _note_of_repeats(stamps, again)
        stamps = read_dates(frame[time], where)  # two may have been moved onto the same step
        if not isinstance(stamps, pd.DatetimeIndex) or pd.MultiIndex.from_arrays([series, stamps]).has_duplicates:
            return None
    return (stamps, series, note) if _between_steps(stamps, series, freq) else None


def _note_of_repeats(stamps: pd.DatetimeIndex, again: NDArray[np.bool_]) -> str:
    repeats = f"{count(stamps[again].nunique(), 'time stamp')}, the first {stamps[again].min()}"
    return f"its clocks were set back, so its rows repeat {repeats}, and are averaged there"


def _length(freq: str) -> pd.Timedelta | None:
    """Length of steps that all have the same, business hours included."""
    offset = to_offset(freq)
    if isinstance(offset, pd.offsets.BusinessHour):
        return pd.Timedelta(hours=offset.n)
    return pd.Timedelta(offset) if _is_even(freq) else None


def _business_hours(stamps: pd.DatetimeIndex, freq: str) -> pd.DatetimeIndex:
    """The business hour in which each of `stamps`, without a time zone, lies; NaT outside of these."""
    begins = pd.date_range(stamps.min().normalize(), stamps.max(), freq=freq)
    if not len(begins):
        return pd.DatetimeIndex(np.full(len(stamps), np.datetime64("NaT", "ns")))
    of = begins[(begins.searchsorted(stamps, side="right") - 1).clip(0)]
    since = stamps - of
    return of.where((since >= pd.Timedelta(0)) & (since < pd.Timedelta(hours=to_offset(freq).n)))


def _between_steps(stamps: pd.DatetimeIndex, codes: NDArray[np.intp], freq: str) -> bool:
    """Whether any time stamp is not a whole number of steps after the first of its series or, for steps of the calendar,
    not at the beginning of one."""
    offset = to_offset(freq)
    if not len(stamps):
        return False
    if not _is_even(freq):
        return not stamps.isin(dates_at(freq, stamps.min(), stamps.max())).all()
    if follows_clock(freq) and stamps.tz is not None and stamps.isin(dates_at(freq, stamps.min(), stamps.max())).all():
        return False
    numbers = pd.Series(stamps.asi8)
    since = (numbers - numbers.groupby(codes).transform("min")) * NANOSECONDS[stamps.unit]
    return bool((since % int(offset.nanos) != 0).any())


def _distance(stamps: pd.DatetimeIndex, codes: NDArray[np.intp]) -> tuple[pd.Timedelta, bool]:
    """Median distance between consecutive rows of the same series, and whether nearly all are within half of it."""
    order = np.lexsort((stamps.asi8, codes))
    apart = np.diff(stamps.asi8[order])[np.diff(codes[order]) == 0] * NANOSECONDS[stamps.unit]
    usual = int(np.median(apart)) if len(apart) else 0
    return pd.Timedelta(usual, "ns"), usual > 0 and bool(np.mean(np.abs(apart / usual - 1) <= 0.5) >= STEADY)


def _ends(steps: pd.DatetimeIndex, freq: str) -> pd.Series:
    """End of each step, from its name as pandas gives it: its beginning, or the last day of weeks and of ends of months."""
    offset, days = to_offset(freq), pd.offsets.Day(1)
    if isinstance(offset, pd.offsets.BusinessHour):  # the last one of a day would end on the next
        return pd.Series(steps + pd.Timedelta(hours=offset.n))
    named_by_last = isinstance(offset, pd.offsets.Week) or freq.partition("-")[0].endswith("E")
    return pd.Series(steps + (days if named_by_last else offset))


def _is_even(freq: str) -> bool:
    """Whether all steps have the same length, unlike days, of which some are shorter."""
    offset = to_offset(freq)
    return isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)


def _divides_a_day(freq: str) -> bool:
    return _is_even(freq) and pd.Timedelta(days=1) % pd.Timedelta(to_offset(freq)) == pd.Timedelta(0)
