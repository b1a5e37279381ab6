"""Aggregation of rows over the steps of the calendar and clock that the user gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.typing import SeriesGroupBy
from pandas.tseries.frequencies import to_offset

from femts.data.check import numbers_of, words_of
from femts.data.schema import Schema
from femts.data.stamps import as_text, read_dates
from femts.data.wall_clock import NANOSECONDS, dates_at, follows_clock, instants

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
    (stamps, series), frame = dated, frame.reset_index(drop=True)
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
    if schema.aggregate is None and _is_even(freq) and usual > pd.Timedelta(to_offset(freq)) / 2:
        stamps += pd.Timedelta(to_offset(freq)) / 2  # so that a row belongs to the nearest step
    # The constant key makes groups of the steps that have rows, and of no others.
    by = {_KEY: np.zeros(len(frame), np.int8), **{name: frame[name] for name in keys}, time: stamps, _LAST: stamps}
    # Steps that do not divide a day count from the same moment in every table; time zones have none.
    origin: Any = "epoch" if _is_even(freq) and not _divides_a_day(freq) and stamps.tz is None else "start_day"
    grid = pd.Grouper(key=time, freq=freq, origin=origin)
    rows = pd.DataFrame({**by, **table}).groupby([_KEY, *keys, grid], sort=False, observed=True, dropna=False)
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
    if schema.aggregate is not None:
        return made, (f"each step of '{freq}' is the {schema.aggregate} of its rows",)
    return made, (f"its {len(frame)} rows do not keep the step '{freq}' and are averaged over such steps",)


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


def _to_aggregate(frame: pd.DataFrame, schema: Schema, where: str) -> tuple[pd.DatetimeIndex, NDArray[np.intp]] | None:
    """Date of each row, and number of its series, (N,); None if the rows are not to be aggregated, see
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
    if schema.aggregate is None:
        repeated = pd.MultiIndex.from_arrays([series, stamps]).has_duplicates
        if repeated or not _between_steps(stamps, series, freq):
            return None
    return stamps, series


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
    named_by_last = isinstance(offset, pd.offsets.Week) or freq.partition("-")[0].endswith("E")
    return pd.Series(steps + (days if named_by_last else offset))


def _is_even(freq: str) -> bool:
    """Whether all steps have the same length, unlike days, of which some are shorter."""
    offset = to_offset(freq)
    return isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)


def _divides_a_day(freq: str) -> bool:
    return _is_even(freq) and pd.Timedelta(days=1) % pd.Timedelta(to_offset(freq)) == pd.Timedelta(0)
