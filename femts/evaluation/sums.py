"""Running sums of errors, on the device of the forecasts or by series."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.models.base import check_shape


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
