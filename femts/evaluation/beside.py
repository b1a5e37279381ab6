"""The seasonal naive forecast beside a model: errors on the same windows, skill and MASE."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.panel import Panel
from femts.data.preprocess import Preprocess
from femts.evaluation.metrics import ErrorSums
from femts.evaluation.scores import seasonal_error
from femts.evaluation.series_scores import SeriesSums

TIMES = 10  # the mean squared error of the others, from which on one that makes most of all is named


class NaiveErrors(ABC):
    """Float64 sums of the errors of the seasonal naive forecast; memory does not grow with the windows.

    Beside them, the squared errors of the model, by target, or series of a panel.

    Args:
        season: steps of a season; a look-back that is shorter repeats its last value.
        seq_len: L, steps of look-back.
    """

    def __init__(self, season: int, seq_len: int) -> None:
        self.season = season if season <= seq_len else 1
        self._naive: ErrorSums | None = None

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units; see `femts.evaluation.evaluator.Accumulator`."""
        if self._naive is None:
            self._naive = ErrorSums(target.device)
        steps = torch.arange(target.shape[1], device=x.device) % self.season
        observed = ~target.isnan()
        self._naive.add(x[:, -self.season :][:, steps], target.masked_fill(~observed, 0.0), observed)

    @abstractmethod
    def mase(self) -> float:
        """Mean absolute error of the model over that of the seasonal naive forecast on the training rows."""

    @abstractmethod
    def _shares(self) -> tuple[Sequence[str], NDArray[np.float64], NDArray[np.float64]]:
        """Names of targets or series, their sums of squared errors in scaled units, and of how many values."""

    def dominant(self) -> dict[str, Any] | None:
        """The target or series whose squared errors are most of all, and `TIMES` those of the others on average.

        Returns:
            `name`, its part of all squared errors as `error`, and of all values as `values`; None where there is none.
        """
        names, squares, values = self._shares()
        if len(names) < 2 or not squares.sum() > 0:
            return None
        k = int(squares.argmax())
        error, part = float(squares[k] / squares.sum()), float(values[k] / values.sum())
        if error <= 0.5 or error * (1 - part) <= TIMES * (1 - error) * part:
            return None
        return {"name": names[k], "error": error, "values": part}

    def beside(self, mse: float) -> dict[str, Any]:
        """Errors of the seasonal naive forecast beside the `mse` of the model.

        Returns:
            `season` (steps that are repeated), `mse` and `mae` of the naive forecast in scaled
            units, and of the model `skill`, 1 - its `mse` over that, and `mase`, the mean over the
            channels, or the series of a panel, of its absolute error over that of the seasonal
            naive forecast on the training rows. None stands for what there is not: without values,
            or with a division by 0.
        """
        naive = self._naive or ErrorSums()
        skill = 1 - mse / naive.mse if naive.mse > 0 else math.nan
        numbers = {"mse": naive.mse, "mae": naive.mae, "skill": skill, "mase": self.mase()}
        return {"season": self.season, **{name: v if math.isfinite(v) else None for name, v in numbers.items()}}


class NaiveSums(NaiveErrors):
    """Sums over the windows of a table.

    What a mean over the targets leaves out is missing here (`Accumulator`).

    Args:
        preprocess: between scaled and raw units.
        train_values: training rows (rows, T) of the targets, raw units.
        season: steps of a season; a look-back that is shorter repeats its last value.
        seq_len: L, steps of look-back.
    """

    pools = True

    def __init__(self, preprocess: Preprocess, train_values: NDArray[np.float64], season: int, seq_len: int) -> None:
        super().__init__(season, seq_len)
        self._preprocess, targets = preprocess, train_values.shape[1]
        self._change = torch.from_numpy(seasonal_error(train_values, season))
        self._scale = torch.from_numpy(preprocess.scaler.scale[:targets])
        self._absolute, self._squared, self._count = torch.zeros(3, targets, dtype=torch.float64)

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        super().add(x, forecast, target)
        self._squared += (forecast.float() - target.float()).square_().nansum((0, 1), dtype=torch.float64).cpu()
        if self._preprocess.linear:  # then a raw error is a scaled one times the scale
            error = (forecast.float() - target.float()).abs_().nansum((0, 1), dtype=torch.float64).cpu() * self._scale
        else:
            raw = self._preprocess.inverse(forecast.cpu().double()) - self._preprocess.restore(target.cpu().double())
            error = raw.abs_().nansum((0, 1))
        self._absolute += error
        self._count += (~target.isnan()).sum((0, 1)).cpu()

    def mase(self) -> float:
        some = (self._count > 0) & (self._change > 0)
        return float((self._absolute / self._count / self._change)[some].mean())

    def _shares(self) -> tuple[Sequence[str], NDArray[np.float64], NDArray[np.float64]]:
        return self._preprocess.columns[: len(self._count)], self._squared.numpy(), self._count.numpy()


class PanelNaiveSums(NaiveErrors):
    """Sums over the windows of a panel, in the scaled units of each series.

    Args:
        panel: with the training rows of each series.
        series: errors of each series, to which it adds.
        seq_len: L, steps of look-back.
    """

    def __init__(self, panel: Panel, series: SeriesSums, seq_len: int) -> None:
        super().__init__(panel.season, seq_len)
        self.panel, self.series = panel, series
        self._squared, self._values = torch.zeros(2, len(series.names), dtype=torch.float64)

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        counts = self.series.counts(len(x))
        pooled = target if counts is None else target.masked_fill(~counts.to(target.device), torch.nan)
        super().add(x, forecast, pooled)
        self._squared += self.series.sum_by_series((forecast.float() - pooled.float()).square_().nansum((1, 2)))
        self._values += self.series.sum_by_series((~pooled.isnan()).sum((1, 2)))
        self.series.add(x, forecast, target, quantiles)

    def mase(self) -> float:
        return self.series.ratios(self.panel)["mase"]

    def _shares(self) -> tuple[Sequence[str], NDArray[np.float64], NDArray[np.float64]]:
        return self.series.names, self._squared.numpy(), self._values.numpy()
