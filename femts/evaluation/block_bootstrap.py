"""Confidence interval of the mean of autocorrelated values by the circular block bootstrap.

Blocks keep neighbouring values together, and are drawn from a circle so that all values are drawn equally often
(Politis & Romano, "A circular block-resampling procedure for stationary data", 1992).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from femts.evaluation.constants import DRAWS, LEVEL, SEED


def mean_interval(values: NDArray[np.float64], block: int, middle: float | None = None) -> tuple[float, float]:
    """95 % confidence interval of the mean of `values` (N,).

    The variance between few blocks is underestimated, so the interval is widened by the ratio of the quantiles of
    Student's t and the normal distribution.

    Args:
        values: autocorrelated values in their order.
        block: length of a block, less than N.
        middle: the mean, if it is known better than from `values`, which then only determine the width.
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
