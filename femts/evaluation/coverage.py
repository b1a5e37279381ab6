"""Coverage and width of prediction intervals, and scores of the quantiles that bound them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.windows import Windows
from femts.evaluation.few import are_few
from femts.evaluation.intervals import Intervals
from femts.evaluation.metrics import mean_of_cells
from femts.evaluation.quantiles import ends_of
from femts.models.base import Forecasts
from femts.text import quote

MOST_MISSED = 10.0  # percentage points between level and coverage above which a note is shown


def coverage_line(covered: Mapping[str, float]) -> str:
    """One-line summary of test coverage by level in percent."""
    shares = ", ".join(f"{level} % cover {100 * share:.1f} %" for level, share in covered.items())
    return f"intervals on the test split: {shares}"


def coverage_notes(covered: Mapping[str, float], part: str = "test") -> list[str]:
    """Notes for the levels in percent whose coverage on `part` misses them by more than `MOST_MISSED` points."""
    notes = []
    for level, share in covered.items():
        above = 100 * share - float(level)
        if abs(above) > MOST_MISSED:
            size = "wide" if above > 0 else "narrow"
            notes.append(
                f"intervals of {level} % cover {100 * share:.1f} % of the {part} split, so they are too {size}"
            )
    return notes


def few_notes(windows: int, disjoint: int) -> list[str]:
    """Note if intervals are only an estimate, because of too few windows, of which `disjoint` do not overlap."""
    if windows == 0 or not are_few(windows, disjoint):  # 0: the model's own intervals
        return []
    counted = f"{windows} validation windows, {disjoint} without overlap, are"
    if windows == 1:
        counted = "one validation window is"
    return [f"intervals are an estimate: {counted} too few to calibrate on"]


def missing_notes(names: Sequence[str]) -> list[str]:
    """Note if the targets `names` have no intervals, because they have no values in the validation split."""
    if not names:
        return []
    listed = ", ".join(quote(name) for name in names)
    return [f"no intervals for {listed}: without values in the validation split, there are no errors to calibrate on"]


def interval_notes(intervals: Intervals, targets: Sequence[str]) -> list[str]:
    """Notes for users of the `intervals` of `targets`."""
    return [*few_notes(intervals.windows, intervals.disjoint), *missing_notes(intervals.without(targets))]


class Bounds:
    """Bounds of the intervals of windows.

    Args:
        intervals: intervals of the scored model.
        windows: windows to score.
        learned: quantiles of a quantile model.
        levels: percent, in addition to the standard ones.
    """

    def __init__(
        self, intervals: Intervals, windows: Windows, learned: Sequence[float] = (), levels: Sequence[float] = ()
    ) -> None:
        self.intervals, self.windows, self.learned = intervals, windows, tuple(learned)
        self.levels = tuple(sorted({*intervals.standard, *levels}))
        self._numbers = intervals.numbers(windows.names)

    def of(self, forecasts: Forecasts, batch: Batch) -> tuple[list[tuple[Tensor, Tensor]], Limits | None]:
        """Lower and upper bounds (B, S, C) float64 of each level around `forecasts`, scaled units, and their limits."""
        assert batch.number is not None
        context = self.windows.context(batch.number.cpu())
        context = context._replace(series=self._numbers[context.series])
        made = self.intervals.bounds(forecasts.points, context, forecasts.quantiles, self.learned, self.levels)
        return list(made.values()), self.windows.limits(batch.number)


class CoverageSums:
    """Running sums of coverage and interval scores in float64; memory does not grow with the number of windows.

    Args:
        bounds: bounds of windows at least as long as the forecasts.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.levels, self._bounds = bounds.levels, bounds
        self.pools = len(bounds.windows.names) > 1  # several series, each in scaled units of its own
        shape = (len(self.levels), bounds.windows.pred_len, bounds.windows.n_targets)
        self._inside, self._beyond, self._spans = torch.zeros(3, *shape, dtype=torch.float64)
        self._observed, self._absolute = torch.zeros(2, *shape[1:], dtype=torch.float64)
        self._missing = torch.from_numpy(bounds.intervals.missing)

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows in scaled units: `forecast` and `target` (B, S, C), NaN where a target is missing; see `Metric`.
        Channels without intervals are skipped."""
        forecast, target, _quantiles = forecasts.points, batch.target, forecasts.quantiles
        bounds, limits = self._bounds.of(forecasts, batch)
        target = target.cpu().masked_fill(self._missing, torch.nan)
        within = (target if limits is None else limits.within(target)).double()
        target = target.double()
        observed = ~target.isnan()
        self._observed += observed.sum(0)
        self._absolute += (forecast.cpu().double() - target).abs_().nansum(0)
        for k, (lower, upper) in enumerate(bounds):
            self._inside[k] += ((lower <= within) & (within <= upper)).sum(0)
            if limits is not None:  # as in `predict`
                lower, upper = limits.clip(lower), limits.clip(upper)
            self._beyond[k] += torch.maximum(lower - target, target - upper).clamp_min_(0).nansum(0)
            self._spans[k] += (upper - lower).where(observed, 0).sum(0)

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Fraction of the targets inside the interval, (K, S, C); NaN if none was observed."""
        return np.asarray((self._inside / self._observed).numpy())

    @property
    def width(self) -> NDArray[np.float64]:
        """Mean width of the interval in scaled units, (K, S, C)."""
        return np.asarray((self._spans / self._observed).numpy())

    @property
    def pinball(self) -> NDArray[np.float64]:
        """Mean pinball loss of both bounds in scaled units, (K, S, C); lower is better.

        With alpha = 1 - level / 100, the bounds are quantiles alpha / 2 and 1 - alpha / 2, and the loss is alpha / 4
        times the interval score of Gneiting & Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation"
        (JASA 2007).
        """
        alpha = (1 - np.array(self.levels) / 100)[:, None, None]
        return np.asarray(alpha / 4 * self.width + (self._beyond / self._observed).numpy() / 2)

    @property
    def crps(self) -> NDArray[np.float64]:
        """Continuous ranked probability score in scaled units, (S, C), from the bounds of the standard levels and the
        forecast as median.

        It is the integral over all quantiles of twice their pinball loss (Gneiting & Ranjan, "Comparing Density
        Forecasts Using Threshold- and Quantile-Weighted Scoring Rules", JBES 2011, eq. 4). Each quantile is weighted by
        the range of probabilities closest to it; a plain mean would overweight the tails, where levels are dense.
        """
        standard = self._bounds.intervals.standard
        tails = [0.5, *(ends_of(level)[0] for level in standard)]  # decreasing
        borders = [0.5, *((one + other) / 2 for one, other in pairwise(tails)), 0.0]
        shares = 2 * -np.diff(borders)  # both tails
        median = (self._absolute / self._observed).numpy() / 2
        places = [self.levels.index(level) for level in standard]
        losses = np.concatenate([median[None], self.pinball[places]])
        return np.asarray(2 * np.einsum("k,ksc->sc", shares, losses))

    def overall(self, levels: Sequence[float]) -> dict[str, dict[str, float]]:
        """`coverage` and mean `width` (scaled units) over all steps and channels, for those of `levels` that are
        available."""
        return {
            f"{level:g}": {
                name: float(mean_of_cells(values, self._observed.numpy(), (0, 1)))
                for name, values in (("coverage", inside), ("width", width))
            }
            for level, inside, width in zip(self.levels, self.coverage, self.width, strict=True)
            if level in levels
        }


class RawWidths:
    """Running sums of interval widths in raw units, for transforms without a constant factor from scaled units.

    Args:
        bounds: bounds of the windows.
        preprocess: conversion between scaled and raw units.
    """

    def __init__(self, bounds: Bounds, preprocess: Preprocess) -> None:
        self._bounds, self._preprocess = bounds, preprocess
        shape = (len(bounds.levels), bounds.windows.pred_len, bounds.windows.n_targets)
        self._sums, self._count = torch.zeros(shape, dtype=torch.float64), torch.zeros(shape[1:], dtype=torch.float64)

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """As `CoverageSums.update`."""
        _forecast, target, _quantiles = forecasts.points, batch.target, forecasts.quantiles
        observed, raw = ~target.isnan().cpu(), self._preprocess.inverse
        self._count += observed.sum(0)
        for k, (lower, upper) in enumerate(self._bounds.of(forecasts, batch)[0]):
            self._sums[k] += (raw(upper) - raw(lower)).where(observed, 0).sum(0)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean width (K, S, C) over the windows with an observed target; NaN if there are none."""
        return np.asarray((self._sums / self._count).numpy())
