"""Calibration of prediction intervals on the errors of a model on the validation split."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.errors import RunFailure
from femts.evaluation.constants import GRID, LEVELS, MOST_NUMBERS, SAMPLED_ERRORS
from femts.evaluation.difficulty import (
    CONSTANT,
    LEVEL,
    RECENT,
    Difficulty,
    Sample,
    choose_kinds,
    estimate,
    relative_level,
)
from femts.evaluation.evaluator import evaluate
from femts.evaluation.few import are_few, student_widths
from femts.evaluation.intervals import Intervals, rank
from femts.evaluation.joint import OriginErrors
from femts.evaluation.metric import Collector
from femts.evaluation.quantiles import conformity_scores, ends_of, level_of
from femts.models.base import MEMBER_QUANTILES, ForecastModel, Forecasts
from femts.models.parts.quantiles import quantile_at
from femts.plugins import Registry

Floats = NDArray[np.float32]


def passes(windows: int, steps: int, channels: int, most: int = MOST_NUMBERS, learned: int = 0) -> int:
    """Number of times that `calibrate` has to forecast all windows to hold at most `most` numbers in memory.

    `learned` is the number of levels for a quantile model, otherwise 0.
    """
    return math.ceil(steps / _steps_at_a_time(windows, channels, most, learned))


def _steps_at_a_time(windows: int, channels: int, most: int, learned: int) -> int:
    return max(1, most // (windows * channels * (2 + learned)))


CONFORMAL = "conformal"
HalfWidths = Callable[[Floats, Sequence[float], int], NDArray[np.floating]]
INTERVALS: Registry[HalfWidths] = Registry("interval method")
register_intervals = INTERVALS.register
"""Decorator that registers a function for half-widths of intervals under a name for `training.intervals`.

The function is called with validation errors (S, C, n) of S steps, C channels and n windows, NaN where a target is
missing, increasing levels in percent, and the number of windows without overlap. It returns half-widths (levels, S,
C) and may modify the errors, which are absolute errors in scaled units divided by their difficulty. For quantile
models, it is called with a single level and the distances of targets outside of its quantiles, negative inside; both
ends of the interval are moved outwards by the result.
"""


def usual_levels(model: ForecastModel) -> tuple[float, ...]:
    """Levels calibrated by default. Quantile models have fewer, because their quantiles interpolate between them."""
    return LEVELS if model.quantiles else GRID


def scored_windows(model: ForecastModel, windows: Windows) -> tuple[int, int]:
    """Number of `windows` that `model` is scored on, and of those without overlap."""
    count = len(windows.subsample(model.most_windows))
    return count, min(count, windows.disjoint)


def calibrate(
    model: ForecastModel,
    windows: Windows,
    levels: Sequence[float] | None = None,
    batch_size: int = 256,
    most: int = MOST_NUMBERS,
    also: Sequence[Collector] = (),
    method: str = "conformal",
) -> tuple[Intervals, dict[str, float | int]]:
    """Calibrate intervals on the errors of `model` over `windows`, and score the model on them.

    A model with intervals of its own keeps them. With many windows, half-widths are order statistics, computed for a
    block of steps at a time; for few windows see `femts.evaluation.few`. Those of a mean are averaged with those between
    the quantiles of its members, if it has them, which are corrected with many windows only ("Intervals of a mean",
    results/trials.md).

    Args:
        model: model on the device of `windows`.
        windows: windows of the validation split at the horizon to calibrate.
        levels: percent, `usual_levels` by default; levels that need more windows are omitted.
        batch_size: windows per batch.
        also: further sums, updated with each window once.
        most: numbers held in memory; each further block of steps is another pass over the windows.
        method: registered name of the function for half-widths.

    Returns:
        The intervals, and the scores.

    Raises:
        RunFailure: Forecasts are not finite.
    """
    (count, disjoint), steps, channels = scored_windows(model, windows), windows.pred_len, windows.n_targets
    joint = OriginErrors(windows, windows.subsample(model.most_windows), model.quantiles)
    if model.levels:
        own = Intervals.uncorrected(model.levels, steps, channels)
        scores = evaluate(model, windows, batch_size, also=[joint, *also])
        return replace(own, joint=joint.made(own)), scores
    few = method == CONFORMAL and are_few(count, disjoint)
    finite = tuple(sorted(level for level in set(levels or usual_levels(model)) if few or rank(level, count) <= count))
    kinds = [_Kind(finite, model.quantiles)]
    if model.averages_quantiles and not few:
        highest = [level for level in finite if level in LEVELS or level > LEVELS[-1]]
        kinds.append(_Kind(tuple(highest or finite), MEMBER_QUANTILES, of_members=True))
    widths = [np.empty((len(kind.levels), steps, channels), dtype=np.float32) for kind in kinds]
    block = _steps_at_a_time(count, channels, most, sum(kind.arrays for kind in kinds) - 2)
    difficulties = list[tuple[Difficulty, Difficulty]]()
    index = windows.subsample(model.most_windows)
    for first in range(0, steps, block):
        some = slice(first, min(first + block, steps))
        every = [_Held(some, channels, count, kind, few) for kind in kinds]
        scores = evaluate(model, windows, batch_size, also=[*every, *((joint, *also) if first == 0 else ())])
        if not every[0].finite:
            raise RunFailure(
                "Intervals cannot be calibrated: forecasts on the validation split are not finite; train again."
            )
        difficulties = difficulties or [_difficulty(held, windows, index) for held in every]
        independent = disjoint, np.minimum(windows.disjoint_by_step[some], count)
        for held, into, (_, dividing) in zip(every, widths, difficulties, strict=True):
            into[:, some] = _half_widths(held, windows, index, independent, dividing, INTERVALS[method])
    names = windows.names if len(windows.names) > 1 else ("",)  # a single series matches any name
    intervals, *others = (
        Intervals(kind.levels, made, count, disjoint, difficulty, names)
        for kind, made, (difficulty, _) in zip(kinds, widths, difficulties, strict=True)
    )
    if model.averages_quantiles and few:
        others = [Intervals.uncorrected([level_of(q) for q in MEMBER_QUANTILES if q > 0.5], steps, channels)]
    intervals = replace(intervals, of_members=others[0] if others else None)
    return replace(intervals, joint=joint.made(intervals)), scores


class _Kind(NamedTuple):
    """What is calibrated.

    Attributes:
        levels: K, percent.
        quantiles: levels of the quantiles that are corrected; empty for half-widths around the points.
        of_members: whether these quantiles are `Forecasts.of_members`.
    """

    levels: tuple[float, ...]
    quantiles: tuple[float, ...]
    of_members: bool = False

    @property
    def arrays(self) -> int:
        """Number of arrays (steps, C, n) that are held."""
        return 2 + len(self.levels) * bool(self.quantiles)


class _Held:
    """Errors of some steps of n windows; `update` has the signature of a metric.

    Attributes:
        steps: slice of the steps.
        levels: K, percent.
        few: whether there are too few windows for order statistics.
        errors: (steps, C, n) float32, absolute; windows last, so that the errors of a step and channel are contiguous.
        forecasts: (steps, C, n) float32.
        learned: (K, steps, C, n) float32 for a quantile model: distance of each target outside of the quantiles that
            bound a level or, with `few` windows, half the distance between these. None for other models.
        finite: whether all forecasts are finite.
    """

    def __init__(self, steps: slice, channels: int, windows: int, kind: _Kind, few: bool) -> None:
        shape = (steps.stop - steps.start, channels, windows)
        self.errors, self.forecasts = np.empty((2, *shape), dtype=np.float32)
        self.learned = np.empty((len(kind.levels), *shape), dtype=np.float32) if kind.quantiles else None
        self.steps, self.levels, self.few, self.finite = steps, kind.levels, few, True
        self._kind, self._quantiles, self._seen = kind, kind.quantiles, 0

    def update(self, forecasts: Forecasts, batch: Batch) -> None:
        forecast, target = forecasts.points, batch.target
        quantiles = forecasts.of_members if self._kind.of_members else forecasts.quantiles
        self.finite &= bool(forecast.isfinite().all())
        forecast, target = forecast[:, self.steps].float(), target[:, self.steps].float()
        into = slice(self._seen, self._seen + len(forecast))
        self._seen = into.stop
        self.errors[..., into] = _windows_last(forecast - target)
        np.abs(self.errors[..., into], out=self.errors[..., into])
        self.forecasts[..., into] = _windows_last(forecast)
        if quantiles is None or self.learned is None:
            return
        quantiles = quantiles[:, self.steps]
        for level, into_level in zip(self.levels, self.learned, strict=True):
            if self.few:
                low, high = (quantile_at(quantiles, self._quantiles, end).float() for end in ends_of(level))
                into_level[..., into] = _windows_last(((high - low) / 2).masked_fill(target.isnan(), torch.nan))
            else:
                into_level[..., into] = _windows_last(conformity_scores(quantiles, self._quantiles, level, target))


def _windows_last(values: Tensor) -> Floats:
    """Convert (B, S, C) to an array (S, C, B)."""
    return np.asarray(values.permute(1, 2, 0).cpu().numpy())


def _difficulty(held: _Held, windows: Windows, index: Tensor) -> tuple[Difficulty, Difficulty]:
    """Estimate the difficulty from the `held` errors of the windows `index`; see `estimate`.

    For quantile models it depends only on the series, because the width of learned quantiles covers the rest.
    """
    stride = math.ceil(held.errors.size / SAMPLED_ERRORS)
    between = stride * max(1, round(len(windows) / len(index)))  # if a part of the windows is scored
    context = windows.context(index[::stride])
    errors, forecasts = (each[..., ::stride].transpose(2, 0, 1) for each in (held.errors, held.forecasts))
    season = 1 if windows.resident.facts is None else windows.resident.facts.season
    counted = np.ones((len(windows.names), windows.n_targets), dtype=np.bool_)
    counted = counted if windows.counted is None else windows.counted.cpu().numpy()
    forecast = torch.from_numpy(forecasts)
    lowest = torch.minimum(forecast.amin(1, keepdim=True), context.recent) + context.location
    sample = Sample(
        errors.astype(np.float64),
        {
            LEVEL: relative_level(forecast, context.location).numpy(),
            RECENT: relative_level(context.recent, context.location).numpy(),
        },
        context,
        windows.pred_len,
        between,
        len(windows.names),
        season,
        windows.recent_steps,
        counted,
        (lowest > 0).all(0)[0].numpy(),
    )
    kinds = [CONSTANT] * windows.n_targets if held.learned is not None else choose_kinds(sample)
    return estimate(sample, kinds)


def _half_widths(
    held: _Held,
    windows: Windows,
    index: Tensor,
    without_overlap: tuple[int, NDArray[np.int64]],
    difficulty: Difficulty,
    method: HalfWidths,
) -> NDArray[np.floating]:
    """Half-widths (K, steps, C), or corrections, at difficulty 1, from the `held` errors, which are divided by theirs;
    `without_overlap` is the number of such windows, of all steps and by step."""
    disjoint, by_step = without_overlap
    if not difficulty.constant:
        block = max(1, SAMPLED_ERRORS * len(index) // held.errors.size)
        for first in range(0, len(index), block):
            some = slice(first, first + block)
            context = windows.context(index[some])
            phase = None if context.phase is None else context.phase[:, held.steps]
            forecast = torch.from_numpy(held.forecasts[..., some].transpose(2, 0, 1))
            divisor = difficulty.of(forecast, context._replace(phase=phase)).numpy().transpose(1, 2, 0)
            held.errors[..., some] /= divisor
            if held.learned is not None:
                held.learned[..., some] /= divisor
    if windows.counted is not None and len(windows.names) > 1:  # errors of other series are not comparable
        out = ~windows.counted[windows.series_of(index)].T.cpu().numpy()
        held.errors[:, out & ~out.all(1, keepdims=True)] = np.nan
    if held.few:
        widths = student_widths(held.errors, held.levels, by_step)
        return widths if held.learned is None else widths - np.nan_to_num(np.nanmean(held.learned, axis=-1))
    if held.learned is None:
        return method(held.errors, held.levels, disjoint)
    return np.concatenate(
        [method(own, [level], disjoint) for own, level in zip(held.learned, held.levels, strict=True)]
    )


@register_intervals(CONFORMAL)
def order_statistics(errors: Floats, levels: Sequence[float], disjoint: int) -> NDArray[np.floating]:
    """Half-widths (levels, S, C) as order statistics of `errors` (S, C, n), NaN where a target is missing; sorts in
    place.

    A channel with too few errors at any step for a level is handled like few windows; half-widths are NaN without
    errors.
    """
    count = errors.shape[-1]
    counts = (~np.isnan(errors)).sum(-1)
    if counts.min() == count:
        places = [rank(level, count) - 1 for level in levels]
        errors.partition(places, axis=-1)
        return np.moveaxis(errors[..., places], -1, 0)
    numbers, which = np.unique(counts, return_inverse=True)  # of a hundred thousand windows, few differ
    ranks = np.array([[rank(level, n) for n in numbers.tolist()] for level in levels])[:, which.reshape(counts.shape)]
    lacking = (ranks > counts).any(axis=(0, 1))
    instead = [
        student_widths(np.maximum(errors[:, [c]], 0), levels, max(1, disjoint * int(counts[:, c].max()) // count))
        for c in np.flatnonzero(lacking)
    ]
    errors.sort(axis=-1)  # NaN are sorted last
    widths = np.take_along_axis(errors[None], np.minimum(ranks, count)[..., None] - 1, axis=-1)[..., 0]
    if instead:
        widths[..., lacking] = np.concatenate(instead, axis=-1)
    return widths
