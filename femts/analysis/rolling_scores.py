"""Scores of rolling-origin forecasts, by the protocol of fev (github.com/autogluon/fev) or in the units of a run.

Errors are divided by the mean absolute seasonal change of all rows before the window, averaged over steps and series,
then over targets, then over windows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_kind, check_text
from femts.data.cutoffs import Rows
from femts.data.dataset import Dataset
from femts.data.power import PowerTransform
from femts.errors import UsageError, memory_checked
from femts.evaluation.scale import FLOOR
from femts.forecaster.forecaster import Forecaster
from femts.text import quote

Array = NDArray[np.float64]

QUANTILES = tuple(round(0.1 * k, 1) for k in range(1, 10))
METRICS = ("mase", "rmsse", "wape", "sql", "wql")
PROBABILISTIC = ("sql", "wql")  # require quantiles
SCALED = ("mase", "rmsse", "sql")  # means over series, which are comparable with each other
FORECASTS = ("forecast", "seasonal_naive")
_BY = ["window", "target", "series"]


def row_errors(frame: pd.DataFrame, data: Dataset, before: Rows, season: int, point: str = "forecast") -> pd.DataFrame:
    """Errors of each forecast value.

    Args:
        frame: result of `rolling_forecasts` without further quantiles than `QUANTILES`, or without any.
        data: the data that were forecast.
        before: number of rows of each series before each window, (S, W).
        season: steps in a season, for the scale of errors.
        point: column of the point forecasts.

    Returns:
        Rows in the same order: `window`, and the numbers of `target` and `series`; `mase`, the absolute error, and
        `squared`, the squared error, relative to the seasonal changes before the window; `error` and `size`, the
        absolute error and the absolute value; with quantiles `pinball`, twice the mean quantile loss, and `sql`, the
        same relative to the seasonal changes. NaN for a missing value or a scale of 0.
    """
    series = pd.Index(data.series).get_indexer(frame["series"].astype(str))
    target = pd.Index(data.columns[: data.n_targets]).get_indexer(frame["column"].astype(str))
    place = (series, frame["window"].to_numpy() - 1, target)
    actual = frame["actual"].to_numpy(dtype=np.float64)
    error = np.abs(actual - frame[point].to_numpy(dtype=np.float64))
    absolute, squared = (seasonal_errors(data, np.maximum(before, 0), season, power)[place] for power in (1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = {"mase": error / absolute, "squared": error**2 / squared}
        if f"q-{100 * QUANTILES[0]:g}" in frame:
            levels = np.array(QUANTILES)[:, None]
            below = actual - np.stack([frame[f"q-{100 * q:g}"].to_numpy() for q in QUANTILES])
            pinball = 2 * np.maximum(levels * below, (levels - 1) * below).mean(0)
            rows |= {"pinball": pinball, "sql": pinball / absolute}
    rows = {name: np.where(np.isfinite(each), each, np.nan) for name, each in rows.items()}
    size = np.where(np.isnan(error), np.nan, np.abs(actual))
    return pd.DataFrame(
        {"window": place[1] + 1, "target": target, "series": series, **rows, "error": error, "size": size}
    )


def window_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores of each window, means over its targets: those of `METRICS` that `rows` (`row_errors`) allow.

    RMSSE is the root mean squared scaled error of each series, averaged over them; WAPE and WQL are relative to the sum
    of absolute values.
    """
    of_series = np.sqrt(rows.groupby(_BY)["squared"].mean())
    means = rows.drop(columns=["series", "squared"]).groupby(["window", "target"]).mean()
    means["rmsse"] = of_series.groupby(["window", "target"]).mean()
    size = means["size"].where(means["size"] > 0)
    means["wape"] = means["error"] / size
    if "pinball" in means:
        means["wql"] = means["pinball"] / size
    return means.groupby("window")[[name for name in METRICS if name in means]].mean().reset_index()


def series_scores(rows: pd.DataFrame, metric: str) -> pd.Series:
    """A metric of `SCALED` by series, averaged over its steps, targets and windows."""
    if metric == "rmsse":
        each = np.sqrt(rows.groupby(_BY)["squared"].mean())
        return each.groupby("series").mean()
    return rows.groupby("series")[metric].mean()


def win_rates(errors: Array) -> Array:
    """Share (M,) of cases and other models at which each model has the lower error, from errors (cases, M); a tie
    counts half."""
    lower = (errors[:, :, None] < errors[:, None]) + 0.5 * (errors[:, :, None] == errors[:, None])
    others = max(1, errors.shape[1] - 1)
    return np.asarray((lower.sum(2) - 0.5).mean(0) / others)


def seasonal_errors(data: Dataset, stops: Rows, season: int, power: int = 1) -> Array:
    """Mean seasonal change of the first `stops` rows of each series, for many windows at once.

    NaN where there is none, as in fev, unlike `femts.evaluation.scale.SeasonalScale`, which then takes one step; and
    like there where it is below `FLOOR` times the standard deviation of these rows, because nothing can be measured
    relative to rounding.

    Args:
        data: the series.
        stops: number of leading rows, (S,), or (S, W) for several windows.
        season: number of steps in a season.
        power: 1 for absolute changes, 2 for squared ones.

    Returns:
        (S, T), or (S, W, T).
    """
    values = data.values[:, : data.n_targets]
    change = np.full_like(values, np.nan)
    change[season:] = np.abs(values[season:] - values[:-season]) ** power
    first = data.spans[:, 0].reshape(-1, *[1] * (stops.ndim - 1))
    begin = np.minimum(first + season, first + stops)  # changes before it reach into the previous series
    made = _mean_between(change, begin, first + stops)
    centred = values - _mean_between(values, data.spans[:, 0], data.spans[:, 1])[data.codes()]
    mean, square = (_mean_between(each, first, first + stops) for each in (centred, centred**2))
    deviation = np.sqrt(np.maximum(square - mean**2, 0))
    return np.where(made <= (FLOOR * deviation) ** power, np.nan, made)


def _mean_between(values: Array, first: Rows, stop: Rows) -> Array:
    """Mean of the rows `first` to `stop` (...) of `values` (N, T) without missing ones, (..., T); NaN without any."""
    seen = ~np.isnan(values)
    sums = np.pad(np.cumsum(np.where(seen, values, 0.0), axis=0), ((1, 0), (0, 0)))
    counts = np.pad(np.cumsum(seen, axis=0), ((1, 0), (0, 0)))
    total, count = sums[stop] - sums[first], counts[stop] - counts[first]
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


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
        for one that was not in the training data, and raw means over series are omitted.

    Raises:
        UsageError: The table is not a backtest, or the group is unknown.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give the one that made the backtest")
    check_kind(frame, pd.DataFrame, "The backtest", "give the table that femts.backtest returned")
    panel = bool(forecaster.config.schema.panel)
    if by is not None and (check_text(by, "by") != "series" or not panel):
        raise UsageError(
            f"A backtest cannot be grouped by '{quote(by)}'; use by='series' for a long table, or omit it."
        )
    needed = ("window", "series", "cutoff") if panel else ("cutoff", "column")
    missing = [name for name in (*needed, *FORECASTS, "actual") if name not in frame.columns]
    if missing:
        raise UsageError(f"The backtest has no column '{missing[0]}'; pass the table that femts.backtest returned.")
    table = _scores(frame, _scaled(frame, forecaster), by or ("window" if panel else "cutoff"))
    if not panel:
        return table
    if by is None:
        return table.drop(columns=["mse_raw", "mae_raw"])
    table.loc[table["series"] == "all", ["mse_raw", "mae_raw"]] = np.nan
    return table


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


def _scores(frame: pd.DataFrame, scaled: pd.DataFrame, by: str) -> pd.DataFrame:
    """Two rows per group and two for `all`; see `backtest_scores`."""
    both, tables = frame[list(FORECASTS)].notna().all(axis=1), []
    for model in FORECASTS:
        raw, own = frame[model] - frame["actual"], scaled[model] - scaled["actual"]
        errors = pd.DataFrame(
            {"mse_scaled": own**2, "mae_scaled": own.abs(), "mse_raw": raw**2, "mae_raw": raw.abs()}
        ).where(both)
        each = errors.groupby(frame[by], sort=False).mean().rename_axis(by).reset_index()
        overall = errors.mean().to_frame().T
        overall.insert(0, by, "all")
        table = pd.concat([each.astype({by: object}), overall], ignore_index=True)
        table.insert(1, "model", model)
        tables.append(table)
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)
