"""Calibration of learned quantiles by conformalized quantile regression.

The interval of a level lies between the learned quantiles at its two ends, which are both moved outwards by a
correction, or inwards if it is negative: the ceil((n + 1) * level / 100)-th smallest of the n scores max(low - y, y -
high) on the validation split (Romano, Patterson & Candes, "Conformalized Quantile Regression", NeurIPS 2019). Coverage
has the same guarantee as for split-conformal intervals, however good the quantiles are, and the width adapts to each
window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.errors import UsageError, reads
from femts.models.base import ForecastModel, Forecasts
from femts.models.parts.quantiles import pinball, quantile_at


@reads("quantiles")
def check_quantiles(quantiles: Sequence[float] | float) -> tuple[float, ...]:
    """Distinct quantiles in the given order; UsageError unless all are numbers between 0 and 1."""
    several = quantiles if isinstance(quantiles, Iterable) and not isinstance(quantiles, str) else [quantiles]
    numbers: dict[float, None] = {}
    for quantile in several:
        if isinstance(quantile, bool) or not isinstance(quantile, (int, float, np.number)) or not 0 < quantile < 1:
            raise UsageError(f"Quantile '{quantile}' is not a number between 0 and 1; use numbers such as 0.1 or 0.9.")
        numbers[float(quantile)] = None
    if not numbers:
        raise UsageError("No quantile is given; use numbers such as 0.1 or 0.9.")
    return tuple(numbers)


def ends_of(level: float) -> tuple[float, float]:
    """The two quantiles that bound the central interval of `level` percent."""
    tail = (1 - Fraction(str(level)) / 100) / 2  # in floating point, those of 95 are not 0.025 and 0.975
    return float(tail), float(1 - tail)


def level_of(quantile: float) -> float:
    """Level in percent of the central interval bounded by `quantile`; 0 for the median."""
    return float(100 * abs(1 - 2 * Fraction(str(quantile))))


def conformity_scores(forecast: Tensor, learned: Sequence[float], level: float, target: Tensor) -> Tensor:
    """Distance of `target` (B, S, C) outside the quantiles that bound `level`; negative inside."""
    low, high = (quantile_at(forecast, learned, end).float() for end in ends_of(level))
    return torch.maximum(low - target, target - high)


def conformal_bounds(
    forecast: Tensor, learned: Sequence[float], levels: Sequence[float], corrections: Sequence[Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield lower and upper bounds (B, S, C), float64 on the CPU, level by level.

    Each interval contains the median and the previous interval. Without this, corrections of different levels could
    make bounds cross; widening only increases coverage.

    Args:
        forecast: quantiles (B, S, Q, C), increasing.
        learned: levels of the Q quantiles.
        levels: K levels in percent, increasing.
        corrections: (S, C) or (B, S, C) float64 for each level, by which both bounds are moved outwards.
    """
    lower = upper = quantile_at(forecast, learned, 0.5).cpu().double()
    for level, correction in zip(levels, corrections, strict=True):
        low, high = (quantile_at(forecast, learned, end).cpu().double() for end in ends_of(level))
        lower, upper = torch.minimum(lower, low - correction), torch.maximum(upper, high + correction)
        yield lower, upper


class PinballSums:
    """Float64 sums of the pinball loss of a model's quantiles, before calibration.

    Raises:
        UsageError: The model has no quantiles.
    """

    pools = True

    def __init__(self, model: ForecastModel) -> None:
        if not model.quantiles:
            raise UsageError("Metric 'pinball' requires a quantile model; set training.loss=pinball.")
        self.quantiles = model.quantiles
        self.sums = torch.zeros(2, dtype=torch.float64)  # losses, values

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows: `quantiles` (B, S, Q, C) and `target` (B, S, C), scaled, NaN where a target is missing."""
        target, quantiles = batch.target, forecasts.quantiles
        assert quantiles is not None
        losses = pinball(quantiles.float(), target.float(), self.quantiles).mean(-2)
        losses = losses.cpu() if losses.device.type == "mps" else losses  # MPS has no float64
        self.sums = self.sums.to(losses.device)
        self.sums[0] += losses.nansum(dtype=torch.float64)
        self.sums[1] += (~losses.isnan()).sum()

    def compute(self) -> dict[str, float]:
        return {"pinball": self.mean}

    @property
    def mean(self) -> float:
        """Mean over quantiles and values; NaN if nothing was added."""
        return float(self.sums[0] / self.sums[1])
