"""Intervals of one width for all windows, and sums of what they cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.evaluation.coverage import Bounds, CoverageSums
from femts.evaluation.difficulty import Difficulty
from femts.evaluation.intervals import Intervals
from femts.models.base import Forecasts


def even_intervals(levels: Sequence[float], half_widths: np.ndarray) -> Intervals:
    """Intervals of `half_widths` (K, S, C)."""
    return Intervals(tuple(levels), half_widths.astype(np.float32), 100, 100, Difficulty.even(1, half_widths.shape[2]))


def covering(made: Intervals, windows: Windows, learned: Sequence[float] = ()) -> CoverageSums:
    """Coverage of `windows` by `made`."""
    return CoverageSums(Bounds(made, windows, learned, made.levels))


def covered(made: Intervals, forecast: torch.Tensor, target: torch.Tensor) -> CoverageSums:
    """Coverage of windows (B, 1, 1) by `made`."""
    sums = covering(made, Windows(torch.zeros(len(target) + 1, 1), 1, 1))
    for some in torch.arange(len(target)).split(1000):
        sums.update(Forecasts(forecast[some], None), Batch(target[some], future=target[some], number=some))
    return sums
