"""Sample paths of a forecast, and sums, means and extremes over periods and groups of series, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from femts.errors import ForecastWarning, GapWarning, UsageError, nearest, suggest, unknown, warn
from femts.evaluation.intervals import check_levels, with_bounds
from femts.evaluation.quantiles import ends_of
from femts.forecaster.bounds import SeriesForecasts, sample_paths
from femts.forecaster.forecasting import forecast_once, treating
from femts.forecaster.inputs import Future, History
from femts.forecaster.new_series import NewSeries, paths_like, series_like
from femts.text import argument, arguments, quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]
Over: TypeAlias = Literal["total", "year", "quarter", "month", "week", "day", "step"]
How: TypeAlias = Literal["sum", "mean", "max", "min"]
PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}
DAYS = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}  # at most
REDUCE = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum}
NOTHING = {"sum": 0.0, "mean": 0.0, "max": -np.inf, "min": np.inf}  # what changes no total
ALL = "all"  # one group of all series
SAMPLE = "sample"
NOTED = 0.01  # smallest relative difference between a total and the sum of the forecasts that is noted
CHANCE = 3  # standard errors by which a mean of sample paths may differ by chance


def sample(
    forecaster: Forecaster,
    history: pd.DataFrame | Dataset,
    n: int,
    horizon: int | None,
    future: Future | None,
    series: Sequence[str] | None,
    outliers: str | None,
    new: Sequence[str] | pd.DataFrame | None,
    seed: int,
) -> pd.DataFrame:
    """Joint sample paths of the steps after `history`; see `Forecaster.sample`."""
    number, seed = check_steps(n, "n"), check_count(seed, "seed", 0)
    past, made = forecast_once(forecaster, history, horizon, future, series, outliers)
    others = _others(forecaster, past, made, new, future, outliers)
    keys = _keys(forecaster, past, made, others)
    if SAMPLE in {*keys.columns, *forecaster.targets}:
        raise UsageError(f"The table has a column '{SAMPLE}' of its own; rename it to draw sample paths.")
    absent, parts = _absent(made, others), list[pd.DataFrame]()
    nothing = np.logical_and.reduce(absent, axis=2)
    kept = ~(nothing & ~nothing.all(axis=1, keepdims=True)).ravel()
    for k, path in enumerate(_paths(forecaster, made, others, number, seed)):
        values = pd.DataFrame(np.where(absent, np.nan, path).reshape(len(keys), -1), columns=list(forecaster.targets))
        parts.append(pd.concat([keys, values], axis=1)[kept])
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
    new: Sequence[str] | pd.DataFrame | None,
    n: int,
    seed: int,
) -> pd.DataFrame:
    """Totals of the steps after `history`; see `Forecaster.totals`."""
    number, seed, levels = check_steps(n, "n"), check_count(seed, "seed", 0), check_levels(level)
    for name, value, allowed in (("over", over, ("total", *PERIODS, "step")), ("how", how, tuple(REDUCE))):
        if check_text(value, name) not in allowed:
            raise unknown({"over": "period", "how": "aggregate"}[name], value, allowed, name)
    past, made = forecast_once(forecaster, history, horizon, future, series, outliers)
    groups = _groups(forecaster, history, past, by)
    others = _others(forecaster, past, made, new, future, outliers, groups)
    groups = _with_others(groups, others)
    keys = _keys(forecaster, past, made, others)
    steps = len(keys) // len(groups)
    time = keys.columns[-1]
    cells = groups.loc[groups.index.repeat(steps)].reset_index(drop=True)
    cells = cells.assign(**{time: keys[time]})
    period = _period(keys[time], over)
    # First the sum over the series of a group at each step, then over the steps of each period.
    each, stamps = _numbered(cells)
    absent = _absent(made, others)
    each, stamps = _complete(
        each, stamps, absent, list(keys.iloc[::steps, 0]), _numbered(groups.assign(**{time: 0}))[0]
    )
    rows = pd.DataFrame({name: stamps[name] for name in groups.columns} | {time: period[stamps.index].to_numpy()})
    of_period, periods = _numbered(rows)
    paths = _paths(forecaster, made, others, number, seed)
    made_of = _drawn(paths, number, absent, each, of_period, how)
    if how in ("sum", "mean"):
        nothing = np.full((len(others), steps, made.targets), np.nan)
        points = np.concatenate([made.raw(), nothing])
        of_forecast, size = (
            _drawn(iter([each_one]), 1, absent, each, of_period, how)[0] for each_one in (points, np.abs(points))
        )
        _warn_of_difference(made_of, of_forecast, size)
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


def _others(
    forecaster: Forecaster,
    past: History,
    made: SeriesForecasts,
    new: Sequence[str] | pd.DataFrame | None,
    future: Future | None,
    outliers: str | None,
    groups: pd.DataFrame | None = None,
) -> list[NewSeries]:
    """The series without history, over the steps of the forecasts `made` of the others, and in `groups` like theirs."""
    if new is None:
        return []
    steps = len(made.stamps) // len(made.series)
    return series_like(treating(forecaster, outliers), past, new, steps, future, groups)  # type: ignore[arg-type]


def _paths(
    forecaster: Forecaster, made: SeriesForecasts, others: Sequence[NewSeries], number: int, seed: int
) -> Iterator[Array]:
    """Yield sample paths (S, P, T) of the series, and of the `others` without history."""
    known = sample_paths(forecaster, made, number, seed)
    if not others:
        return known
    return map(np.concatenate, zip(known, paths_like(others, forecaster, number, seed), strict=True))


def _absent(made: SeriesForecasts, others: Sequence[NewSeries]) -> NDArray[np.bool_]:
    """Mask (S, P, T) of the steps at which the series, and the `others` without history, have no forecast."""
    return np.concatenate([made.absent, *(each.absent[None] for each in others)])


def _complete(
    each: NDArray[np.intp],
    stamps: pd.DataFrame,
    absent: NDArray[np.bool_],
    names: Sequence[str],
    group: NDArray[np.intp],
) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """Keep the `stamps` that are forecast for all series of a group which have not ended, and at which these are not all
    `absent` (S, P, T): `each` is the number of the stamp of every forecast value, or behind the last one for values that
    no total has. A `GapWarning` names series that end before others of their group.

    Raises:
        UsageError: No group has such a stamp.
    """
    going, steps = ~np.logical_and.reduce(absent, axis=(1, 2)), absent.shape[1]
    there = np.bincount(each, going.repeat(steps), len(stamps))
    wanted = np.bincount(group, going)[group.repeat(steps)[stamps.index]]
    some = np.bincount(each, ~absent.all(axis=2).ravel(), len(stamps)) > 0
    kept = there == wanted
    counted = kept & (some | (wanted == 0))
    if kept.all():
        return _renumbered(each, stamps, counted)
    first = stamps.iloc[each[::steps], -1].to_numpy()
    latest = pd.Series(first).where(going).groupby(group).transform("max").to_numpy()
    behind = [
        f"'{quote(name)}'" for name, one, last, on in zip(names, first, latest, going, strict=True) if on and one < last
    ]
    listed = ", ".join(behind[:3]) + ", ..." * (len(behind) > 3)
    verb, own = ("ends", "its group") if len(behind) == 1 else ("end", "their group")
    text = f"{listed} {verb} before other series of {own}"
    if not kept.any():
        raise UsageError(
            f"{text}, so no step is forecast for all of them; add the missing rows, or ask for more steps."
        )
    warn(f"{text}, so totals cover only the steps that are forecast for all; add the missing rows.", GapWarning)
    return _renumbered(each, stamps, counted)


def _renumbered(
    each: NDArray[np.intp], stamps: pd.DataFrame, kept: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """The numbers `each` among the stamps that are `kept`, and these."""
    return np.where(kept, kept.cumsum() - 1, kept.sum())[each], stamps[kept]


def _drawn(
    paths: Iterator[Array],
    number: int,
    absent: NDArray[np.bool_],
    each: NDArray[np.intp],
    of_period: NDArray[np.intp],
    how: How,
) -> Array:
    """Totals (number, periods, T) of sample `paths`: `each` (S P,) is the number of the group and stamp of every
    forecast value, and `of_period` the period of each of these; values behind the last one have none. Values that are
    `absent` (S, P, T) do not count, and a total without any value is NaN."""
    first = np.flatnonzero(np.diff(of_period, prepend=-1))  # periods are in order
    size, targets = len(of_period), absent.shape[2]
    present = [np.bincount(each, column, size)[:size] > 0 for column in ~absent.reshape(-1, targets).T]
    some = np.stack(present, axis=1)  # of the stamps, by target
    count = np.add.reduceat(some, first, axis=0, dtype=np.int64)
    drawn = np.empty((number, len(first), targets))
    for k, path in enumerate(paths):
        values = np.where(absent, 0.0, path).reshape(-1, targets)
        added = np.stack([np.bincount(each, column, size)[:size] for column in values.T], axis=1)
        drawn[k] = REDUCE[how].reduceat(np.where(some, added, NOTHING[how]), first, axis=0)
        if how == "mean":
            drawn[k] /= np.maximum(count, 1)
    return np.where(count > 0, drawn, np.nan)


def _warn_of_difference(drawn: Array, of_forecast: Array, size: Array) -> None:
    """Warn if the means of the totals `drawn` (N, periods, T) differ from the totals of the forecasts, of this `size`, by
    more than `NOTED` and more than by chance."""
    means, chance = drawn.mean(axis=0), CHANCE * drawn.std(axis=0) / np.sqrt(len(drawn))
    apart = np.abs(means - of_forecast)
    beyond = apart > np.maximum(NOTED * size, chance)
    if beyond.any():
        most = 100 * float(np.max(apart[beyond] / np.maximum(size[beyond], np.finfo(np.float64).tiny)))
        warn(
            f"Totals are means of sample paths, which have the errors of the validation windows and so correct a bias of the "
            f"forecasts there; they differ by up to {min(most, 999):.2g} % from the forecasts of predict added up.",
            ForecastWarning,
        )


def _numbered(rows: pd.DataFrame) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """Number of each row among the distinct ones, in the order in which groups first appear and then in order of
    time, the last column; and the distinct rows, whose index is a row that has these values."""
    *groups, time = rows.columns
    group = rows.groupby(groups, sort=False, dropna=False).ngroup().to_numpy() if groups else np.zeros(len(rows), int)
    stamp, _ = pd.factorize(rows[time], sort=True)
    keys = group * (stamp.max() + 1) + stamp
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return number, rows.iloc[first]


def _keys(forecaster: Forecaster, past: History, made: SeriesForecasts, others: Sequence[NewSeries]) -> pd.DataFrame:
    """Series, for a panel, and time stamp of each forecast value, (S P,)."""
    data, config = past.data, forecaster.config
    time = past.time if data.freq is not None or config.schema.panel else "step"
    keys = pd.DataFrame({time: made.stamps.append([each.stamps for each in others])})
    if config.schema.panel:
        names = np.array([*data.series, *(each.name for each in others)], dtype=object)
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
    several = len(forecaster.targets) > 1
    if not panel and by is not None and (several or columns != (ALL,)):
        instead = f", or make each column a series with {argument('panel=True')}" * several
        text = f"This model was trained on a single table without series to add up; omit {argument('by')}{instead}."
        raise UsageError(text, argument="by", value=by, remedy={"by": None})
    if columns == (ALL,):
        return pd.DataFrame(index=index)
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


def _with_others(groups: pd.DataFrame, others: Sequence[NewSeries]) -> pd.DataFrame:
    """The `groups` of the known series, and those of the `others`, of the same types."""
    if not others:
        return groups
    table, made = pd.DataFrame([each.row for each in others]), pd.DataFrame(index=range(len(others)))
    for name, known in groups.items():
        if name not in table.columns:
            text = f"The table of new series has no column '{quote(name)}' to group them by; add it."
            raise UsageError(text, argument="new", value=name)
        cells = as_text(table[name]).astype(object).where(table[name].notna(), None).to_numpy()
        made[name] = pd.to_numeric(cells, errors="coerce") if pd.api.types.is_numeric_dtype(known) else cells
    return pd.concat([groups, made], ignore_index=True)


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
