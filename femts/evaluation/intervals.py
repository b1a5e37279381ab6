"""Conformal intervals: as wide, for each step and channel, as the validation part says that forecasts err.

The half-width of a level is the ceil((n + 1) * level / 100)-th smallest of the n absolute
validation errors, those of missing targets left out, and infinite where they are too few. It covers
with at least that probability if the errors to come are exchangeable with these (Lei et al.,
"Distribution-Free Predictive Inference for Regression", JASA 2018). Errors of a series drift, so
what is covered is measured on the test part. Those of a model that has learned quantiles are in
`femts.evaluation.quantiles`, and those of few windows in `femts.evaluation.few`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import load, save
from torch import Tensor

from femts.data.windows import Windows
from femts.errors import RunFailure, UsageError
from femts.evaluation.evaluator import Accumulator, evaluate
from femts.evaluation.few import Spread, are_few
from femts.evaluation.quantiles import conformity_scores, ends_of
from femts.models.base import ForecastModel

LEVELS = (50.0, 80.0, 90.0, 95.0, 99.0)  # what is calibrated unasked
MOST_ERRORS = 2**27  # held at a time, 512 MiB; more take several passes over the windows


def check_levels(levels: Sequence[float] | float) -> tuple[float, ...]:
    """Levels in percent, each once and in the order given; UsageError for what is no number between 0 and 100."""
    several = levels if isinstance(levels, Iterable) and not isinstance(levels, str) else [levels]
    numbers: dict[float, None] = {}
    for level in several:
        if isinstance(level, bool) or not isinstance(level, (int, float, np.number)):
            raise UsageError(f"Level '{level}' is not a number; give percent between 0 and 100, such as 80 or 95.")
        if not 0 < level < 100:
            raise UsageError(f"Level {level:g} is not between 0 and 100; give percent, such as 80 or 95.")
        numbers[float(level)] = None
    if not numbers:
        raise UsageError("No level is named; give percent, such as 80 or 95.")
    return tuple(numbers)


def rank(level: float, windows: int) -> int:
    """Rank among the `windows` errors, in rising order, of the half-width of `level` percent; above
    `windows`, none is."""
    return math.ceil((windows + 1) * Fraction(str(level)) / 100)  # in floats, 20 * 0.95 may not be 19


def reachable(level: float, windows: int, disjoint: int) -> bool:
    """True where an interval of `level` percent is finite: few windows have one of Student's for every level."""
    return are_few(windows, disjoint) or rank(level, windows) <= windows


def refuse_unreachable(levels: Sequence[float], windows: int, disjoint: int) -> None:
    """UsageError for a level whose interval is infinite, because `windows` are too few for it."""
    for level in levels:
        if not reachable(level, windows, disjoint):
            highest = Fraction(100 * windows, windows + 1)
            raise UsageError(
                f"Level {level:g} cannot be calibrated on {windows} validation windows, as its interval would be "
                f"infinite; ask for at most {math.floor(highest)}, or bring more rows."
            )


def with_bounds(forecast: pd.DataFrame, bounds: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """`forecast` (steps, C) with `bounds`, (steps, C) each, beside its columns: `lo-80` as `NAME-lo-80`.

    Raises:
        UsageError: a column is called as a bound.
    """
    table = {}
    for c, name in enumerate(forecast.columns):
        table[name] = forecast[name]
        table |= {f"{name}-{bound}": values[:, c] for bound, values in bounds.items()}
    if len(table) < len(forecast.columns) * (1 + len(bounds)):
        raise UsageError(
            "A column of the data is called like a bound, such as NAME-lo-80; rename it to forecast with levels."
        )
    return pd.DataFrame(table, index=forecast.index)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Half-widths of the intervals around a forecast, S steps of C channels; corrections of
    quantiles where a model has some.

    Attributes:
        levels: K levels in percent, rising.
        half_widths: (K, S, C) float32, scaled units.
        windows: validation windows n behind each of them.
        disjoint: those of them that overlap no other; both 0 where the model has intervals of its own.
    """

    levels: tuple[float, ...]
    half_widths: NDArray[np.float32]
    windows: int
    disjoint: int

    @property
    def few(self) -> bool:
        """True where windows were too few for order statistics of their errors; see `femts.evaluation.few`."""
        return not self.own and are_few(self.windows, self.disjoint)

    @classmethod
    def of_model(cls, model: ForecastModel, steps: int, channels: int) -> Intervals:
        """Intervals of a model's own, between its `quantiles`: nothing corrects them."""
        return cls(model.levels, np.zeros((len(model.levels), steps, channels), dtype=np.float32), 0, 0)

    @property
    def own(self) -> bool:
        """True where they are the model's own, and nothing was calibrated."""
        return self.windows == 0

    @property
    def source(self) -> str:
        """Words on what they come from."""
        return "the model itself" if self.own else f"{self.windows} window{'s' * (self.windows > 1)}"

    @property
    def steps(self) -> int:
        """Longest horizon S that is calibrated."""
        return int(self.half_widths.shape[1])

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that these intervals and the forecast are, rising."""
        return tuple(sorted({0.5, *(end for level in self.levels for end in ends_of(level))}))

    def at(self, levels: Sequence[float], steps: int) -> NDArray[np.float32]:
        """Half-widths of the first `steps` steps in scaled units: (levels, steps, C).

        Raises:
            UsageError: a level or a horizon that is not calibrated; the text says which are.
        """
        if steps > self.steps:
            raise UsageError(
                f"Intervals are calibrated for {self.steps} steps, not for {steps}; ask for up to {self.steps}, "
                f"or run `femts calibrate RUN --pred-len {steps}`."
            )
        for level in levels:
            if level not in self.levels:
                calibrated = ", ".join(f"{each:g}" for each in self.levels)
                if self.own:
                    raise UsageError(f"This model has intervals of its own for {calibrated}, not for {level:g}.")
                remedy = f", for {self.windows} validation windows are too few for it; choose from {calibrated}"
                if reachable(level, self.windows, self.disjoint):
                    ends = " and ".join(f"{end:g}" for end in ends_of(level))
                    remedy = (
                        f"; choose from {calibrated}, or run `femts calibrate RUN --level {level:g}` (quantiles {ends})"
                    )
                raise UsageError(f"Level {level:g} is not calibrated{remedy}.")
        return self.half_widths[[self.levels.index(level) for level in levels], :steps]

    def to_bytes(self) -> bytes:
        """As safetensors; `intervals.safetensors`."""
        levels = np.array(self.levels, dtype=np.float64)
        windows = np.array([self.windows, self.disjoint], dtype=np.int64)
        return save({"levels": levels, "half_widths": np.ascontiguousarray(self.half_widths), "windows": windows})

    @classmethod
    def from_bytes(cls, content: bytes) -> Intervals:
        """Read what `to_bytes` wrote."""
        read = load(content)
        return cls(
            tuple(read["levels"].tolist()), read["half_widths"], int(read["windows"][0]), int(read["windows"][-1])
        )


class _Errors:
    """Keeps the absolute errors of some steps, or how far they are outside the quantiles `learned` that bound a level.

    (steps, C, n), so that those of a step and channel lie side by side.
    """

    def __init__(
        self, steps: slice, channels: int, windows: int, learned: Sequence[float], levels: Sequence[float]
    ) -> None:
        self.values = np.empty((steps.stop - steps.start, channels, windows), dtype=np.float32)
        self._steps, self._seen, self.finite = steps, 0, True
        self._learned, self._levels = learned, levels

    def add(self, x: Tensor, forecast: Tensor, target: Tensor, quantiles: Tensor | None = None) -> None:
        self.finite &= bool(forecast.isfinite().all())
        if quantiles is None:
            distance = (forecast.float() - target.float())[:, self._steps].abs_()
        else:
            distance = conformity_scores(
                quantiles[:, self._steps], self._learned, self._levels[0], target[:, self._steps].float()
            )
        error = distance.cpu().numpy()
        self.values[:, :, self._seen : self._seen + len(error)] = error.transpose(1, 2, 0)
        self._seen += len(error)


def _of_observed(
    errors: NDArray[np.float32], counts: NDArray[np.int64], levels: Sequence[float]
) -> NDArray[np.float32]:
    """Half-widths (levels, S, C) from errors (S, C, n) of which `counts` (S, C) are no NaN."""
    errors.sort(axis=-1)  # NaN last
    ranks = np.array([[rank(level, n) for n in range(errors.shape[-1] + 1)] for level in levels])[:, counts]
    half_widths = np.take_along_axis(errors[None], np.minimum(ranks, errors.shape[-1])[..., None] - 1, axis=-1)[..., 0]
    return np.where(ranks <= counts, half_widths, np.inf).astype(np.float32)


def passes(windows: int, steps: int, channels: int, most: int = MOST_ERRORS, kinds: int = 1) -> int:
    """Number of times that `calibrate` has to forecast all windows to hold at most `most` errors at a time.

    `kinds` of errors are 1, or with quantiles as many as levels.
    """
    return math.ceil(steps / _steps_at_a_time(windows, kinds * channels, most))


def _steps_at_a_time(windows: int, channels: int, most: int) -> int:
    return max(1, most // (windows * channels))


def scored_windows(model: ForecastModel, windows: Windows) -> tuple[int, int]:
    """Number of `windows` that `model` is scored on, and of those of them that overlap no other."""
    count = len(windows.spread(model.most_windows))
    return count, min(count, windows.disjoint)


def calibrate(
    model: ForecastModel,
    windows: Windows,
    levels: Sequence[float] = LEVELS,
    batch_size: int = 256,
    most: int = MOST_ERRORS,
    also: Sequence[Accumulator] = (),
) -> tuple[Intervals, dict[str, float | int]]:
    """Intervals from the errors of `model` over `windows`, and its scores there.

    A model that has intervals of its own keeps them. Those of many windows are exact, a block of
    steps at a time; for few see `femts.evaluation.few`.

    Args:
        model: forecaster on the device of `windows`.
        windows: those of the validation part, as long as the horizon to calibrate.
        levels: percent; those for which there are too few windows are left out, as their interval is infinite.
        batch_size: windows at a time.
        also: further sums, which see every window once.
        most: errors held at a time; each further block costs another pass over the windows.

    Raises:
        RunFailure: forecasts are not finite.
    """
    (count, disjoint), steps, channels = scored_windows(model, windows), windows.pred_len, windows.targets
    if model.levels:
        return Intervals.of_model(model, steps, channels), evaluate(model, windows, batch_size, also=also)
    if are_few(count, disjoint):
        every = tuple(sorted(set(levels)))
        spread = Spread(steps, channels, every, model.quantiles)
        scores = evaluate(model, windows, batch_size, also=[spread, *also])
        _check_finite(spread.finite)
        return Intervals(every, spread.half_widths(disjoint), count, disjoint), scores
    finite = tuple(sorted(level for level in set(levels) if rank(level, count) <= count))
    half_widths = np.empty((len(finite), steps, channels), dtype=np.float32)
    kinds = [(level,) for level in finite] if model.quantiles else [finite]  # levels that share their errors
    block = _steps_at_a_time(count, channels * len(kinds), most)
    for first in range(0, steps, block):
        some = slice(first, min(first + block, steps))
        errors = [_Errors(some, channels, count, model.quantiles, levels) for levels in kinds]
        scores = evaluate(model, windows, batch_size, also=[*errors, *(also if first == 0 else ())])
        _check_finite(all(kind.finite for kind in errors))
        by_kind = [_smallest(kind.values, levels, count) for kind, levels in zip(errors, kinds, strict=True)]
        half_widths[:, some] = np.concatenate(by_kind)
    return Intervals(finite, half_widths, count, disjoint), scores


def _check_finite(finite: bool) -> None:
    if not finite:
        raise RunFailure(
            "Intervals cannot be calibrated: forecasts of the validation part are not finite; train again."
        )


def _smallest(errors: NDArray[np.float32], levels: Sequence[float], count: int) -> NDArray[np.float32]:
    """Half-widths (levels, S, C) from `errors` (S, C, count), which are put in another order."""
    counts = (~np.isnan(errors)).sum(-1)
    if counts.min() < count:
        return _of_observed(errors, counts, levels)
    places = [rank(level, count) - 1 for level in levels]
    errors.partition(places, axis=-1)
    return np.moveaxis(errors[..., places], -1, 0)
