"""Intervals from few validation windows: a scale for each step and channel, times a quantile of
Student's that all share.

Order statistics of a dozen errors are mostly noise, and windows that overlap err alike. So a
half-width is the root of the mean squared error of its step and channel, which later steps may only
raise (isotonic regression: Barlow et al., "Statistical Inference under Order Restrictions", 1972),
times the quantile of Student's distribution ("The Probable Error of a Mean", Biometrika 1908) with
two degrees of freedom for each window that overlaps no other. Two were chosen by what is covered on
short series, `docs/how-to/intervals.md`; exact, as the intervals of many windows are, these are not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from femts.evaluation.quantiles import ends_of

FEW, FEW_DISJOINT = 100, 20  # fewer windows than both are few; of a hundred errors, even 99 % is an order statistic


def are_few(windows: int, disjoint: int) -> bool:
    """True where order statistics of `windows` errors, of which `disjoint` overlap no other, are
    not to be relied on."""
    return windows < FEW and disjoint < FEW_DISJOINT


def student_widths(errors: NDArray[np.floating], levels: Sequence[float], disjoint: int) -> NDArray[np.float64]:
    """Half-widths (K, S, C) of K `levels`, percent, from few errors (S, C, n), NaN where a target is missing.

    They are NaN for a channel without any error.
    """
    from scipy.special import stdtrit

    count = (~np.isnan(errors)).sum(-1).astype(np.float64)
    squares = np.nansum(np.square(errors, dtype=np.float64), axis=-1)
    scale = _rising(np.divide(squares, count, out=np.zeros_like(count), where=count > 0), count)
    tails = np.array([ends_of(level)[1] for level in levels])
    return np.asarray(stdtrit(2 * disjoint, tails)[:, None, None] * scale)


def _rising(squares: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roots of mean squares (S, C) of `count` errors each, rising with the step; NaN for a channel without any."""
    from scipy.optimize import isotonic_regression

    steps, scale = np.arange(len(squares)), np.full(squares.shape, np.nan)
    for channel, observed in enumerate(count.T > 0):
        if observed.any():
            fit = isotonic_regression(squares[observed, channel], weights=count[observed, channel])
            scale[:, channel] = np.sqrt(np.interp(steps, steps[observed], fit.x))
    return scale
