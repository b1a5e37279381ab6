"""Sample paths of a forecast, and sums, means and extremes over periods and groups of series, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_names, check_text
from femts.config.values import check_count, check_steps
from femts.data.columns import with_keys
from femts.data.dataset import Dataset
from femts.data.stamps import as_text
from femts.data.static import read_static
from femts.errors import UsageError, nearest, suggest, unknown
from femts.evaluation.intervals import check_levels, with_bounds
from femts.evaluation.quantiles import ends_of
from femts.forecaster.bounds import SeriesForecasts, sample_paths
from femts.forecaster.forecasting import forecast_once
from femts.forecaster.inputs import Future, History
from femts.text import argument, arguments, quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
Over: TypeAlias = Literal["total", "year", "quarter", "month", "week", "day", "step"]
How: TypeAlias = Literal["sum", "mean", "max", "min"]
PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}
DAYS = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}  # at most
REDUCE = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum}
ALL = "all"  # one group of all series
SAMPLE = "sample"


def sample(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    n: int,
    horizon: int | None,
    future: Future | None,
    series: Sequence[str] | None,
    outliers: str | None,
    seed: int,
) -> pd.DataFrame:
    """Joint sample paths of the steps after `history`; see `Forecaster.sample`."""
    number, seed = check_steps(n, "n"), check_count(seed, "seed", 0)
    past, made = forecast_once(forecaster, history, horizon, future, series, outliers)
    keys = _keys(forecaster, past, made)
    if SAMPLE in {*keys.columns, *forecaster.targets}:
        raise UsageError(f"The table has a column '{SAMPLE}' of its own; rename it to draw sample paths.")
    parts = list[pd.DataFrame]()
    for k, path in enumerate(sample_paths(forecaster, made, number, seed)):
        values = np.where(made.ended[:, None], np.nan, path).reshape(len(keys), -1)
        parts.append(pd.concat([keys, pd.DataFrame(values, columns=list(forecaster.targets))], axis=1))
        parts[-1].insert(0, SAMPLE, k)
    return pd.concat(parts, ignore_index=True)


def totals(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    over: Over,
    by: str | Sequence[str] | None,
    how: How,
    level: Sequence[float],
    horizon: int | None,
    future: Future | None,
    series: Sequence[str] | None,
    outliers: str | None,
    n: int,
    seed: int,
) -> pd.DataFrame:
    """Totals of the steps after `history`; see `Forecaster.totals`."""
    number, seed, levels = check_steps(n, "n"), check_count(seed, "seed", 0), check_levels(level)
    for name, value, allowed in (("over", over, ("total", *PERIODS, "step")), ("how", how, tuple(REDUCE))):
        if check_text(value, name) not in allowed:
            raise unknown({"over": "period", "how": "aggregate"}[name], value, allowed, name)
    past, made = forecast_once(forecaster, history, horizon, future, series, outliers)
    keys = _keys(forecaster, past, made)
    groups = _groups(forecaster, history, past, by)
    steps = len(keys) // len(past.data)
    time = keys.columns[-1]
    cells = groups.loc[groups.index.repeat(steps)].reset_index(drop=True)
    cells = cells.assign(**{time: keys[time]})
    period = _period(keys[time], over)
    # First the sum over the series of a group at each step, then over the steps of each period.
    each, stamps = _numbered(cells)
    rows = pd.DataFrame({name: stamps[name] for name in groups.columns} | {time: period[stamps.index].to_numpy()})
    of_period, periods = _numbered(rows)
    made_of = _drawn(forecaster, made, each, of_period, number, seed, how)
    count = np.bincount(of_period, minlength=len(periods))
    points = pd.DataFrame(made_of.mean(axis=0), columns=list(forecaster.targets))
    bounds = {}
    for one in levels:
        for side, end in zip(("lo", "hi"), ends_of(one), strict=True):
            bounds[f"{side}-{one:g}"] = np.quantile(made_of, end, axis=0)
    table = pd.concat([periods.reset_index(drop=True), with_bounds(points, bounds)], axis=1)
    if over == "total":
        table[time] = stamps[time].groupby(of_period).min().to_numpy()
    table.insert(table.columns.get_loc(time) + 1, "steps", count)
    return table


def _drawn(
    forecaster: Forecaster,
    made: SeriesForecasts,
    each: NDArray[np.intp],
    of_period: NDArray[np.intp],
    number: int,
    seed: int,
    how: How,
) -> Array:
    """Totals (number, periods, T) of sample paths: `each` (S P,) is the group and stamp of every forecast value, and
    `of_period` the period of each of these."""
    first = np.flatnonzero(np.diff(of_period, prepend=-1))  # periods are in order
    count = np.bincount(of_period)[:, None]
    steps = len(each) // len(made.series)
    alive = [np.bincount(each, np.repeat(~ended, steps), len(of_period)) > 0 for ended in made.ended.T]
    none = ~np.stack(alive, axis=1)  # groups whose series have all ended have no total
    drawn = np.empty((number, len(first), made.targets))
    for k, path in enumerate(sample_paths(forecaster, made, number, seed)):
        values = np.where(made.ended[:, None], 0.0, path).reshape(-1, made.targets)
        added = np.stack([np.bincount(each, column, len(of_period)) for column in values.T], axis=1)
        drawn[k] = REDUCE[how].reduceat(np.where(none, np.nan, added), first, axis=0)
        if how == "mean":
            drawn[k] /= count
    return drawn


def _numbered(rows: pd.DataFrame) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """Number of each row among the distinct ones, in the order in which groups first appear and then in order of
    time, the last column; and the distinct rows, whose index is a row that has these values."""
    *groups, time = rows.columns
    group = rows.groupby(groups, sort=False, dropna=False).ngroup().to_numpy() if groups else np.zeros(len(rows), int)
    stamp, _ = pd.factorize(rows[time], sort=True)
    keys = group * (stamp.max() + 1) + stamp
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return number, rows.iloc[first]


def _keys(forecaster: Forecaster, past: History, made: SeriesForecasts) -> pd.DataFrame:
    """Series, for a panel, and time stamp of each forecast value, (S P,)."""
    data, config = past.data, forecaster.config
    time = past.time if data.freq is not None or config.schema.panel else "step"
    keys = pd.DataFrame({time: made.stamps})
    if config.schema.panel:
        names = np.array(data.series, dtype=object)
        keys.insert(0, config.schema.form.series, names.repeat(len(keys) // len(names)))
    return keys


def _groups(
    forecaster: Forecaster, history: pd.DataFrame | Dataset, past: History, by: str | Sequence[str] | None
) -> pd.DataFrame:
    """Group of each series, one row for each, without columns for one group of all."""
    data, form = past.data, forecaster.config.schema.form
    index = pd.RangeIndex(len(data))
    panel = forecaster.config.schema.panel
    if by is None and panel:
        return pd.DataFrame({form.series: list(data.series)}, index=index)
    columns = (ALL,) if by is None else check_names(by, "by")
    if columns == (ALL,):
        return pd.DataFrame(index=index)
    if not panel:
        text = f"This model was trained on a single table without series to group; omit {argument('by')}."
        raise UsageError(text, argument="by", value=by, remedy={"by": None})
    static = data.static if data.static is not None else pd.DataFrame(index=list(data.series))
    frame = with_keys(history, form) if isinstance(history, pd.DataFrame) else None
    known = list(map(str, static.columns))
    if frame is not None and form.series in frame.columns:
        codes = pd.Index(data.series).get_indexer(pd.Index(as_text(frame[form.series])))
        others = [name for name in frame.columns if name not in (*known, *forecaster.columns, past.time)]
        there = [name for name in columns if name in others]
        static = static.join(read_static(frame[codes >= 0], there, codes[codes >= 0], data.series))
        known += others
    lacking = next((name for name in columns if name not in static.columns), None)
    if lacking is not None:
        text = f"The history has no column '{quote(lacking)}' to group series by{suggest(lacking, [*known, ALL])}"
        raise UsageError(text, argument="by", value=by, remedy={"by": nearest(lacking, known) or ALL})
    return static[list(columns)].set_axis(index)


def _period(stamps: pd.Series, over: Over) -> pd.Series:
    """Start of the period of each time stamp."""
    if over == "total":
        return pd.Series(0, index=stamps.index)
    if over == "step":
        return stamps
    if not pd.api.types.is_datetime64_any_dtype(stamps):
        raise UsageError(
            f"Periods of a {over} need dates, which this table has not; use {arguments({'over': 'total'})}.",
            argument="over",
            value=over,
            remedy={"over": "total"},
        )
    step = stamps.diff().where(lambda each: each > pd.Timedelta(0)).min()
    if step > pd.Timedelta(days=DAYS[over]):
        longer = next((name for name in reversed(PERIODS) if step <= pd.Timedelta(days=DAYS[name])), "total")
        raise UsageError(
            f"A {over} is shorter than a step of this table; use {arguments({'over': longer})}.",
            argument="over",
            value=over,
            remedy={"over": longer},
        )
    local = stamps.dt.tz_localize(None) if stamps.dt.tz is not None else stamps
    start = local.dt.to_period(PERIODS[over]).dt.start_time
    return (
        start
        if stamps.dt.tz is None
        else start.dt.tz_localize(stamps.dt.tz, ambiguous=True, nonexistent="shift_forward")
    )
