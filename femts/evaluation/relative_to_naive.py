"""Comparison with the seasonal naive forecast: errors on the same windows, skill and MASE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.evaluation.metrics import ErrorSums, WindowSeries
from femts.evaluation.series_scores import seasonal_changes
from femts.models.base import Forecasts

TIMES = 10  # a target or series is reported if its mean squared error is this many times that of the others


class NaiveSums:
    """Float64 sums of the errors of the seasonal naive forecast, and of the model by series and target.

    Targets excluded from means over targets and series are missing here (`Metric`).

    Args:
        preprocess: conversion between scaled and raw units.
        data: dataset with the training rows of each series. If the look-back is shorter than a season, its last value
            is repeated.
        seq_len: L, steps of look-back.
    """

    pools = True

    def __init__(self, preprocess: Preprocess, data: Dataset, seq_len: int) -> None:
        self.season = data.season if data.season <= seq_len else 1
        self._preprocess, self._data = preprocess, data
        shape = (len(data), data.n_targets)
        self._absolute, self._squared, self._count = torch.zeros(3, *shape, dtype=torch.float64)
        self._unit = (
            torch.from_numpy(preprocess.scaler.scale[:, : shape[1]]) if preprocess.linear else torch.ones(shape)
        )
        self._naive: ErrorSums | None = None

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.evaluator.Metric`."""
        x, forecast, target = batch.past, forecasts.points, batch.target
        if self._naive is None:
            self._naive = ErrorSums(target.device)
        steps = torch.arange(target.shape[1], device=x.device) % self.season
        observed = ~target.isnan()
        self._naive.add(x[:, -self.season :][:, steps], target.masked_fill(~observed, 0.0), observed)
        numbers = WindowSeries.of_batch(batch, len(self._data))
        self._squared += numbers.sums((forecast.float() - target.float()).square_())
        if self._preprocess.linear:  # raw errors are then scaled errors times the scale
            error = (forecast.float() - target.float()).abs_()
        else:
            own = self._preprocess.at(numbers.of.numpy())
            error = (own.inverse(forecast.cpu().double()) - own.restore(target.cpu().double())).abs_()
        self._absolute += numbers.sums(error) * self._unit
        self._count += numbers.sums((~target.isnan()).double())

    @property
    def mase(self) -> float:
        """Mean over targets and series of the absolute error divided by that of the seasonal naive forecast on the
        training rows; NaN if there is none."""
        change = torch.from_numpy(seasonal_changes(self._data)[0])
        some = (self._count > 0) & (change > 0)
        return float((self._absolute / self._count / change)[some].mean())

    def dominant(self) -> dict[str, Any] | None:
        """The target or series with most of the squared error, if its mean is also `TIMES` that of the others.

        Returns:
            `name`, its fraction of all squared errors as `error`, and of all values as `values`; None if there is none.
        """
        several = len(self._data) > 1
        names = self._data.series if several else self._data.columns[: self._data.n_targets]
        squares, values = ((each.sum(1) if several else each[0]).numpy() for each in (self._squared, self._count))
        if len(names) < 2 or not squares.sum() > 0:
            return None
        k = int(np.argmax(squares))
        error, part = float(squares[k] / squares.sum()), float(values[k] / values.sum())
        if error <= 0.5 or error * (1 - part) <= TIMES * (1 - error) * part:
            return None
        return {"name": names[k], "error": error, "values": part}

    def beside(self, mse: float) -> dict[str, Any]:
        """Compare the `mse` of the model with the seasonal naive forecast.

        Returns:
            `season` (number of steps repeated), `mse` and `mae` of the naive forecast in scaled units, and for the
            model `skill`, 1 minus the ratio of its `mse` to that, and `mase`. None if undefined: without values, or
            after division by 0.
        """
        naive = self._naive or ErrorSums()
        skill = 1 - mse / naive.mse if naive.mse > 0 else math.nan
        numbers = {"mse": naive.mse, "mae": naive.mae, "skill": skill, "mase": self.mase}
        return {"season": self.season, **{name: v if math.isfinite(v) else None for name, v in numbers.items()}}
