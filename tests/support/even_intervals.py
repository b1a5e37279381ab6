"""Intervals of one width for all windows, and what they cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from femts.data.batch import Batch
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.data.windows import Windows
from femts.evaluation.coverage import Bounds
from femts.evaluation.difficulty import Difficulty
from femts.evaluation.intervals import Intervals
from femts.evaluation.metrics.intervals import CRPS, BoundsPinball, Coverage, Width
from femts.evaluation.score_sums import ScoreSums
from femts.evaluation.values import Viewer
from femts.models.base import Forecasts


def even_intervals(levels: Sequence[float], half_widths: np.ndarray) -> Intervals:
    """Intervals of `half_widths` (K, S, C)."""
    return Intervals(tuple(levels), half_widths.astype(np.float32), 100, 100, Difficulty.even(1, half_widths.shape[2]))


class Covered:
    """Scores of the intervals of windows.

    Attributes:
        levels: K, percent.
        sums: sums by step.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.levels, self._crps = bounds.levels, CRPS(bounds.intervals.standard)
        preprocess = Preprocess(("",) * bounds.windows.n_targets, ("",), Scaler.even(bounds.windows.n_targets))
        self._kinds = {kind.kind: [kind(level) for level in self.levels] for kind in (Coverage, Width, BoundsPinball)}
        metrics = [*(each for several in self._kinds.values() for each in several), self._crps]
        self.sums = ScoreSums(metrics, Viewer(preprocess, bounds=bounds), "step", ("scaled",))

    def of(self, kind: str) -> np.ndarray:
        """`coverage`, `width` or `pinball`, (K, S, C)."""
        return np.stack([self.sums.scores(each, "scaled", groups=True, targets=True) for each in self._kinds[kind]])

    @property
    def crps(self) -> np.ndarray:
        """(S, C)."""
        return self.sums.scores(self._crps, "scaled", groups=True, targets=True)


def covering(made: Intervals, windows: Windows, learned: Sequence[float] = ()) -> Covered:
    """Coverage of `windows` by `made`, to be updated through its `sums`."""
    return Covered(Bounds(made, windows, learned, made.levels))


def covered(made: Intervals, forecast: torch.Tensor, target: torch.Tensor) -> Covered:
    """Coverage of windows (B, 1, 1) by `made`."""
    whole = covering(made, Windows(torch.zeros(len(target) + 1, 1), 1, 1))
    for some in torch.arange(len(target)).split(1000):
        whole.sums.update(Forecasts(forecast[some], None), Batch(target[some], future=target[some], number=some))
    return whole
