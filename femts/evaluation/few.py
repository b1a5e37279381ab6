"""Intervals from few validation windows: a scale for each step and channel, times a common quantile of Student's t.

Order statistics of a dozen errors are mostly noise, and errors of overlapping windows are correlated. The half-width is
therefore the root mean squared error of its step and channel, made non-decreasing in the step (isotonic regression:
Barlow et al., "Statistical Inference under Order Restrictions", 1972), times the quantile of Student's t distribution
("The Probable Error of a Mean", Biometrika 1908) with two degrees of freedom per window without overlap; in short
tables, whose windows reach different steps, per window without overlap up to the step. Two gave the
best coverage on short series, see `docs/how-to/intervals.md`. Unlike intervals from many windows, these have no exact
guarantee.

Steps after the last one with an error are wider by the square root of their number, as the errors of a random walk
(`widening`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from femts.evaluation.constants import FEW, FEW_DISJOINT
from femts.evaluation.quantiles import ends_of


def are_few(windows: int, disjoint: int) -> bool:
    """Return whether `windows` errors, of which `disjoint` do not overlap, are too few for order statistics."""
    return windows < FEW and disjoint < FEW_DISJOINT


def widening(steps: NDArray[np.integer], known: int) -> NDArray[np.float64]:
    """Factors (S,) from the width of the step number `known`, from 1, to the widths of later `steps`, from 1, for which
    there are no errors: 1 for earlier ones."""
    return np.sqrt(np.maximum(1.0, steps / known))


def student_widths(
    errors: NDArray[np.floating], levels: Sequence[float], disjoint: int | NDArray[np.int64]
) -> NDArray[np.float64]:
    """Half-widths (K, S, C) of K `levels`, percent, from few errors (S, C, n), NaN where a target is missing.

    `disjoint` windows do not overlap, of all steps or by step (S,). They are NaN for a channel without errors.
    """
    from scipy.special import stdtrit

    count = (~np.isnan(errors)).sum(-1).astype(np.float64)
    squares = np.nansum(np.square(errors, dtype=np.float64), axis=-1)
    scale = _rising(np.divide(squares, count, out=np.zeros_like(count), where=count > 0), count)
    tails = np.array([ends_of(level)[1] for level in levels])
    return np.asarray(stdtrit(2 * np.atleast_1d(disjoint), tails[:, None])[..., None] * scale)


def _rising(squares: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean squares (S, C) of `count` errors each, non-decreasing in the step; NaN for a channel without errors."""
    from scipy.optimize import isotonic_regression

    steps, scale = np.arange(len(squares)), np.full(squares.shape, np.nan)
    for channel, observed in enumerate(count.T > 0):
        if observed.any():
            fit = isotonic_regression(squares[observed, channel], weights=count[observed, channel])
            known = np.sqrt(np.interp(steps, steps[observed], fit.x))
            scale[:, channel] = known * widening(steps + 1, int(steps[observed][-1]) + 1)
    return scale
