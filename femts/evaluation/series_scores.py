"""Scores of each series of a panel, in raw units and beside its own seasonal naive forecast."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from femts.data.panel import Panel
from femts.data.panel_preprocess import PanelPreprocess
from femts.data.windows import PanelWindows


class SeriesSums:
    """Float64 sums over the windows of each of S series; memory does not grow with the windows.

    Args:
        windows: the ones that are scored, which the evaluator hands on in their order.
        preprocess: of each series.
        most: windows that are scored at most, spread over the series; None for all.
    """

    def __init__(self, windows: PanelWindows, preprocess: PanelPreprocess, most: int | None = None) -> None:
        self.names = windows.names
        self.number = windows.series_of(windows.spread(most)).cpu()
        self.counts = torch.bincount(self.number, minlength=len(self.names))
        self.preprocess = preprocess
        self.sums = torch.zeros(3, len(self.names), dtype=torch.float64)  # squares, absolutes, values
        self._done = 0

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units: `forecast` and `target` (B, S, T), NaN where a target is missing."""
        numbers = self.number[self._done : self._done + len(x)]
        self._done += len(x)
        for number in numbers.unique().tolist():
            some, one = numbers == number, self.preprocess.series[self.names[number]]
            error = one.inverse(forecast[some].cpu().double()) - one.restore(target[some].cpu().double())
            self.sums[0, number] += error.square().nansum()
            self.sums[1, number] += error.abs().nansum()
            self.sums[2, number] += (~error.isnan()).sum()

    def frame(self, panel: Panel) -> pd.DataFrame:
        """One row a series with windows; see `PanelForecaster.scores`."""
        squared, absolute, values = self.sums.numpy()
        rows = list[tuple[object, ...]]()
        for number, (name, data) in enumerate(panel.series.items()):
            if not self.counts[number]:
                continue
            count = values[number] or np.nan
            train = data.train_values[:, : data.targets]
            change = (train[data.season :] - train[: -data.season]).ravel() if len(train) > data.season else np.empty(0)
            change = change[~np.isnan(change)]
            scale, square = (np.abs(change).mean(), np.sqrt((change**2).mean())) if change.any() else (np.nan, np.nan)
            mse, mae = squared[number] / count, absolute[number] / count
            rows.append((name, int(self.counts[number]), mse, mae, mae / scale, np.sqrt(mse) / square))
        return pd.DataFrame(rows, columns=["series", "windows", "mse", "mae", "mase", "rmsse"])
