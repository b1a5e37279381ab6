"""Metrics as running sums, so that a score is the mean over every value and no forecast has to be kept."""

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

BUILT_IN = ("mse", "mae")  # of every score


class Metric(Protocol):
    """Sums of what is wanted of forecasts, which stream by: none is kept.

    One that has `pools`, a true attribute, sums over several targets or series in scaled units; for it, targets that
    do not count there (`Windows.counts`) are missing.
    """

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows, in scaled units.

        Args:
            forecasts: `points` (B, P, T) of the T targets and, of a model that has learned some, `quantiles` (B, P, Q,
                T).
            batch: their look-backs `past` (B, L, T) and what followed, `future` (B, P, T), NaN where it is missing; the
                numbers of their `series` and of the windows themselves.
        """
        ...


class NamedMetric(Metric, Protocol):
    """A metric that a run can be validated and scored by.

    Attributes:
        sums: float64, any shape: all that it keeps; several processes add theirs up.
    """

    sums: Tensor

    def compute(self) -> Mapping[str, float]:
        """Values by name, that of the metric itself among them; lower ones are better."""
        ...


METRICS: Registry[Callable[[ForecastModel], NamedMetric]] = Registry("metric", BUILT_IN)
register_metric = METRICS.register
"""Class decorator: make a metric available by a name, as `training.metric`. It is made for the model that is scored."""


def chosen_by(training: TrainingConfig) -> str:
    """Name of the metric that validations choose by."""
    return training.metric or ("pinball" if training.learned_quantiles else "mse")


def named_metrics(training: TrainingConfig, model: ForecastModel) -> list[NamedMetric]:
    """What is summed for a score beside the errors that every score has: the pinball loss of learned quantiles, and
    the metric that `training` names."""
    names = dict.fromkeys([*(["pinball"] if model.quantiles else []), *([training.metric] if training.metric else [])])
    return [METRICS[name](model) for name in names if name not in BUILT_IN]


class ErrorSums:
    """Float64 sums of squared and absolute errors on the forecasts' device.

    A mean of batch means would weight a short last batch wrongly; sums do not.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        # MPS has no float64, so the sums live on the CPU there.
        self._device = torch.device("cpu") if torch.device(device).type == "mps" else torch.device(device)
        self.sums = torch.zeros(3, dtype=torch.float64, device=self._device)  # squared, absolute, values

    def add(self, forecast: Tensor, target: Tensor, observed: Tensor | None = None) -> None:
        """Add the errors of `forecast` against `target`, in scaled units; only where `observed`, if given.

        All have one shape.
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
        """Mean squared error; NaN before anything was added."""
        return float((self.sums[0] / self.sums[2]).item())

    @property
    def mae(self) -> float:
        """Mean absolute error; NaN before anything was added."""
        return float((self.sums[1] / self.sums[2]).item())


class WindowSeries(NamedTuple):
    """Numbers of the series, of S, that some windows are `of` (B,), on the CPU."""

    of: Tensor
    series: int

    @classmethod
    def of_batch(cls, batch: Batch, series: int) -> WindowSeries:
        """Those of a batch of windows."""
        if batch.series is None:
            return cls(torch.zeros(len(batch.past), dtype=torch.int64), series)
        return cls(batch.series.cpu(), series)

    def sums(self, values: Tensor) -> Tensor:
        """Sums (S, T) float64 of `values` (B, P, T), NaN where there is none, on the CPU."""
        if self.series == 1:
            return values.nansum((0, 1), dtype=torch.float64).cpu()[None]
        sums = torch.zeros(self.series, values.shape[-1], dtype=torch.float64)
        return sums.index_add(0, self.of, values.nansum(1, dtype=torch.float64).cpu())


def mean_of_cells(means: NDArray[np.float64], count: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Mean over `axes` of `means` (S, C) of `count` values each, so that every value counts alike;
    NaN where there is none."""
    if (count == count.flat[0]).all():
        return np.asarray(means.mean(axis=axes))
    sums, whole = (np.where(count > 0, means, 0.0) * count).sum(axis=axes), count.sum(axis=axes)
    return np.divide(sums, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
