"""Coverage and width of intervals, and scores of the quantiles that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.windows import Windows
from femts.evaluation.few import are_few
from femts.evaluation.metrics import mean_of_cells
from femts.evaluation.quantiles import conformal_bounds, ends_of

MOST_MISSED = 10.0  # points between a level and what is covered, beyond which it is said


def coverage_line(covered: Mapping[str, float]) -> str:
    """A line on the parts that intervals cover of the test part, by level in percent."""
    shares = ", ".join(f"{level} % cover {100 * share:.1f} %" for level, share in covered.items())
    return f"intervals: of the test part, {shares}"


def coverage_notes(covered: Mapping[str, float], part: str = "test") -> list[str]:
    """A note for each level in percent that misses by more than `MOST_MISSED` points what is covered of `part`."""
    notes = []
    for level, share in covered.items():
        above = 100 * share - float(level)
        if abs(above) > MOST_MISSED:
            size = "wide" if above > 0 else "narrow"
            notes.append(
                f"intervals of {level} % cover {100 * share:.1f} % of the {part} part: read them as too {size}"
            )
    return notes


def few_notes(windows: int, disjoint: int) -> list[str]:
    """A note where intervals come from too few windows, of which `disjoint` overlap no other, to be
    more than an estimate."""
    if windows == 0 or not are_few(windows, disjoint):  # none: they are the model's own
        return []
    counted = f"{windows} validation windows, {disjoint} without overlap, are"
    if windows == 1:
        counted = "one validation window is"
    return [f"intervals are an estimate: {counted} too few to calibrate on"]


class CoverageSums:
    """Float64 sums of what intervals cover; memory does not grow with the windows.

    Args:
        levels: K levels in percent, rising.
        half_widths: (K, S, C) in scaled units, as `Intervals.at` gives them.
        quantiles: those that the model has learned; then `half_widths` are their corrections.
        windows: the ones that are scored, which the evaluator hands on in their order, for the limits of their
            intervals; None for no limits.
        most: windows that are scored at most; None for all.
    """

    def __init__(
        self,
        levels: Sequence[float],
        half_widths: NDArray[np.float32],
        quantiles: Sequence[float] = (),
        windows: Windows | None = None,
        most: int | None = None,
    ) -> None:
        self.levels, self.half_widths, self.quantiles = tuple(levels), half_widths, tuple(quantiles)
        self._inside, self._beyond, self._spans = torch.zeros(3, *half_widths.shape, dtype=torch.float64)
        self._widths = torch.from_numpy(np.ascontiguousarray(half_widths))
        self._observed, self._absolute = torch.zeros(2, *half_widths.shape[1:], dtype=torch.float64)
        self.windows, self._done = windows, 0
        self._order = torch.empty(0) if windows is None else windows.spread(most)
        self._constant = not self.quantiles  # widths, of all windows

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """Add windows in scaled units: `forecast` and `target` (B, S, C), NaN where a target is
        missing; see `Accumulator`."""
        error = (forecast.float() - target.float()).abs_().cpu()
        observed = ~error.isnan()
        self._observed += observed.sum(0)
        self._absolute += error.double().nansum(0)
        limits = self.limits(len(forecast))
        if quantiles is None and limits is None:
            for k, width in enumerate(self._widths):
                self._inside[k] += (error <= width).sum(0)
                self._beyond[k] += (error.double() - width.double()).clamp_min_(0).nansum(0)
            return
        self._constant = False
        within = target.cpu() if limits is None else limits.within(target.cpu())
        error, target = (forecast.float().cpu() - within).abs(), target.cpu().double()
        for k, (lower, upper) in enumerate(self.bounds(forecast, quantiles)):
            inside = error <= self._widths[k] if quantiles is None else (lower <= within) & (within <= upper)
            if limits is not None:  # where those of `predict` end
                lower, upper = limits.clip(lower), limits.clip(upper)
            self._inside[k] += inside.sum(0)
            self._beyond[k] += torch.maximum(lower - target, target - upper).clamp_min_(0).nansum(0)
            self._spans[k] += (upper - lower).where(observed, 0).sum(0)

    def limits(self, windows: int) -> Limits | None:
        """Limits of the next `windows`; None where there are none."""
        index, self._done = self._order[self._done : self._done + windows], self._done + windows
        return None if self.windows is None else self.windows.limits(index)

    def bounds(self, forecast: Tensor, quantiles: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Lower and upper ends (B, S, C) of each level around `forecast`, float64, scaled units."""
        if quantiles is not None:
            yield from conformal_bounds(quantiles, self.quantiles, self.levels, self.half_widths)
            return
        middle = forecast.cpu().double()
        for width in self._widths.double():
            yield middle - width, middle + width

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Part of the targets inside the interval, (K, S, C); NaN where none was observed."""
        return np.asarray((self._inside / self._observed).numpy())

    @property
    def width(self) -> NDArray[np.float64]:
        """Mean width of the interval in scaled units, (K, S, C)."""
        if not self._constant:
            return np.asarray((self._spans / self._observed).numpy())
        return 2 * self.half_widths.astype(np.float64)

    @property
    def pinball(self) -> NDArray[np.float64]:
        """Mean pinball loss of the interval's two ends in scaled units, (K, S, C); lower is better.

        With alpha = 1 - level / 100, the ends are quantiles alpha / 2 and 1 - alpha / 2, and this
        is alpha / 4 times the interval score of Gneiting & Raftery, "Strictly Proper Scoring Rules,
        Prediction, and Estimation" (JASA 2007).
        """
        alpha = (1 - np.array(self.levels) / 100)[:, None, None]
        return np.asarray(alpha / 4 * self.width + (self._beyond / self._observed).numpy() / 2)

    @property
    def crps(self) -> NDArray[np.float64]:
        """Continuous ranked probability score in scaled units, (S, C), from the ends of all levels
        and the forecast as median.

        It is the integral over all quantiles of twice their pinball loss (Gneiting & Ranjan,
        "Comparing Density Forecasts Using Threshold- and Quantile-Weighted Scoring Rules", JBES
        2011, eq. 4). Here each quantile stands for those that are nearer to it than to its
        neighbours: a plain mean would count the tails, where levels crowd, several times.
        """
        tails = [0.5, *(ends_of(level)[0] for level in self.levels)]  # falling
        borders = [0.5, *((one + other) / 2 for one, other in pairwise(tails)), 0.0]
        shares = 2 * -np.diff(borders)  # of both sides
        median = (self._absolute / self._observed).numpy() / 2
        losses = np.concatenate([median[None], self.pinball])
        return np.asarray(2 * np.einsum("k,ksc->sc", shares, losses))

    def overall(self, levels: Sequence[float]) -> dict[str, dict[str, float]]:
        """`coverage` and mean `width` (scaled units) over all steps and channels, of each of `levels` that there is."""
        return {
            f"{level:g}": {
                name: float(mean_of_cells(values, self._observed.numpy(), (0, 1)))
                for name, values in (("coverage", inside), ("width", width))
            }
            for level, inside, width in zip(self.levels, self.coverage, self.width, strict=True)
            if level in levels
        }


class RawWidths:
    """Float64 sums of the widths of intervals in raw units, where there is no one factor from scaled ones.

    Args:
        covered: accumulator of the same windows, for the ends of the intervals.
        preprocess: between scaled and raw units.
    """

    def __init__(self, covered: CoverageSums, preprocess: Preprocess) -> None:
        self._covered, self._preprocess = covered, preprocess
        self._sums = torch.zeros(covered.half_widths.shape, dtype=torch.float64)
        self._count = torch.zeros(covered.half_widths.shape[1:], dtype=torch.float64)

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        """As `CoverageSums.add`."""
        observed, raw = ~target.isnan().cpu(), self._preprocess.inverse
        self._count += observed.sum(0)
        for k, (lower, upper) in enumerate(self._covered.bounds(forecast, quantiles)):
            self._sums[k] += (raw(upper) - raw(lower)).where(observed, 0).sum(0)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean width (K, S, C) over the windows with an observed target; NaN where none was."""
        return np.asarray((self._sums / self._count).numpy())
