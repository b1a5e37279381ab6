"""Joint errors of all steps and series at the same forecast origin, from which sample paths are drawn.

Intervals hold for single values: a sum over steps or series has narrower or wider ones, depending on how errors move
together. Errors of whole validation windows, taken together, keep that dependence without a model of it (a bootstrap of
residual vectors, as in Panagiotelis et al., "Probabilistic Forecast Reconciliation", EJOR 2023). Each error is relative to
the half-width of the interval of its window, so that paths have the width of the window at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.evaluation.constants import MANY_ORIGINS, MOST_JOINT, MOST_ORIGINS, SMALLEST_UNIT
from femts.models.base import Forecasts
from femts.models.parts.quantiles import quantile_at

if TYPE_CHECKING:
    from femts.evaluation.intervals import Intervals

MIDDLE = (0.1, 0.5, 0.9)  # quantiles whose distances are the unit of the errors of a quantile model


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Errors at K forecast origins of G series, S steps and C channels, in order of time.

    Attributes:
        relative: (K, G, S, C) float16, signed, relative to `Intervals.units`; 0 for a channel without errors.
        disjoint: number of origins whose forecasts do not overlap.
    """

    relative: NDArray[np.float16]
    disjoint: int

    def of(self, series: int) -> JointErrors:
        """The errors of one series."""
        return replace(self, relative=self.relative[:, [series]])

    def draw(self, series: Tensor, steps: int, random: np.random.Generator) -> NDArray[np.float64]:
        """Draw the relative errors of one sample path.

        With `MANY_ORIGINS` or more, they are those of a random origin. With fewer, they are normal with the second
        moments of all origins around the `bias`, and as in Student's t distribution divided by a common random scale with
        one degree of freedom for each origin without overlap, at least two.

        Args:
            series: (B,) numbers of the series; -1 for a new one, which gets the errors of a random other.
            steps: number of steps, at most S.
            random: source of randomness; in the same state, other series get the errors of the same origins.

        Returns:
            (B, steps, C).
        """
        count, known = self.relative.shape[:2]
        freedom = max(2, self.disjoint)
        origin = random.integers(count)  # what all series have in common is drawn before what depends on their number
        weights = random.standard_normal(count) * np.sqrt(freedom / random.chisquare(freedom) / count)
        numbers = series.numpy()
        numbers = np.where(numbers < 0, random.integers(known, size=len(numbers)), numbers)
        if count >= MANY_ORIGINS:
            return self.relative[origin, numbers, :steps].astype(np.float64)
        errors = self.relative[:, numbers, :steps].astype(np.float32)
        drawn = np.tensordot(weights.astype(np.float32), errors - self.bias, axes=1)
        return np.asarray(drawn + self.bias, dtype=np.float64)

    @cached_property
    def bias(self) -> NDArray[np.float32]:
        """Mean (C,) over all origins, series and steps, shrunk towards 0 by its uncertainty."""
        by_origin = self.relative.mean(axis=(1, 2), dtype=np.float64)
        mean = by_origin.mean(axis=0)
        noise = by_origin.var(axis=0) / max(1, self.disjoint - 1)
        share = np.maximum(0.0, 1 - noise / np.maximum(mean**2, np.finfo(np.float64).tiny))
        return np.asarray(mean * share * (self.disjoint > 1), dtype=np.float32)


class _Part(NamedTuple):
    """Some windows: their numbers, those of their origins, forecasts and errors, quantiles, and those of members, if there are."""

    number: Tensor
    origin: Tensor
    points: Tensor
    errors: Tensor
    quantiles: Tensor | None
    of_members: Tensor | None


class OriginErrors:
    """Collects the forecasts and targets of some origins while a model is scored; `made` gives their `JointErrors`.

    Args:
        windows: windows that are scored.
        index: numbers of those that are scored, in order.
        learned: quantiles of a quantile model.
    """

    def __init__(self, windows: Windows, index: Tensor, learned: Sequence[float] = ()) -> None:
        self.windows, self.learned = windows, tuple(learned)
        origins, place, count = np.unique(windows.origins(index).numpy(), return_inverse=True, return_counts=True)
        shape = len(windows.names), windows.pred_len, windows.n_targets
        most = int(np.clip(MOST_JOINT // int(np.prod(shape)), 1, MOST_ORIGINS))
        often = np.flatnonzero(2 * count >= count.max())  # others have errors of few series
        kept = often[np.unique(np.linspace(0, len(often) - 1, most).round().astype(int))]
        number = np.full(len(origins), -1)
        number[kept] = np.arange(len(kept))
        self.origin = torch.from_numpy(number)[place]  # (n,) of each scored window, -1 for those left out
        self.count, self.disjoint = len(kept), _disjoint(origins[kept], windows.pred_len)
        self._seen, self._index, self._parts = 0, index, list[_Part]()

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        """Add windows, in scaled units."""
        into = slice(self._seen, self._seen + len(forecasts.points))
        self._seen = into.stop
        chosen = self.origin[into] >= 0
        if not chosen.any():
            return
        some = chosen.to(forecasts.points.device)
        points, target = forecasts.points[some].float().cpu(), batch.target[some][:, : forecasts.points.shape[1]]
        errors = target.float().cpu() - points
        quantiles = of_members = None
        if forecasts.quantiles is not None:
            middle = [quantile_at(forecasts.quantiles[some], self.learned, each) for each in MIDDLE]
            quantiles = torch.stack(middle, dim=2).float().cpu()
        if forecasts.of_members is not None:
            of_members = forecasts.of_members[some].float().cpu()
        self._parts.append(
            _Part(self._index[into][chosen], self.origin[into][chosen], points, errors, quantiles, of_members)
        )

    def made(self, intervals: Intervals) -> JointErrors:
        """The errors relative to the units of `intervals`."""
        windows = self.windows
        shape = self.count, len(windows.names), windows.pred_len, windows.n_targets
        relative = np.full(shape, np.nan, dtype=np.float32)
        for part in self._parts:
            context = windows.context(part.number)._replace(of_members=part.of_members)
            below, above = intervals.units(part.points, context, part.quantiles, MIDDLE)
            unit = torch.where(part.errors < 0, below, above).clamp_min(SMALLEST_UNIT)
            into = part.origin.numpy(), windows.series_of(part.number).cpu().numpy()
            relative[(*into, slice(part.points.shape[1]))] = part.errors / unit
        for axis in (0, 2, 1):  # missing ones are those of another origin, step or series
            relative = _filled(relative, axis)
        largest = np.finfo(np.float16).max
        return JointErrors(
            np.nan_to_num(relative, copy=False).clip(-largest, largest).astype(np.float16), self.disjoint
        )


def _disjoint(origins: NDArray[np.int64], steps: int) -> int:
    """Largest number of increasing `origins` that are at least `steps` apart."""
    count, last = 0, None
    for origin in origins.tolist():
        if last is None or origin >= last + steps:
            count, last = count + 1, origin
    return count


def _filled(values: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """`values` with NaN replaced by the last value before it along `axis`, or at its start by the first one after."""
    for flip in (False, True):
        missing = np.isnan(values)
        if not missing.any():
            return values
        along = np.moveaxis(np.flip(values, axis) if flip else values, axis, 0)
        lost = np.isnan(along)
        shape = (-1, *[1] * (along.ndim - 1))
        last = np.maximum.accumulate(np.where(lost, 0, np.arange(len(along)).reshape(shape)), axis=0)
        made = np.moveaxis(np.take_along_axis(along, last, axis=0), 0, axis)
        values = np.flip(made, axis) if flip else made
    return values
