"""Metrics as running sums, so that scores are means over all values and no forecasts have to be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.models.base import ForecastModel, Forecasts, check_shape
from femts.plugins import Registry

BUILT_IN = ("mse", "mae")  # included in every score


class Metric(Protocol):
    """Running sums over a stream of forecasts, which are not stored.

    A metric with a true attribute `pools` sums over several targets or series in scaled units; targets that are not
    included in such means (`Windows.counts`) are then missing.
    """

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows, in scaled units.

        Args:
            forecasts: `points` (B, P, T) of the T targets and, for a quantile model, `quantiles` (B, P, Q, T).
            batch: look-backs `past` (B, L, T) and targets `future` (B, P, T), NaN where missing; numbers of the
                `series` and of the windows.
        """
        ...


class NamedMetric(Metric, Protocol):
    """A metric for validation and scoring of a run.

    Attributes:
        sums: float64, any shape: the complete state; the sums of several processes are added up.
    """

    sums: Tensor

    def compute(self) -> Mapping[str, float]:
        """Values by name, including that of the metric itself; lower is better."""
        ...


METRICS: Registry[Callable[[ForecastModel], NamedMetric]] = Registry("metric", BUILT_IN)
register_metric = METRICS.register
"""Class decorator that registers a metric under a name for `training.metric`; it is created for the scored model."""


def chosen_by(training: TrainingConfig) -> str:
    """Name of the metric used for model selection on the validation split."""
    return training.metric or ("pinball" if training.learned_quantiles else "mse")


def named_metrics(training: TrainingConfig, model: ForecastModel) -> list[NamedMetric]:
    """Metrics of a score other than the built-in ones: pinball loss for quantile models, and the metric in
    `training`."""
    names = dict.fromkeys([*(["pinball"] if model.quantiles else []), *([training.metric] if training.metric else [])])
    return [METRICS[name](model) for name in names if name not in BUILT_IN]


class ErrorSums:
    """Float64 sums of squared and absolute errors on the device of the forecasts.

    Averaging batch means would give a short last batch too much weight; sums do not.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        # MPS has no float64, so its sums are on the CPU.
        self._device = torch.device("cpu") if torch.device(device).type == "mps" else torch.device(device)
        self.sums = torch.zeros(3, dtype=torch.float64, device=self._device)  # squared, absolute, values

    def add(self, forecast: Tensor, target: Tensor, observed: Tensor | None = None) -> None:
        """Add the errors of `forecast` against `target`, in scaled units; only where `observed`, if given.

        All have the same shape.
        """
        check_shape(forecast, target.shape)
        error = (forecast.detach().float() - target.float()).to(self._device)
        if observed is not None:
            error = error * observed.to(self._device)
        self.sums[0] += error.square().sum(dtype=torch.float64)
        self.sums[1] += error.abs_().sum(dtype=torch.float64)
        self.sums[2] += error.numel() if observed is None else observed.sum().to(self._device)

    @property
    def mse(self) -> float:
        """Mean squared error; NaN if nothing was added."""
        return float((self.sums[0] / self.sums[2]).item())

    @property
    def mae(self) -> float:
        """Mean absolute error; NaN if nothing was added."""
        return float((self.sums[1] / self.sums[2]).item())


class WindowSeries(NamedTuple):
    """Series number of each window, `of` (B,), among S series, on the CPU."""

    of: Tensor
    series: int

    @classmethod
    def of_batch(cls, batch: Batch, series: int) -> WindowSeries:
        """Create for a batch of windows."""
        if batch.series is None:
            return cls(torch.zeros(len(batch.past), dtype=torch.int64), series)
        return cls(batch.series.cpu(), series)

    def sums(self, values: Tensor) -> Tensor:
        """Sums (S, T) float64 of `values` (B, P, T) by series, ignoring NaN, on the CPU."""
        if self.series == 1:
            return values.nansum((0, 1), dtype=torch.float64).cpu()[None]
        sums = torch.zeros(self.series, values.shape[-1], dtype=torch.float64)
        return sums.index_add(0, self.of, values.nansum(1, dtype=torch.float64).cpu())


def mean_of_cells(means: NDArray[np.float64], count: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Mean over `axes` of `means` (S, C) of `count` values each, weighted by count; NaN if there are none."""
    if (count == count.flat[0]).all():
        return np.asarray(means.mean(axis=axes))
    sums, whole = (np.where(count > 0, means, 0.0) * count).sum(axis=axes), count.sum(axis=axes)
    return np.divide(sums, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
