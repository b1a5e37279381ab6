"""Intervals of one width for all windows, and sums of what they cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from femts.data.windows import Windows
from femts.evaluation.coverage import Bounds, CoverageSums
from femts.evaluation.difficulty import Difficulty
from femts.evaluation.intervals import Intervals


def even_intervals(levels: Sequence[float], half_widths: np.ndarray) -> Intervals:
    """Intervals of `half_widths` (K, S, C)."""
    return Intervals(tuple(levels), half_widths.astype(np.float32), 100, 100, Difficulty.even(1, half_widths.shape[2]))


def covering(made: Intervals, windows: Windows, learned: Sequence[float] = ()) -> CoverageSums:
    """Sums of what `made` covers of `windows`."""
    return CoverageSums(Bounds(made, windows, learned))


def windows_of(count: int) -> Windows:
    """So many windows of one step and one channel."""
    return Windows(torch.zeros(count + 1, 1), 1, 1)
