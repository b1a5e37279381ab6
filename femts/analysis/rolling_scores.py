"""Scores of rolling-origin forecasts, by the metrics of `femts.evaluation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.config.arguments import check_kind, check_text
from femts.data.dataset import Dataset
from femts.data.power import PowerTransform
from femts.errors import UsageError, memory_checked
from femts.evaluation.metric import Metric, own_metrics
from femts.evaluation.metrics.point import MAE, MSE
from femts.evaluation.metrics.quantiles import SQL, WQL
from femts.evaluation.metrics.relative import MASE, RMSSE, WAPE
from femts.evaluation.scale import SeasonalScale
from femts.evaluation.score_sums import reduced
from femts.evaluation.values import Units, Values
from femts.forecaster.forecaster import Forecaster
from femts.text import arguments, quote

Array = NDArray[np.float64]

QUANTILES = tuple(round(0.1 * k, 1) for k in range(1, 10))
METRICS = ("mase", "rmsse", "wape", "sql", "wql")
PROBABILISTIC = ("sql", "wql")  # require quantiles
FORECASTS = ("forecast", "seasonal_naive")
UNITS: tuple[Units, ...] = ("scaled", "raw")


def rolling_metrics(probabilistic: bool) -> list[Metric]:
    """The metrics of rolling forecasts in raw units: those of `METRICS`, and `own_metrics`."""
    own = [metric for metric in own_metrics() if metric.view != "scaled" and "raw" in metric.shown]
    return [MASE(), RMSSE(), WAPE(), *([SQL(), WQL()] if probabilistic else []), *own]


@dataclass(frozen=True, eq=False)
class RollingSums:
    """Sums of the terms of metrics over the steps of each window.

    Attributes:
        metrics: the metrics.
        sums: for each metric, numerators and denominators (2, W, S, T).
    """

    metrics: Sequence[Metric]
    sums: Sequence[Array]

    @classmethod
    def of(cls, frame: pd.DataFrame, data: Dataset, scale: SeasonalScale, point: str = "forecast") -> RollingSums:
        """Sums over a table of forecasts.

        Args:
            frame: result of `rolling_forecasts` without further quantiles than `QUANTILES`, or without any.
            data: the data that were forecast.
            scale: seasonal changes before each window.
            point: column of the point forecasts.
        """
        places = Places.of(frame, data.series, data.columns[: data.n_targets])
        columns = [name for q in QUANTILES if (name := f"q-{100 * q:g}") in frame]
        actual = places.spread(frame["actual"])
        values = Values(
            places.spread(frame[point]),
            actual,
            absolute=torch.from_numpy(scale.absolute[places.series, places.window][:, None]),
            squared=torch.from_numpy(scale.squared[places.series, places.window][:, None]),
            quantiles={q: places.spread(frame[name]) for q, name in zip(QUANTILES, columns, strict=False)} or None,
        )
        metrics = rolling_metrics(bool(columns))
        shape = (scale.absolute.shape[1], len(data))
        return cls(metrics, [places.sums(metric, values, shape) for metric in metrics])

    @classmethod
    def joined(cls, parts: Sequence[RollingSums]) -> RollingSums:
        """Sums over the series of several datasets, whose targets are matched by number."""
        most = max(part.sums[0].shape[-1] for part in parts)
        every = zip(*(part.sums for part in parts), strict=True)
        wider = [[np.pad(each, [(0, 0)] * 3 + [(0, most - each.shape[-1])]) for each in sums] for sums in every]
        return cls(parts[0].metrics, [np.concatenate(sums, axis=2) for sums in wider])

    def by_window(self, pooled: Sequence[str] = ()) -> pd.DataFrame:
        """Scores of each window, which begins with the column `window`, from 1.

        Args:
            pooled: metrics that are the mean of all values of all series together, as in fev, instead of the mean of
                the scores of the series; the same unless values are missing.
        """
        return pd.DataFrame(
            {"window": np.arange(1, self.sums[0].shape[1] + 1)}
            | {
                metric.name: self._scores(metric, sums, (True, False), metric.name in pooled)
                for metric, sums in zip(self.metrics, self.sums, strict=True)
            }
        )

    def by_series(self, metric: str) -> Array:
        """Scores (S,) of each series by the metric of this name, means over windows and targets."""
        number = [each.name for each in self.metrics].index(metric)
        return self._scores(self.metrics[number], self.sums[number], (False, True))

    @staticmethod
    def _scores(metric: Metric, sums: Array, kept: tuple[bool, bool], pooled: bool = False) -> Array:
        together = (False, pooled or metric.over_series == "pooled", metric.over_targets == "pooled")
        return reduced(metric, sums, (*kept, False), together).ravel()


@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of a table of forecasts are in arrays (B, P, T) of B windows of one series each.

    Attributes:
        window, series: (B,), numbers of windows and series.
        rows: numbers b, p and t of each row.
        shape: (B, P, T).
    """

    window: NDArray[np.int64]
    series: NDArray[np.int64]
    rows: tuple[NDArray[np.int64], ...]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, frame: pd.DataFrame, series: Sequence[str], targets: Sequence[str]) -> Places:
        """Places of the rows of `frame`, whose column `window` or `cutoff` tells windows apart."""
        window = frame["window"].to_numpy() - 1 if "window" in frame else pd.factorize(frame["cutoff"])[0]
        number = np.zeros(len(frame), dtype=np.int64)
        if "series" in frame:
            number = pd.Index(series).get_indexer(frame["series"].astype(str))
        target = np.zeros(len(frame), dtype=np.int64)
        if "column" in frame:
            target = pd.Index(targets).get_indexer(frame["column"].astype(str))
        pairs, pair = np.unique(window * len(series) + number, return_inverse=True)
        step = pd.Series(pair * len(targets) + target).groupby(pair * len(targets) + target).cumcount().to_numpy()
        shape = (len(pairs), int(step.max(initial=-1)) + 1, len(targets))
        return cls(pairs // len(series), pairs % len(series), (pair, step, target), shape)

    def spread(self, column: pd.Series | Array) -> Tensor:
        """A column (N,) as an array (B, P, T), NaN where it has no row."""
        made = np.full(self.shape, np.nan)
        made[self.rows] = np.asarray(column, dtype=np.float64)
        return torch.from_numpy(made)

    def sums(self, metric: Metric, values: Values, shape: tuple[int, int]) -> Array:
        """Sums (2, W, S, T) of the terms of `metric` over steps, for `shape` (W, S)."""
        made = np.zeros((2, *shape, self.shape[2]))
        made[:, self.window, self.series] = torch.stack([each.nansum(1) for each in metric.weighted_terms(values)])
        return made


def win_rates(errors: Array) -> Array:
    """Share (M,) of cases and other models at which each model has the lower error, from errors (cases, M), or from
    scores with the opposite sign if a higher one is better; a tie counts half."""
    lower = (errors[:, :, None] < errors[:, None]) + 0.5 * (errors[:, :, None] == errors[:, None])
    others = max(1, errors.shape[1] - 1)
    return np.asarray((lower.sum(2) - 0.5).mean(0) / others)


@memory_checked()
def backtest_scores(frame: pd.DataFrame, forecaster: Forecaster, by: str | None = None) -> pd.DataFrame:
    """Errors of a backtest by cutoff and overall, compared with the seasonal naive forecast.

    Args:
        frame: result of `backtest`, in raw units.
        forecaster: the forecaster that made it, whose scaler defines the scaled units.
        by: `series` to group a long table by series; None groups by cutoff, for a long table by its number, `window`.

    Returns:
        The group (`all` for the mean), `model` (`forecast` or `seasonal_naive`) and `mse_scaled, mae_scaled` (in units
        of the run's own scaler, even after refits), `mse_raw, mae_raw` (in units of the data): means over all steps and
        columns for which both models have a forecast. For a long table, the scaled units are those of each series, NaN
        for one that was not in the training data, and raw means over series are omitted. Metrics that plugins register
        follow, by name and units; those that read the look-back are NaN.

    Raises:
        UsageError: The table is not a backtest, or the group is unknown.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give the one that made the backtest")
    check_kind(frame, pd.DataFrame, "The backtest", "give the table that femts.backtest returned")
    panel = bool(forecaster.config.schema.panel)
    if by is not None and (check_text(by, "by") != "series" or not panel):
        series = arguments({"by": "series"})
        text = f"A backtest cannot be grouped by '{quote(by)}'; use {series} for a long table, or omit it."
        raise UsageError(text, argument="by", value=by, remedy={"by": None})
    needed = ("window", "series", "cutoff") if panel else ("cutoff", "column")
    missing = [name for name in (*needed, *FORECASTS, "actual") if name not in frame.columns]
    if missing:
        raise UsageError(f"The backtest has no column '{missing[0]}'; pass the table that femts.backtest returned.")
    names = tuple(frame["series"].astype(str).unique()) if panel else ("",)
    places, group = Places.of(frame, names, forecaster.targets), by or ("window" if panel else "cutoff")
    both, tables = frame[list(FORECASTS)].notna().all(axis=1), {"scaled": _scaled(frame, forecaster), "raw": frame}
    labels = frame[group].unique()
    some = labels - 1 if group == "window" else np.arange(len(labels))
    parts = list[pd.DataFrame]()
    for model in FORECASTS:
        part = pd.DataFrame({group: [*labels, "all"], "model": model}, dtype=object)
        for units, metric in _backtest_columns(panel, by):
            actual = places.spread(tables[units]["actual"].where(both))
            values = Values(places.spread(tables[units][model]), actual)
            sums = places.sums(metric, values, (int(places.window.max()) + 1, len(names)))
            pooled = (True, metric.over_series == "pooled", metric.over_targets == "pooled")
            each = reduced(metric, sums, (group != "series", group == "series", False), pooled).ravel()[some]
            overall = reduced(metric, sums, (False, False, False), pooled).ravel()
            if units == "raw" and panel and not metric.unitless:
                overall[:] = np.nan  # series differ in their units
            part[f"{metric.name}_{units}"] = np.append(each, overall)
        parts.append(part)
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def _backtest_columns(panel: bool, by: str | None) -> list[tuple[Units, Metric]]:
    """Units and metrics of the columns of `backtest_scores`, in order."""
    every: list[tuple[Units, Metric]] = [
        (units, metric)
        for metrics in ([MSE(), MAE()], own_metrics())
        for units in UNITS
        for metric in metrics
        if units in metric.shown and metric.view in ("each", units)
    ]
    mixed = panel and by is None  # windows of several series, which differ in their units
    return [(units, metric) for units, metric in every if units == "scaled" or metric.unitless or not mixed]


def _scaled(frame: pd.DataFrame, forecaster: Forecaster) -> pd.DataFrame:
    """The values of a backtest in the scaled units of the run, by series; NaN for series that were not in the training
    data."""
    columns, preprocess = [*FORECASTS, "actual"], forecaster.preprocess
    names = frame["series"] if "series" in frame else pd.Series("", frame.index)
    codes, series = pd.factorize(names.astype(str))
    place = preprocess.places(tuple(series))[codes]
    channel = np.zeros(len(frame), dtype=np.int64)
    if "column" in frame:
        channel = pd.Index(forecaster.targets).get_indexer(frame["column"].astype(str))
    values = frame[columns].to_numpy(dtype=np.float64)
    if preprocess.power is not None:
        values = PowerTransform(preprocess.power.shift, preprocess.power.powers[place, channel][:, None]).apply(values)
    mean, scale = (each[place, channel][:, None] for each in (preprocess.scaler.mean, preprocess.scaler.scale))
    scaled = np.where((place < 0)[:, None], np.nan, (values - mean) / scale)
    return pd.DataFrame(scaled, columns=columns, index=frame.index)
