"""Errors window by window, thinned to a few hundred numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MOST = 200  # numbers that stay of all windows


class WindowErrors:
    """Squared errors of each window, in the order in which the evaluator hands them on; two numbers a window."""

    def __init__(self) -> None:
        self._sums = list[Tensor]()

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units; see `femts.evaluation.evaluator.Accumulator`."""
        error = forecast.float() - target.float()
        squares = error.square().cpu().double().nansum((1, 2))
        self._sums.append(torch.stack([squares, (~error.isnan()).sum((1, 2)).cpu().double()]))

    def thinned(self) -> list[float | None]:
        """Mean squared error of each of `MOST` runs of neighbouring windows, as long as each other
        but for one window, or of each window where there are fewer; five digits, None for one
        without values."""
        squares, values = torch.cat(self._sums, 1).numpy()
        parts = np.array_split(np.arange(len(values)), min(MOST, len(values)))
        sums = [(squares[part].sum(), values[part].sum()) for part in parts]
        return [float(f"{square / count:.5g}") if count else None for square, count in sums]
