"""Scores of each series of a panel, in raw units and beside its own seasonal naive forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.panel import Panel
from femts.data.panel_preprocess import PanelPreprocess
from femts.data.windows import PanelWindows
from femts.evaluation.coverage import Bounds
from femts.evaluation.scores import scale_season

Array = NDArray[np.float64]


class SeriesSums:
    """Float64 sums over the windows of each of S series; memory does not grow with the windows.

    Args:
        windows: the ones that are scored, which the evaluator hands on in their order.
        preprocess: of each series.
        season: steps of a season, for the seasonal naive forecast.
        most: windows that are scored at most, spread over the series; None for all.
        bounds: intervals to measure in each series as well; None leaves them out.
    """

    def __init__(
        self,
        windows: PanelWindows,
        preprocess: PanelPreprocess,
        season: int,
        most: int | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.names = windows.names
        self.number = windows.series_of(windows.spread(most)).cpu()
        self.windows = torch.bincount(self.number, minlength=len(self.names))
        self.preprocess, self.season, self.bounds = preprocess, season, bounds
        levels = 0 if bounds is None else len(bounds.intervals.levels)
        self.sums = torch.zeros(4, len(self.names), dtype=torch.float64)  # squares, absolutes, naive squares, values
        self.inside, self.width = torch.zeros(2, levels, len(self.names), dtype=torch.float64)
        self.counted = None if windows.counted is None else windows.counted.cpu()
        self._limits, self._done = windows.resident.limits, 0

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units: `forecast` and `target` (B, S, T), NaN where a target is missing."""
        numbers = self.number[self._done : self._done + len(x)]
        self._done += len(x)
        last = x[:, -self.season :, : target.shape[-1]].cpu().double()
        short = last.shape[1] < self.season
        naive = last[:, torch.arange(target.shape[1]) % last.shape[1]]
        bounds = [] if self.bounds is None else self.bounds.next(forecast, quantiles)[0]
        reached = target.cpu() if self._limits is None else self._limits.at(numbers).within(target.cpu())
        target, forecast = target.cpu().double(), forecast.cpu().double()
        for number in numbers.unique().tolist():
            some, one = numbers == number, self.preprocess.series[self.names[number]]
            actual = one.restore(target[some])
            error, observed = one.inverse(forecast[some]) - actual, ~actual.isnan()
            self.sums[0, number] += error.square().nansum()
            self.sums[1, number] += error.abs().nansum()
            self.sums[2, number] += torch.nan if short else (one.restore(naive[some]) - actual).square().nansum()
            self.sums[3, number] += observed.sum()
            for k, (low, high) in enumerate(bounds):
                self.inside[k, number] += ((low[some] <= reached[some]) & (reached[some] <= high[some])).sum()
                self.width[k, number] += (one.inverse(high[some]) - one.inverse(low[some]))[observed].sum()

    def counts(self, windows: int) -> Tensor | None:
        """As `Windows.counts`, of so many windows that are to be added next."""
        return None if self.counted is None else self.counted[self.number[self._done : self._done + windows]][:, None]

    def sum_by_series(self, values: Tensor) -> Tensor:
        """Sums by series (S,) of `values` (B,) of windows that are to be added next."""
        sums = torch.zeros(len(self.names), dtype=torch.float64)
        return sums.index_add(0, self.number[self._done : self._done + len(values)], values.cpu().double())

    def ratios(self, panel: Panel) -> dict[str, float]:
        """Means of `mase` and `rmsse` over the series that have them, and a scale of their own."""
        frame = self.frame(panel)
        if self.counted is not None:
            frame = frame[self.counted.any(1).numpy()[self.windows > 0]]
        return {name: float(frame[name].mean()) for name in ("mase", "rmsse")}

    def frame(self, panel: Panel, levels: Sequence[float] = ()) -> pd.DataFrame:
        """One row a series with windows, in raw units; see `PanelForecaster.scores`."""
        squared, absolute, naive, values = self.sums.numpy()
        rows = list[tuple[object, ...]]()
        for number, (name, data) in enumerate(panel.series.items()):
            if not self.windows[number]:
                continue
            count = values[number] or np.nan
            scale, square = seasonal_changes(data.train_values[:, : data.targets], data.season)
            mse, mae = squared[number] / count, absolute[number] / count
            skill = 1 - squared[number] / naive[number] if naive[number] > 0 else np.nan
            cells = [int(self.windows[number]), mse, mae, mae / scale, np.sqrt(mse) / square, skill]
            for level in levels:
                assert self.bounds is not None
                k = self.bounds.intervals.levels.index(level)
                cells += [float(self.inside[k, number]) / count, float(self.width[k, number]) / count]
            rows.append((name, "raw", *cells))
        further = [f"{what}-{level:g}" for level in levels for what in ("coverage", "width")]
        names = ["series", "units", "windows", "mse", "mae", "mase", "rmsse", "skill", *further]
        return pd.DataFrame(rows, columns=names)


def seasonal_changes(values: Array, season: int) -> tuple[float, float]:
    """Mean absolute and root mean squared change of `values` (rows, T) over a season, or over a step where they hold
    no more than one; NaN where there is none but 0."""
    steps = scale_season(len(values), season)
    change = (values[steps:] - values[:-steps]).ravel()
    change = change[~np.isnan(change)]
    return (float(np.abs(change).mean()), float(np.sqrt((change**2).mean()))) if change.any() else (np.nan, np.nan)
