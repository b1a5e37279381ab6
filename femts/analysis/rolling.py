"""Rolling-origin forecasts: the only loop over cutoffs, for backtests, comparisons and forecasting tasks."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.config.model import AUTO
from femts.data.cutoffs import Cutoff
from femts.data.dataset import Dataset
from femts.data.describe import count as counted
from femts.data.preprocess import last_observed
from femts.errors import UsageError
from femts.forecaster.bounds import OddReading, QuantileSpec, SeriesForecasts, raw_bounds
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.forecasting import forecast_series
from femts.forecaster.inputs import ended_note, ends_of, odd_note, steps_ahead
from femts.models.naive import NAIVE, SEASONAL_NAIVE, naive_forecasts
from femts.models.registry import model_card
from femts.text import quote

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]


def rolling_forecasts(
    data: Dataset,
    origins: Iterable[tuple[Forecaster, Cutoff]],
    horizon: int,
    bounds: QuantileSpec = QuantileSpec(),  # noqa: B008
) -> pd.DataFrame:
    """Forecast from several past cutoffs, each time with the rows before it alone.

    Args:
        data: the series in raw units; columns that a forecaster does not read are left out for it.
        origins: for each cutoff the forecaster to use, which may be trained when it is asked for. The series of a
            cutoff may be divided among several forecasters.
        horizon: number of steps to forecast.
        bounds: levels and quantiles to add.

    Returns:
        One row for each window, series, step and target, in this order and in raw units: `window`, `series`, `cutoff`
        (time stamp of the last row before the forecast, or its number), `date` (or `step`), `column`, `forecast`,
        `seasonal_naive` (the last season before the cutoff, repeated), `actual`, and the bounds as in `backtest`.

    Raises:
        UsageError: There is no cutoff.
    """
    data = _stamped(data)
    gaps, parts, order = _Gaps(), list[pd.DataFrame](), list[NDArray[np.int64]]()
    for forecaster, cutoff in origins:
        rows = data if data.columns == forecaster.columns else data.targets_alone()
        made = _forecast(forecaster, rows, cutoff, horizon, gaps, bounds)
        parts.append(made)
        order.append(np.repeat(cutoff.window * len(data) + cutoff.series, len(made) // len(cutoff.series)))
        gaps.steps = max(gaps.steps, forecaster.config.seq_len)
    if not parts:
        raise UsageError(
            f"No series of '{quote(data.name)}' has a season of {counted(data.season, 'row')} before a forecast of {horizon} "
            f"steps (the longest has {counted(data.rows, 'row')}); ask for fewer windows, or provide more rows."
        )
    gaps.log(len(parts))
    whole = pd.concat(parts, ignore_index=True)
    return whole.iloc[np.argsort(np.concatenate(order), kind="stable")].reset_index(drop=True)


def _forecast(
    forecaster: Forecaster, data: Dataset, cutoff: Cutoff, steps: int, gaps: _Gaps, bounds: QuantileSpec
) -> pd.DataFrame:
    """All forecasts of one cutoff, with the seasonal naive forecast, the actual values, and the requested bounds."""
    targets, before = data.n_targets, data.take(cutoff.series, cutoff.rows)
    start, needed = (data.spans[cutoff.series, 0] + cutoff.rows)[:, None], forecaster.config.known_steps(steps)
    ahead = steps_ahead(before, needed)
    # After the last row, its future covariates are repeated.
    read = np.minimum(start + np.arange(needed), data.spans[cutoff.series, 1:] - 1)
    made = forecast_series(forecaster, before, ahead, data.known(read)).first(steps)
    gaps.add(forecaster, before, made)
    simple = naive_at(before, steps, forecaster.season, forecaster.season)
    naive = simple.get(SEASONAL_NAIVE, simple[NAIVE])
    level = made.preprocess.restore(np.zeros((len(before), 1, targets)))  # of series without any value yet
    points = made.raw()
    values = {"forecast": points, "seasonal_naive": np.where(np.isnan(naive), level, naive)}
    ends = raw_bounds(forecaster, made, points, bounds) if any(bounds) else {}
    return _frame(data, cutoff, before, made.stamps, values, ends)


def rolling_naive_forecasts(
    data: Dataset, cutoffs: Iterable[Cutoff], horizon: int, look_back: int
) -> dict[str, pd.DataFrame]:
    """The naive forecasts at several past cutoffs, by name, in the form of `rolling_forecasts`.

    Args:
        data: the series in raw units.
        cutoffs: the cutoffs, in order.
        horizon: number of steps to forecast.
        look_back: largest number of rows to read.
    """
    data, parts = _stamped(data), dict[str, list[pd.DataFrame]]()
    for cutoff in cutoffs:
        if len(cutoff.series):
            before = data.take(cutoff.series, cutoff.rows)
            ahead = steps_ahead(before, horizon)
            for name, made in naive_at(before, horizon, data.season, look_back).items():
                parts.setdefault(name, []).append(_frame(data, cutoff, before, ahead, {"forecast": made}))
    return {name: pd.concat(own, ignore_index=True) for name, own in parts.items()}


def _stamped(data: Dataset) -> Dataset:
    """`data` with row numbers if they have no time stamps."""
    return data if data.stamps is not None else replace(data, stamps=pd.RangeIndex(len(data.values)))


def _frame(
    data: Dataset,
    cutoff: Cutoff,
    before: Dataset,
    ahead: pd.Index,
    values: Mapping[str, Array],
    bounds: Mapping[str, Array] | None = None,
) -> pd.DataFrame:
    """Forecasts `values` (S, P, T) and `bounds` of one cutoff, with what happened; see `rolling_forecasts`."""
    targets, steps = data.n_targets, len(ahead) // len(before)
    after = (data.spans[cutoff.series, 0] + cutoff.rows)[:, None] + np.arange(steps)
    table = {
        "window": cutoff.window,
        "series": np.repeat(np.array(before.series, dtype=object), steps * targets),
        "cutoff": ends_of(before).repeat(steps * targets),
        "step" if data.freq is None else "date": ahead.repeat(targets),
        "column": list(data.columns[:targets]) * (len(before) * steps),
    }
    every = {**values, "actual": data.values[after][..., :targets], **(bounds or {})}
    return pd.DataFrame(table | {name: each.ravel() for name, each in every.items()})


def naive_at(before: Dataset, steps: int, season: int, look_back: int) -> dict[str, Array]:
    """The naive forecasts of the steps after each series, by name; see `femts.models.naive.naive_forecasts`.

    Args:
        before: the series up to their forecast origins, each with at least one row.
        steps: P, number of steps.
        season: number of steps in a season.
        look_back: largest number of rows to read of each series; a missing value is filled with the last one before.

    Returns:
        Forecasts (S, P, T), NaN for a target that has no value yet. Missing values at the start of what is read are
        filled with the first one after them, and a series that is shorter than a season repeats what it has.
    """
    values, made = before.values[:, : before.n_targets], dict[str, Array]()
    lengths = np.minimum(before.lengths, look_back)
    first = np.repeat(before.spans[:, 0], before.lengths)
    last = last_observed(values, first)
    filled = np.where(last < 0, np.nan, np.take_along_axis(values, last.clip(0), axis=0))
    for length in np.unique(lengths).tolist():
        some = np.flatnonzero(lengths == length)
        past = filled[before.spans[some, 1:] + np.arange(-length, 0)]  # (n, length, T)
        start = np.isnan(past).argmin(axis=1, keepdims=True)  # the first value
        past = np.where(np.isnan(past), np.take_along_axis(past, start, axis=1), past)
        simple = naive_forecasts(torch.from_numpy(past), steps, min(season, length))
        if season > 1:
            simple.setdefault(SEASONAL_NAIVE, simple[NAIVE])
        for name, each in simple.items():
            made.setdefault(name, np.full((len(before), steps, values.shape[1]), np.nan))[some] = each.numpy()
    return made


def rows_at(data: Dataset, cutoff: Cutoff) -> Dataset:
    """The series of a cutoff up to it, as data of their own without a file."""
    before = replace(data.take(cutoff.series, cutoff.rows), source=None, sha256="")
    return replace(before, sha256=before.fingerprint())


def training_rows_at(data: Dataset, cutoff: Cutoff) -> Dataset:
    """As `rows_at`, split anew by the rule of `data`."""
    before = rows_at(data, cutoff)
    return replace(before, split=data.schema.split.split(before.stamps, before.spans, f"'{data.name}'"))


def readable(data: Dataset, model: str) -> Dataset:
    """`data` without past and static covariates if `model` cannot read one of them; `auto` decides by itself."""
    if model == AUTO:
        return data
    roles, supports = data.schema.roles, model_card(model).model_class.supports
    can = not (roles.past and supports.channels == 1) and not (roles.static and not supports.static)
    return data if can else data.targets_alone()


@dataclass
class _Gaps:
    """Number of forecasts from rows with gaps, by how these are filled, odd readings, and names of targets without a
    value.

    Attributes:
        steps: longest look-back.
    """

    filled: Counter[str] = field(default_factory=Counter)
    ended: dict[str, None] = field(default_factory=dict)
    odd: dict[OddReading, None] = field(default_factory=dict)
    steps: int = 0

    def add(self, forecaster: Forecaster, before: Dataset, made: SeriesForecasts) -> None:
        """Count one forecast; gaps at the start and end of panel series are not reported."""
        if forecaster.config.schema.panel:
            names, gone = before.series, np.flatnonzero(made.ended.all(axis=1))
        else:
            names, (recent,) = forecaster.targets, made.recent
            gone = np.flatnonzero(made.ended.T[:, 0])
            if np.isnan(recent).sum() > len(made.odd):
                earlier = before.values[: -len(recent), np.isnan(recent[0])]
                never = np.isnan(earlier).all(axis=0).any() and not forecaster.config.reads_raw
                mean = ", or the training mean where there is none" * bool(never)
                self.filled[f"rows with gaps, which are filled with the last value before them{mean}"] += 1
            if np.isnan(before.covariates[-len(recent) :]).any():
                self.filled["rows with gaps in future covariates, which are filled with the training mean"] += 1
        self.odd |= dict.fromkeys(made.odd)
        self.ended |= dict.fromkeys(names[each] for each in gone)

    def log(self, forecasts: int) -> None:
        """Log the counts for `forecasts` forecasts."""
        for rows, count in self.filled.items():
            logger.info(f"{count} of {counted(forecasts, 'forecast')} use {rows}")
        if self.odd:
            logger.info(odd_note(tuple(self.odd)))
        if self.ended:
            logger.info(ended_note(tuple(self.ended), self.steps))
