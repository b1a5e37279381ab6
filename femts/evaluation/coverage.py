"""Bounds of the prediction intervals of windows, and notes on their coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.data.describe import are, count
from femts.data.windows import Windows
from femts.evaluation.constants import MOST_MISSED
from femts.evaluation.few import are_few
from femts.evaluation.intervals import Intervals
from femts.models.base import Forecasts
from femts.text import quote


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
    counted = f"{count(windows, 'validation window')}, {disjoint} without overlap, {are(windows)}"
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

    def of(self, forecasts: Forecasts, batch: Batch) -> tuple[dict[float, tuple[Tensor, Tensor]], dict[float, Tensor]]:
        """Lower and upper bounds (B, S, C) float64 of each level around `forecasts`, in scaled units and within the
        domain, as in `predict`, NaN for channels without intervals; and which targets are inside, 0 or 1, NaN where
        missing."""
        assert batch.number is not None
        context = self.windows.context(batch.number.cpu())
        context = context._replace(series=self._numbers[context.series], of_members=forecasts.of_members)
        made = self.intervals.bounds(forecasts.points, context, forecasts.quantiles, self.learned, self.levels)
        limits, target = self.windows.limits(batch.number), batch.target.cpu()
        missing = torch.from_numpy(self.intervals.missing)
        reachable = (target if limits is None else limits.within(target)).double()
        unknown = missing | target.isnan()

        def within(bound: Tensor) -> Tensor:
            return (bound if limits is None else limits.clip(bound)).masked_fill(missing, torch.nan)

        # Targets are compared with the bounds before clipping, which rounds.
        inside = {
            level: ((low <= reachable) & (reachable <= high)).double().masked_fill(unknown, torch.nan)
            for level, (low, high) in made.items()
        }
        return {level: (within(low), within(high)) for level, (low, high) in made.items()}, inside
