"""Errors of each window, or of each series of a panel, condensed to a few hundred numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.evaluation.constants import MOST_ERRORS
from femts.models.base import Forecasts


class WindowErrors:
    """Squared errors of each window, in the order of the evaluator; two numbers per window."""

    pools = True

    def __init__(self) -> None:
        self._sums = list[Tensor]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units; see `femts.evaluation.metrics.Metric`."""
        forecast, target = forecasts.points, batch.target
        error = forecast.float() - target.float()
        squares = error.square().cpu().double().nansum((1, 2))
        self._sums.append(torch.stack([squares, (~error.isnan()).sum((1, 2)).cpu().double()]))

    def thinned(self, series: Tensor | None = None) -> list[float | None]:
        """Mean squared error of each of `MOST_ERRORS` equal runs of neighbouring windows, or of each window if there are
        fewer, with five digits; None without values.

        With `series` (N,), the series number of each window, runs consist of whole series.
        """
        sums = torch.cat(self._sums, 1).numpy()
        if series is not None:
            _, number = np.unique(series.numpy(), return_inverse=True)
            sums = np.stack([np.bincount(number, row) for row in sums])
        parts = np.array_split(sums, min(MOST_ERRORS, sums.shape[1]), axis=1)
        return [float(f"{squares / count:.5g}") if count else None for squares, count in (p.sum(1) for p in parts)]
