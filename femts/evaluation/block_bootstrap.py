"""Interval of a mean of values that are alike where they are neighbours, by the circular block bootstrap.

Blocks keep neighbours together, and lie on a circle so that every value is drawn alike often
(Politis & Romano, "A circular block-resampling procedure for stationary data", 1992).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

DRAWS, SEED, LEVEL = 2000, 0, 0.95


def mean_interval(values: NDArray[np.float64], block: int, middle: float | None = None) -> tuple[float, float]:
    """Interval of 95 % of the mean of `values` (N,).

    Few blocks vary too little, so it is wider by the quantile of Student's distribution over the
    normal one.

    Args:
        values: in their order.
        block: values of a block, fewer than N.
        middle: the mean where it is better known than by `values`, which then say the width alone.
    """
    from scipy.special import ndtri, stdtrit

    count, blocks = len(values), len(values) / block
    starts = np.random.default_rng(SEED).integers(0, count, (DRAWS, math.ceil(blocks)))
    places = (starts[..., None] + np.arange(block)).reshape(DRAWS, -1)[:, :count] % count
    tail = (1 + LEVEL) / 2
    wider = stdtrit(blocks - 1, tail) / ndtri(tail) * math.sqrt(blocks / (blocks - 1))
    mean = values.mean()
    low, high = (mean if middle is None else middle) + wider * np.quantile(
        values[places].mean(1) - mean, (1 - tail, tail)
    )
    return float(low), float(high)
