"""Aggregation of rows over the steps of the calendar and clock that the user gave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.typing import SeriesGroupBy
from pandas.tseries.frequencies import to_offset

from femts.data.check import numbers_of, words_of
from femts.data.frequency import NANOSECONDS
from femts.data.rows import Rows

STEADY = 0.9  # share of distances between rows that are near the usual one
_KEY, _STEP, _LAST = "femts.series", "femts.step", "femts.last"  # columns that no table has


def by_step(rows: Rows) -> Rows:
    """One row for each step of the schema's `freq` and each series, if rows are to be aggregated; otherwise `rows`.

    They are if the user gave an aggregate, or a step that the dates do not keep; repeated dates are then refused
    elsewhere. Steps are whole ones of the calendar and clock. A row belongs to the step in which it lies or, if there
    is about one row per step, to the nearest. Targets are aggregated as `schema.aggregate` says, and covariates
    averaged, without missing values. Text, static covariates and the indicators of categories keep their last value in
    each step. If targets are named, columns without a role are dropped. If rows come at steady distances, as from
    sensors, the last step of a series is left out unless they reach its end.

    Raises:
        UsageError: A cell is not a number; the message says which.
    """
    names, roles, freq = rows.schema.form, rows.schema.roles, str(rows.schema.freq)
    listed = {*roles.target, *roles.past, *roles.future, *roles.static}
    cells = [name for name in rows.columns if not roles.target or name in listed]
    if not cells or not _to_aggregate(rows):
        return rows
    aggregate, stamps = rows.schema.aggregate, pd.DatetimeIndex(rows.stamps)
    indicators = (each for one in names.categories for each in one.indicators)
    kept = {*words_of(rows.frame[cells]), *roles.static, *indicators}
    table = {
        name: rows.frame[name].array if name in kept else numbers_of(rows.frame[name], name, rows.where, rows.schema.na)
        for name in cells
    }
    usual, steady = _distance(stamps, rows.codes)
    if aggregate is None and _is_even(freq) and usual > pd.Timedelta(to_offset(freq)) / 2:
        stamps += pd.Timedelta(to_offset(freq)) / 2  # so that a row belongs to the nearest step
    # Steps that do not divide a day count from the same moment in every table; time zones have none.
    origin: Any = "epoch" if _is_even(freq) and not _divides_a_day(freq) and stamps.tz is None else "start_day"
    grid = pd.Grouper(key=_STEP, freq=freq, origin=origin)
    # The codes make groups of the steps that have rows, and of no others.
    parts = pd.DataFrame({_KEY: rows.codes, _STEP: stamps, _LAST: stamps, **table})
    groups = parts.groupby([_KEY, grid], sort=False)
    targets = [name for name in cells if name not in {*roles.past, *roles.future, *kept}]
    how = dict.fromkeys(cells, "mean") | dict.fromkeys(kept, "last")
    how |= {**dict.fromkeys(targets, aggregate or "mean"), _LAST: "max"}
    made = pd.DataFrame({name: _reduced(groups[name], how[name]) for name in (*cells, _LAST)}).reset_index()
    if steady:
        last = made.groupby(_KEY, sort=False)[_STEP].transform("max")
        over = made[_LAST] + 1.5 * usual >= _ends(pd.DatetimeIndex(made[_STEP]), freq)
        made = made[over | (made[_STEP] < last)].reset_index(drop=True)
    made = made.drop(columns=_LAST)
    if aggregate == "sum":
        made = _with_zeros(made, targets, freq)
    codes, steps = made.pop(_KEY).to_numpy(dtype=np.intp), pd.DatetimeIndex(made.pop(_STEP))
    note = f"each step of '{freq}' is the {aggregate} of its rows"
    if aggregate is None:
        note = f"its {len(rows)} rows do not keep the step '{freq}' and are averaged over such steps"
    return replace(rows, frame=made, stamps=steps, codes=codes, notes=(*rows.notes, note))


def _reduced(cells: SeriesGroupBy, how: str) -> pd.Series:
    return cells.sum(min_count=1) if how == "sum" else getattr(cells, how)()


def _with_zeros(made: pd.DataFrame, targets: list[str], freq: str) -> pd.DataFrame:
    """The sums with rows of 0 for steps without any, from the first of each series to the last of all."""
    steps = pd.DataFrame({_STEP: pd.date_range(made[_STEP].min(), made[_STEP].max(), freq=freq)})
    first = made.groupby(_KEY, sort=False)[_STEP].min().rename(_LAST).reset_index()
    every = first.merge(steps, how="cross")
    full = every.loc[every[_STEP] >= every[_LAST], [_KEY, _STEP]].merge(
        made, on=[_KEY, _STEP], how="left", indicator=_LAST
    )
    full.loc[full[_LAST] == "left_only", targets] = 0.0
    return full.drop(columns=_LAST)


def _to_aggregate(rows: Rows) -> bool:
    freq = rows.schema.freq
    if freq is None or freq.isdecimal() or not isinstance(rows.stamps, pd.DatetimeIndex):
        return False
    if rows.schema.aggregate is not None:
        return True
    repeated = pd.MultiIndex.from_arrays([rows.codes, rows.stamps]).has_duplicates
    return not repeated and _between_steps(rows.stamps, rows.codes, freq)


def _between_steps(stamps: pd.DatetimeIndex, codes: NDArray[np.intp], freq: str) -> bool:
    """Whether any time stamp is not a whole number of steps after the first of its series or, for steps of the calendar,
    not at the beginning of one."""
    offset = to_offset(freq)
    if not len(stamps):
        return False
    if not _is_even(freq):
        return not stamps.isin(pd.date_range(stamps.min(), stamps.max(), freq=offset)).all()
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
