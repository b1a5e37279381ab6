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
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.evaluation.quantiles import ends_of, quantile_at

FEW, FEW_DISJOINT = 100, 20  # fewer windows than both are few; of a hundred errors, even 99 % is an order statistic


def are_few(windows: int, disjoint: int) -> bool:
    """True where order statistics of `windows` errors, of which `disjoint` overlap no other, are
    not to be relied on."""
    return windows < FEW and disjoint < FEW_DISJOINT


class Spread:
    """Float64 sums of squared errors, and of the widths of the quantiles `learned` that bound `levels`.

    Args:
        steps: S.
        channels: C.
        levels: K levels in percent.
        learned: quantiles that the model has learned.
    """

    def __init__(self, steps: int, channels: int, levels: Sequence[float], learned: Sequence[float] = ()) -> None:
        self._levels, self._learned, self.finite = tuple(levels), tuple(learned), True
        self._count, self._squares = torch.zeros(2, steps, channels, dtype=torch.float64)
        self._widths = torch.zeros(len(self._levels), steps, channels, dtype=torch.float64)

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units; see `femts.evaluation.evaluator.Accumulator`."""
        self.finite &= bool(forecast.isfinite().all())
        error = (forecast.float() - target.float()).cpu().double()
        observed = ~error.isnan()
        self._count += observed.sum(0)
        self._squares += error.square().nansum(0)
        for k, level in enumerate(self._levels if quantiles is not None else ()):
            assert quantiles is not None
            low, high = (quantile_at(quantiles, self._learned, end).cpu().double() for end in ends_of(level))
            self._widths[k] += ((high - low) / 2).where(observed, 0).sum(0)

    def half_widths(self, disjoint: int) -> NDArray[np.float32]:
        """Half-widths (K, S, C); of learned quantiles the corrections that make them as wide on average.

        They are infinite for a channel without any error.
        """
        from scipy.special import stdtrit

        count = self._count.numpy()
        scale = _rising(np.divide(self._squares.numpy(), count, out=np.zeros_like(count), where=count > 0), count)
        tails = np.array([ends_of(level)[1] for level in self._levels])
        widths = stdtrit(2 * disjoint, tails)[:, None, None] * scale
        learned = np.divide(self._widths.numpy(), count, out=np.zeros_like(widths), where=count > 0)
        return np.asarray(widths - learned, dtype=np.float32)


def _rising(squares: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roots of mean squares (S, C) of `count` errors each, rising with the step; infinite for a channel without any."""
    from sklearn.isotonic import IsotonicRegression

    steps, scale = np.arange(len(squares)), np.full(squares.shape, np.inf)
    for channel, observed in enumerate(count.T > 0):
        if observed.any():
            fit = IsotonicRegression(out_of_bounds="clip")
            fit.fit(steps[observed], squares[observed, channel], count[observed, channel])
            scale[:, channel] = np.sqrt(fit.predict(steps))
    return scale
