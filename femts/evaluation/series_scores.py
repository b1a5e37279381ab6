"""Scores of each series, in raw units and relative to its own seasonal naive forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.windows import Windows
from femts.evaluation.coverage import Bounds
from femts.evaluation.metrics import WindowSeries
from femts.evaluation.relative import RelativeErrors
from femts.evaluation.scale import SeasonalScale
from femts.models.base import Forecasts

Array = NDArray[np.float64]


class SeriesSums:
    """Float64 sums over the windows of each of S series and T targets.

    Args:
        windows: windows to score, in the order of the evaluator.
        preprocess: preprocessing of each series.
        data: dataset with the training rows of each series.
        most: maximum number of windows to score, spread over the series; None for all.
        bounds: bounds of intervals to score for each series; None omits them.
    """

    def __init__(
        self,
        windows: Windows,
        preprocess: Preprocess,
        data: Dataset,
        most: int | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._preprocess, self._data, self._bounds = preprocess, data, bounds
        numbers = windows.series_of(windows.subsample(most)).cpu()
        self.windows = torch.bincount(numbers, minlength=len(data))
        levels, shape = 0 if bounds is None else len(bounds.levels), (len(data), data.n_targets)
        self._sums = torch.zeros(4, *shape, dtype=torch.float64)  # squares, absolutes, naive squares, values
        self._inside, self._width = torch.zeros(2, levels, *shape, dtype=torch.float64)
        self._relative = RelativeErrors(preprocess, *shape)
        self._limits, self._counted = windows.resident.limits, windows.counted

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units: `forecast` and `target` (B, S, T), NaN where a target is missing."""
        x, forecast, target, _quantiles = batch.past, forecasts.points, batch.target, forecasts.quantiles
        numbers, season = WindowSeries.of_batch(batch, len(self._data)), self._data.season
        own = self._preprocess.at(numbers.of.numpy())
        last = x[:, -season:, : target.shape[-1]].cpu().double()
        bounds = [] if self._bounds is None else self._bounds.of(forecasts, batch)[0]
        reached = target.cpu() if self._limits is None else self._limits.at(numbers.of).within(target.cpu())
        target, forecast = target.cpu().double(), forecast.cpu().double()
        actual, observed = own.restore(target), ~target.isnan()
        error = own.inverse(forecast) - actual
        naive = last[:, torch.arange(target.shape[1]) % last.shape[1]]
        repeated = (own.restore(naive) - actual).square()
        self._sums += torch.stack(
            [numbers.sums(each) for each in (error.square(), error.abs(), repeated, observed.double())]
        )
        self._relative.update(forecasts, batch)
        if last.shape[1] < season:
            self._sums[2, numbers.of] = torch.nan
        for k, (low, high) in enumerate(bounds):
            self._inside[k] += numbers.sums(((low <= reached) & (reached <= high)).double())
            self._width[k] += numbers.sums((own.inverse(high) - own.inverse(low)).where(observed, torch.nan))

    def ratios(self) -> dict[str, float]:
        """Means of `mase` and `rmsse` over the series for which they are defined and that have a scale of their own;
        `wape` and `bias` over the values of all series."""
        frame = self.frame()
        if self._counted is not None:
            frame = frame[self._counted.cpu().any(1).numpy()[self.windows.numpy() > 0]]
        return {name: float(frame[name].mean()) for name in ("mase", "rmsse")} | self._relative.compute()

    def frame(self, levels: Sequence[float] = ()) -> pd.DataFrame:
        """One row for each series with windows, in raw units; see `Forecaster.scores`."""
        each, scale = self._sums.numpy(), SeasonalScale.of(self._data)
        squared, absolute, naive, values = each.sum(2)
        count = np.where(values > 0, values, np.nan)
        table = {"series": np.array(self._data.series, dtype=object), "units": "raw", "windows": self.windows.numpy()}
        with np.errstate(invalid="ignore", divide="ignore"):
            mse, mae = squared / count, absolute / count
            ratios = {
                "mase": each[1] / each[3] / scale.absolute,
                "rmsse": np.sqrt(each[0] / each[3]) / scale.squared,
            }
            table |= {"mse": mse, "mae": mae} | {name: _mean_over_targets(ratio) for name, ratio in ratios.items()}
            table |= self._relative.by_series()
            table["skill"] = np.where(naive > 0, 1 - squared / naive, np.nan)
        for level in levels:
            assert self._bounds is not None
            k = self._bounds.levels.index(level)
            inside, width = (each[k].sum(1).numpy() / count for each in (self._inside, self._width))
            table |= {f"coverage-{level:g}": inside, f"width-{level:g}": width}
        return pd.DataFrame(table)[self.windows.numpy() > 0].reset_index(drop=True)


def _mean_over_targets(ratios: Array) -> Array:
    """Mean (S,) of `ratios` (S, T) over the targets for which they are defined; NaN without any."""
    defined = ~np.isnan(ratios)
    return np.asarray(np.where(defined, ratios, 0.0).sum(1) / np.where(defined.any(1), defined.sum(1), np.nan))
