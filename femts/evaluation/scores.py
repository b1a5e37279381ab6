"""Detailed scores for each step and channel, in scaled and raw units, compared with the seasonal naive forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.errors import UsageError, suggest
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.metrics import mean_of_cells
from femts.evaluation.relative import relative, sizes, zero_within
from femts.evaluation.scale import seasonal_error
from femts.models.base import Forecasts
from femts.text import quote

Array = NDArray[np.float64]
GROUPS = ("step", "channel")
BY_SERIES = ("series",)
UNITLESS = (
    "smape",
    "mase",
    "rmsse",
    "wape",
    "bias",
    "skill",
    "coverage-",
)  # prefixes of columns without a unit


class _Errors:
    """Float64 sums of the errors at each of S steps and C channels, in one unit."""

    def __init__(self, steps: int, channels: int) -> None:
        self.squared, self.absolute, self.naive_squared = torch.zeros(3, steps, channels, dtype=torch.float64)

    def add(self, forecast: Tensor, target: Tensor, naive: Tensor | None, observed: Tensor) -> None:
        """Add windows (B, S, C); missing targets are set to the forecast. If `naive` is None, its errors are NaN."""
        error = forecast - target
        self.squared += error.square().sum(0)
        self.absolute += error.abs().sum(0)
        if naive is None:
            self.naive_squared += torch.nan
        else:
            self.naive_squared += (naive - target).masked_fill(~observed, 0.0).square().sum(0)


class DetailSums:
    """Float64 sums over windows for each of S steps and C channels.

    Args:
        steps: S.
        channels: C, the first ones of `preprocess`.
        preprocess: conversion between scaled and raw units, for one series; None for several, each in its own scaled
            units.
        season: number of steps in a season, for the seasonal naive forecast.
    """

    def __init__(self, steps: int, channels: int, preprocess: Preprocess | None, season: int) -> None:
        self.season, self.windows, self.pools = season, 0, preprocess is None
        self.preprocess = preprocess or Preprocess((), (), Scaler.even(channels))
        self.scaled, self.raw = _Errors(steps, channels), _Errors(steps, channels)
        self._symmetric = torch.zeros(steps, channels, dtype=torch.float64)
        self.count = torch.zeros(steps, channels, dtype=torch.float64)
        self.scale = self.preprocess.scaler.scale[0, :channels]
        self._signed, self._size = torch.zeros(2, steps, channels, dtype=torch.float64)  # raw
        self._zero = torch.from_numpy(zero_within(self.preprocess.scaler, channels)[0])

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units: `x` (B, L, C), `forecast` and `target` (B, S, C), NaN where a target is
        missing."""
        x, forecast, target = batch.past, forecasts.points, batch.target
        last, forecast, target = (v.cpu().double() for v in (x[:, -self.season :], forecast.float(), target))
        self.windows += len(last)
        observed = ~target.isnan()
        target = torch.where(observed, target, forecast)  # an error of 0, which is not counted
        self.count += observed.sum(0)
        naive = last[:, torch.arange(target.shape[1]) % self.season] if last.shape[1] >= self.season else None
        self.scaled.add(forecast, target, naive, observed)
        inverse, restore = self.preprocess.inverse, self.preprocess.restore
        forecast_raw, target_raw = inverse(forecast), restore(target)
        if not self.preprocess.linear:  # otherwise raw errors are scaled errors times the scale
            target_raw = torch.where(observed, target_raw, forecast_raw)
            self.raw.add(forecast_raw, target_raw, None if naive is None else restore(naive), observed)
        self._signed += (forecast_raw - target_raw).masked_fill(~observed, 0.0).sum(0)
        self._size += sizes(target_raw, self._zero).masked_fill(~observed, 0.0).sum(0)
        symmetric = _symmetric(forecast_raw, target_raw, self._zero)
        self._symmetric += symmetric.masked_fill(~observed, 0.0).sum(0)

    def means(self, units: str) -> dict[str, Array]:
        """Mean errors (S, C) in `scaled` or `raw` units: `mse`, `mae`, `smape`, and `naive` for the seasonal naive
        forecast."""
        count = np.where(self.count.numpy() > 0, self.count.numpy(), np.nan)
        own = self.raw if units == "raw" else self.scaled
        direct = units == "scaled" or not self.preprocess.linear
        sums, factor = (own, np.ones_like(self.scale)) if direct else (self.scaled, self.scale)
        return {
            "mse": sums.squared.numpy() / count * factor**2,
            "mae": sums.absolute.numpy() / count * factor,
            # In scaled units, the position of 0 is arbitrary.
            "smape": self._symmetric.numpy() / count if units == "raw" else np.full(count.shape, np.nan),
            "naive": sums.naive_squared.numpy() / count * factor**2,
        }

    def relative(self, by: Sequence[str]) -> dict[str, Array]:
        """`wape` and `bias`, in raw units, of each group of scores, averaged over channels."""
        sums = (self.means("raw")["mae"] * self.count.numpy(), self._signed.numpy(), self._size.numpy())
        if "step" not in by:
            sums = tuple(np.nansum(each, axis=0, keepdims=True) for each in sums)
        if "channel" in by:
            sums = tuple(each[..., None] for each in sums)
        absolute, signed, size = sums
        return {name: each.reshape(-1) for name, each in relative(absolute, signed, size).items()}


def _symmetric(forecast: Tensor, target: Tensor, zero: Tensor) -> Tensor:
    """Error in percent of the mean absolute value of forecast and target, 0 if both are within `zero` of 0."""
    size = forecast.abs() + target.abs()
    return torch.where(size > zero, 200 * (forecast - target).abs() / size, 0.0)


def scores_frame(
    sums: DetailSums,
    columns: Sequence[str],
    train_values: Array,
    by: Sequence[str] = (),
    covered: CoverageSums | None = None,
    levels: Sequence[float] = (),
) -> pd.DataFrame:
    """One row for each group and unit; see `Forecaster.scores` for the columns.

    Args:
        sums: sums over all windows.
        columns: names of the C channels.
        train_values: (rows, C), raw units; not used for several series.
        by: `step`, `channel`, both, or neither for a single group.
        covered: interval sums over the same windows; None omits intervals.
        levels: levels of `covered` to include.
    """
    seasonal = seasonal_error(train_values, sums.season)
    raw_mae = sums.means("raw")["mae"]
    mase = _ratio(raw_mae, np.broadcast_to(seasonal, raw_mae.shape))
    frames, every, own = [], sums.count.numpy(), sums.preprocess.scaler.own[0, : len(columns)]
    # Channels without a scale of their own are excluded from means of scaled errors over channels.
    counted = every if "channel" in by or not own.any() else every * own
    for units in ("scaled", "raw"):
        cells = sums.means(units) | {"mase": mase}
        # With a transform, widths and pinball losses have no constant factor to raw units.
        factor = np.ones_like(sums.scale) if units == "scaled" else sums.scale if sums.preprocess.linear else np.nan
        if covered is not None:
            cells["crps"] = covered.crps * factor
        for level in levels:
            assert covered is not None
            k = covered.levels.index(level)
            cells[f"coverage-{level:g}"] = covered.coverage[k]
            cells[f"width-{level:g}"] = covered.width[k] * factor
            cells[f"pinball-{level:g}"] = covered.pinball[k] * factor
        frame = _grouped(cells, counted if units == "scaled" else every, columns, by)
        if "channel" not in by:
            frame["mase"] = _over_channels(mase, counted, by)
        for name, shares in sums.relative(by).items():
            frame[name] = shares if units == "raw" else np.nan  # 0 is arbitrary in scaled units
        frame["skill"] = 1 - _ratio(frame["mse"].to_numpy(), frame.pop("naive").to_numpy())
        frame["rmse"] = np.sqrt(frame["mse"])
        frame["units"], frame["windows"] = units, sums.windows
        frames.append(frame)
    first = [
        *(name for name in GROUPS if name in by),
        "units",
        "windows",
        "mse",
        "mae",
        "rmse",
        "smape",
        "mase",
        "wape",
        "bias",
        "skill",
    ]
    table = pd.concat(frames[:1] if sums.pools else frames, ignore_index=True)
    if sums.pools:  # undefined in scaled units, where 0 is arbitrary
        raw = ["smape", "mase", "wape", "bias"]
        table, first = table.drop(columns=raw), [name for name in first if name not in raw]
    return table[[*first, *(name for name in table.columns if name not in first)]]


def check_groups(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """`by` as names in `GROUPS`, or only `series`; UsageError for other names."""
    names = tuple(by) if isinstance(by, list | tuple) else () if by is None else (by,)
    groups = (*GROUPS, *BY_SERIES)
    for name in names:
        if not isinstance(name, str) or name not in groups:
            raise UsageError(f"Scores cannot be grouped by '{quote(name)}'{suggest(str(name), groups)}")
    if len(set(names)) > 1 and set(names) & set(BY_SERIES):
        raise UsageError("Scores cannot be grouped by series together with step or channel; use either.")
    return tuple(dict.fromkeys(names))


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def _over_channels(mase: Array, count: Array, by: Sequence[str]) -> Array:
    """Mean of `mase` (S, C) over channels, for all steps or each; channels with gaps have the same weight as others."""
    if (count == count.flat[0]).all():
        return mean_of_cells(mase, count, (1,) if "step" in by else (0, 1)).reshape(-1)
    if "step" not in by:
        mase, count = mean_of_cells(mase, count, (0,))[None], count.sum(axis=0)[None]
    return mean_of_cells(mase, (count > 0).astype(np.float64), (1,))


def _grouped(cells: dict[str, Array], count: Array, columns: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """Means of `cells` (S, C), weighted by `count`, over the dimensions that are not in `by`."""
    axes = tuple(axis for axis, name in enumerate(GROUPS) if name not in by)
    frame = pd.DataFrame({name: mean_of_cells(values, count, axes).reshape(-1) for name, values in cells.items()})
    steps = next(iter(cells.values())).shape[0]
    if "step" in by:
        frame["step"] = np.repeat(np.arange(1, steps + 1), len(columns) if "channel" in by else 1)
    if "channel" in by:
        frame["channel"] = list(columns) * (steps if "step" in by else 1)
    return frame
