"""Scores of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from femts.evaluation.metric import Metric
from femts.evaluation.quantiles import ends_of
from femts.evaluation.values import Values


class OfLevel(Metric):
    """A metric of the intervals of one level.

    Args:
        level: percent.
    """

    kind: ClassVar[str]
    selects = False

    def __init__(self, level: float) -> None:
        self.level, self.name = level, f"{self.kind}-{level:g}"


class Coverage(OfLevel):
    """Fraction of the actual values inside the interval."""

    kind, view, unitless = "coverage", "scaled", True

    def terms(self, values: Values) -> tuple[Tensor, None]:
        assert values.inside is not None
        return values.inside[self.level], None


class Width(OfLevel):
    """Mean width of the interval."""

    kind = "width"

    def terms(self, values: Values) -> tuple[Tensor, None]:
        assert values.bounds is not None
        low, high = values.bounds[self.level]
        return (high - low).masked_fill(values.actual.isnan(), torch.nan), None


class BoundsPinball(OfLevel):
    """Mean pinball loss of both bounds; lower is better.

    With alpha = 1 - level / 100, the bounds are quantiles alpha / 2 and 1 - alpha / 2, and the loss is alpha / 4 times
    the interval score of Gneiting & Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation" (JASA 2007).
    """

    kind = "pinball"

    def terms(self, values: Values) -> tuple[Tensor, None]:
        return bounds_loss(values, self.level), None


class CRPS(Metric):
    """Continuous ranked probability score from the bounds of several levels and the forecast as median.

    It is the integral over all quantiles of twice their pinball loss (Gneiting & Ranjan, "Comparing Density Forecasts
    Using Threshold- and Quantile-Weighted Scoring Rules", JBES 2011, eq. 4). Each quantile is weighted by the range of
    probabilities closest to it; a plain mean would overweight the tails, where levels are dense.

    Args:
        levels: percent, increasing.
    """

    name, selects = "crps", False

    def __init__(self, levels: tuple[float, ...]) -> None:
        self.levels = levels
        tails = [0.5, *(ends_of(level)[0] for level in levels)]  # decreasing
        borders = [0.5, *((one + other) / 2 for one, other in pairwise(tails)), 0.0]
        self._shares = (2 * -np.diff(borders)).tolist()  # both tails

    def terms(self, values: Values) -> tuple[Tensor, None]:
        median, *others = self._shares
        loss = median * values.error.abs() / 2
        for share, level in zip(others, self.levels, strict=True):
            loss = loss + share * bounds_loss(values, level)
        return 2 * loss, None


def bounds_loss(values: Values, level: float) -> Tensor:
    """Mean pinball loss (B, P, T) of both bounds of the interval of `level` percent, NaN where missing."""
    assert values.bounds is not None
    (low, high), actual, alpha = values.bounds[level], values.actual, 1 - level / 100
    beyond = torch.maximum(low - actual, actual - high).clamp_min(0)
    return alpha / 4 * (high - low) + beyond / 2


def interval_metrics(levels: Sequence[float]) -> list[Metric]:
    """Coverage, width and pinball loss of the intervals of each of `levels`, percent."""
    return [kind(level) for level in levels for kind in (Coverage, Width, BoundsPinball)]
