"""Aggregation of rows over the steps of the calendar and clock that the user gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.typing import SeriesGroupBy
from pandas.tseries.frequencies import to_offset

from femts.data.check import numbers_of, words_of
from femts.data.describe import are, count, stamp
from femts.data.frequency import is_set_back
from femts.data.rows import Rows
from femts.data.schema import COUNT
from femts.data.wall_clock import NANOSECONDS, dates_at, follows_clock, instants
from femts.errors import UsageError

STEADY = 0.9  # share of distances between rows that are near the usual one
MOST_STEPS = 10_000_000  # steps of a table, unless it has one in a hundred rows of these
FEWEST_GAPS = 20  # distances between events of which the longest is compared with those at both ends
_KEY, _STEP, _FIRST, _LAST = "femts.series", "femts.step", "femts.first", "femts.last"  # columns that no table has


def by_step(rows: Rows, known: Sequence[str] = ()) -> Rows:
    """One row for each step of the schema's `freq` and each series, if rows are to be aggregated; otherwise `rows`.

    They are if the user gave an aggregate, or a step that the dates do not keep; repeated dates are then refused
    elsewhere. Steps are whole ones of the calendar and clock. A row belongs to the step in which it lies or, if there
    is about one row per step, to the nearest. Targets are aggregated as `schema.aggregate` says, and covariates
    averaged, without missing values. Text, static covariates and the indicators of categories keep their last value in
    each step. If targets are named, columns without a role are dropped. If rows come at steady distances, as from
    sensors, the last step of a series is left out unless they reach its end; in sums and counts, so is its first one
    unless they begin with it, and the ends of tables of events (`_cut_off`).

    Args:
        rows: rows of a table.
        known: names of the series that a model was trained on; in sums and counts, these and others are 0 from the first
            row of the table, which is an excerpt.

    Raises:
        UsageError: A cell is not a number; the message says which.
    """
    if rows.schema.aggregate == COUNT and COUNT not in rows.columns:
        rows = replace(rows, frame=rows.frame.assign(**{COUNT: 1.0}))
    names, roles, freq = rows.schema.form, rows.schema.roles, str(rows.schema.freq)
    listed = roles.named
    cells = [name for name in rows.columns if not roles.target or name in listed]
    note = _why(rows) if cells else None
    if note is None:
        return rows
    aggregate, stamps = rows.schema.aggregate, pd.DatetimeIndex(rows.stamps)
    indicators = (each for one in names.categories for each in one.indicators)
    kept = {*words_of(rows.frame[cells]), *roles.constant, *indicators}
    table = {
        name: rows.frame[name].array
        if name in kept
        else numbers_of(rows.frame[name], name, rows.where, rows.schema.na or ())
        for name in cells
    }
    usual, steady = _distance(stamps, rows.codes)
    zone = stamps.tz if follows_clock(freq) else None
    stamps, length = stamps if zone is None else stamps.tz_localize(None), _length(freq)
    if length is not None and (stamps.max() - stamps.min()) / length > max(MOST_STEPS, 100 * len(rows)):
        raise UsageError(
            f"{rows.where} has {len(rows)} rows, from {stamps.min()} to {stamps.max()}, which are more than {MOST_STEPS} "
            f"steps of '{freq}'; give a longer step, or remove stray dates."
        )
    if aggregate is None and length is not None and usual > length / 2:
        stamps += length / 2  # so that a row belongs to the nearest step
    # Steps that do not divide a day count from the same moment in every table; time zones have none.
    origin: Any = "epoch" if _is_even(freq) and not _divides_a_day(freq) and stamps.tz is None else "start_day"
    grid: Any = pd.Grouper(key=_STEP, freq=freq, origin=origin)
    parts = pd.DataFrame({_KEY: rows.codes, _STEP: stamps, _FIRST: stamps, _LAST: stamps, **table})
    if isinstance(to_offset(freq), pd.offsets.BusinessHour):  # which a Grouper does not support
        grid, parts[_STEP] = _STEP, _business_hours(stamps, freq)
        closed = parts[_STEP].isna()
        if closed.all():
            raise UsageError(
                f"{rows.where} has no rows in business hours, the requested step '{freq}'; give another step."
            )
        parts = parts[~closed]
        note += f"; {count(int(closed.sum()), 'row')} outside business hours left out" * bool(closed.any())
    # The codes make groups of the steps that have rows, and of no others.
    groups = parts.groupby([_KEY, grid], sort=False)
    targets = [name for name in cells if name not in {*roles.past, *roles.future, *kept}]
    how = dict.fromkeys(cells, "mean") | dict.fromkeys(kept, "last")
    total = aggregate in ("sum", COUNT)
    how |= {**dict.fromkeys(targets, "sum" if total else aggregate or "mean"), _FIRST: "min", _LAST: "max"}
    made = pd.DataFrame({name: _reduced(groups[name], how[name]) for name in (*cells, _FIRST, _LAST)}).reset_index()
    if steady:
        last = made.groupby(_KEY, sort=False)[_STEP].transform("max")
        every = pd.DatetimeIndex(made[_STEP])
        over = made[_LAST] + 1.5 * usual >= _ends(every, freq)
        cut = ~over & (made[_STEP] == last)
        if total:
            first, begins = made.groupby(_KEY, sort=False)[_STEP].transform("min"), _begins(every, freq)
            several = 2 * usual <= _ends(every, freq) - begins  # otherwise, a row may stand for its whole step
            cut |= (made[_STEP] == first) & (made[_FIRST] - begins > 0.5 * usual) & several
    else:
        cut = _cut_off(made, stamps, freq) if total else pd.Series(False, made.index)
    if total and cut.any():
        some = made.loc[cut, _STEP].drop_duplicates().sort_values()
        told = " and ".join(stamp(each) for each in some[:2]) + f" and {len(some) - 2} more" * (len(some) > 2)
        all_of = "it" if len(some) == 1 else "them"
        note += f"; {told} {are(len(some))} left out, because the rows do not cover all of {all_of}"
    made = made[~cut].reset_index(drop=True).drop(columns=[_FIRST, _LAST])
    if zone is not None:
        made[_STEP] = instants(pd.DatetimeIndex(made[_STEP]), zone)
    if total and known:
        rows = replace(rows, series=(*rows.series, *(name for name in known if name not in rows.series)))
    if total and len(made):
        made = _with_zeros(made, targets, freq, len(rows.series) if known else 0)
    codes, steps = made.pop(_KEY).to_numpy(dtype=np.intp), pd.DatetimeIndex(made.pop(_STEP))
    return replace(rows, frame=made, stamps=steps, codes=codes, notes=(*rows.notes, note))


def _cut_off(made: pd.DataFrame, stamps: pd.DatetimeIndex, freq: str) -> pd.Series:
    """Mask of the rows of the first and the last step of a table of events, in so far as the distance between its begin
    and the first event, or the last event and its end, exceeds all those between events: such a step is probably cut off,
    since one of n + 1 such distances is the longest."""
    distinct = stamps.unique().sort_values()
    cut = pd.Series(False, made.index)
    if len(distinct) <= FEWEST_GAPS or made[_STEP].nunique() <= 2:
        return cut
    longest = (distinct[1:] - distinct[:-1]).max()
    whole = pd.Timedelta(days=1 if (distinct == distinct.normalize()).all() else 0)  # days last until their end
    steps = pd.DatetimeIndex([made[_STEP].min(), made[_STEP].max()])
    if distinct[0] - _begins(steps, freq)[0] > longest:
        cut |= made[_STEP] == steps[0]
    if _ends(steps, freq)[1] - distinct[-1] - whole > longest:
        cut |= made[_STEP] == steps[1]
    return cut


def _reduced(cells: SeriesGroupBy, how: str) -> pd.Series:
    return cells.sum(min_count=1) if how == "sum" else getattr(cells, how)()


def _with_zeros(made: pd.DataFrame, targets: list[str], freq: str, every: int) -> pd.DataFrame:
    """The sums with rows of 0 for steps without any, from the first of each series to the last of all; with a number of
    series `every`, from the first of all."""
    steps = pd.DataFrame({_STEP: dates_at(freq, made[_STEP].min(), made[_STEP].max())})
    first = made.groupby(_KEY, sort=False)[_STEP].min().rename(_LAST).reset_index()
    if every:
        first = pd.DataFrame({_KEY: np.arange(every), _LAST: made[_STEP].min()})
    pairs = first.merge(steps, how="cross")
    full = pairs.loc[pairs[_STEP] >= pairs[_LAST], [_KEY, _STEP]].merge(
        made, on=[_KEY, _STEP], how="left", indicator=_LAST
    )
    full.loc[full[_LAST] == "left_only", targets] = 0.0
    return full.drop(columns=_LAST)


def _why(rows: Rows) -> str | None:
    """Note on why and how the rows are aggregated; None if they are not."""
    freq, aggregate, stamps = rows.schema.freq, rows.schema.aggregate, rows.stamps
    if freq is None or freq.isdecimal() or not isinstance(stamps, pd.DatetimeIndex):
        return None
    if aggregate is not None:
        return f"each step of '{freq}' is the {'number' if aggregate == COUNT else aggregate} of its rows"
    again = pd.MultiIndex.from_arrays([rows.codes, stamps]).duplicated()
    if again.any() and not is_set_back(stamps, again):
        return None
    if _between_steps(stamps, rows.codes, freq):
        return f"its {count(len(rows), 'row')} do not keep the step '{freq}' and are averaged over such steps"
    return _note_of_repeats(stamps, again) if again.any() else None


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


def _between_steps(stamps: pd.DatetimeIndex, codes: NDArray[np.integer[Any]], freq: str) -> bool:
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


def _distance(stamps: pd.DatetimeIndex, codes: NDArray[np.integer[Any]]) -> tuple[pd.Timedelta, bool]:
    """Median distance between consecutive rows of the same series, and whether nearly all are within half of it."""
    order = np.lexsort((stamps.asi8, codes))
    apart = np.diff(stamps.asi8[order])[np.diff(codes[order]) == 0] * NANOSECONDS[stamps.unit]
    usual = int(np.median(apart)) if len(apart) else 0
    return pd.Timedelta(usual, "ns"), usual > 0 and bool(np.mean(np.abs(apart / usual - 1) <= 0.5) >= STEADY)


def _begins(steps: pd.DatetimeIndex, freq: str) -> pd.Series:
    """Begin of each step, from its name as pandas gives it."""
    offset = to_offset(freq)
    return pd.Series(steps - offset + pd.offsets.Day(1) if _named_by_last(freq) else steps)


def _ends(steps: pd.DatetimeIndex, freq: str) -> pd.Series:
    """End of each step, from its name as pandas gives it: its beginning, or the last day of weeks and of ends of months."""
    offset, days = to_offset(freq), pd.offsets.Day(1)
    if isinstance(offset, pd.offsets.BusinessHour):  # the last one of a day would end on the next
        return pd.Series(steps + pd.Timedelta(hours=offset.n))
    return pd.Series(steps + (days if _named_by_last(freq) else offset))


def _named_by_last(freq: str) -> bool:
    """Whether steps are named by their last day: weeks and those that end with a month."""
    return isinstance(to_offset(freq), pd.offsets.Week) or freq.partition("-")[0].endswith("E")


def _is_even(freq: str) -> bool:
    """Whether all steps have the same length, unlike days, of which some are shorter."""
    offset = to_offset(freq)
    return isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)


def _divides_a_day(freq: str) -> bool:
    return _is_even(freq) and pd.Timedelta(days=1) % pd.Timedelta(to_offset(freq)) == pd.Timedelta(0)
