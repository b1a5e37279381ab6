"""Errors as running sums, so that a score is the mean over every value and no forecast has to be kept."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.models.base import check_shape


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


def mean_of_cells(means: NDArray[np.float64], count: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Mean over `axes` of `means` (S, C) of `count` values each, so that every value counts alike;
    NaN where there is none."""
    if (count == count.flat[0]).all():
        return np.asarray(means.mean(axis=axes))
    sums, whole = (np.where(count > 0, means, 0.0) * count).sum(axis=axes), count.sum(axis=axes)
    return np.divide(sums, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
