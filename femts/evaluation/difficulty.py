"""Difficulty of forecasts: how large errors are for a series, a level or a phase of the season, relative to others.

Split-conformal intervals have a constant width. Normalised ones divide each error by an estimate of its size, the
difficulty, and multiply the quantile by it again (Papadopoulos, Gammerman & Vovk, "Normalized Nonconformity Measures
for Regression Conformal Prediction", 2008). Here it is a product of

- the size of the errors of the series, shrunk towards that of all series according to its uncertainty
  (empirical Bayes: Efron & Morris, "Stein's Estimation Rule and Its Competitors", JASA 1973);
- for each channel, what minimises the quantile loss in cross-validation on validation windows: nothing, the level of
  the forecast or of the last values before it, or the size of the errors at its phase of the season, shrunk towards
  that of all phases in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.resident import Context
from femts.evaluation.constants import CHOSEN_BY, FARTHEST, MOST_PHASES, NEAR_ZERO, RARE

Array = NDArray[np.float64]

CONSTANT, LEVEL, RECENT, PHASE = 0, 1, 2, 3
KINDS = ("constant", "level", "recent level", "phase")
HALF_NORMAL = np.pi / 2 - 1  # squared coefficient of variation of the absolute value of a normal error


@dataclass(frozen=True, eq=False)
class Difficulty:
    """Factors on the interval widths of G series and C channels.

    Attributes:
        kinds: (C,) int64, index in `KINDS` for each channel.
        series: (G, C) float64, factor of each series; 1 for a typical one.
        phases: (season, C) float64, factor of each phase; (0, C) if no channel uses phases.
        lowest: (C,) float64, relative level below which errors do not shrink further, because no lower one was
            observed.
        recent: number of steps before a forecast whose mean is the recent level.
    """

    kinds: NDArray[np.int64]
    series: Array
    phases: Array
    lowest: Array
    recent: int = 1

    @classmethod
    def even(cls, series: int, channels: int) -> Difficulty:
        """Constant difficulty."""
        kinds, lowest = np.zeros(channels, dtype=np.int64), np.ones(channels)
        return cls(kinds, np.ones((series, channels)), np.ones((0, channels)), lowest)

    @property
    def constant(self) -> bool:
        """Whether all factors are 1."""
        return not self.kinds.any() and bool((self.series == 1).all())

    def of(self, forecast: Tensor, context: Context) -> Tensor:
        """Difficulty (B, P, C) float64 of `forecast` (B, P, C), scaled units with effects added back; on the CPU."""
        series = torch.from_numpy(
            np.concatenate([self.series, np.ones((1, len(self.kinds)))])
        )  # index -1 is a new series
        factor = series[context.series][:, None].expand(forecast.shape).clone()
        for kind in set(self.kinds.tolist()) - {CONSTANT}:
            some = torch.from_numpy(np.flatnonzero(self.kinds == kind))
            if kind in (LEVEL, RECENT):
                values = forecast if kind == LEVEL else context.recent
                level = relative_level(values[..., some], context.location[..., some])
                factor[..., some] *= torch.maximum(level, torch.from_numpy(self.lowest[some.numpy()]))
            elif context.phase is not None:
                factor[..., some] *= torch.from_numpy(self.phases)[context.phase[:, : forecast.shape[1]]][..., some]
        return factor


def relative_level(values: Tensor, location: Tensor) -> Tensor:
    """Absolute raw values relative to that of the training mean, from scaled `values` (B, P or 1, C) and the `location`
    (B, 1, C) of that mean; float64."""
    return (values.cpu().double() + location).abs() / location.abs().clamp_min(NEAR_ZERO)


def shrink(sizes: Array, noise: Array, counted: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Shrink the mean error `sizes` (G, C) of G groups, whose logarithms have variance `noise` (G, C), towards a common
    one.

    Each is shrunk towards the geometric mean of all groups that are `counted` (G, C), the more, the less these vary
    beyond their noise.

    Returns:
        Factors for future errors, and factors by which to divide the errors that `sizes` come from; the latter are
        closer to 1, because errors are fitted better by their own mean. Both are 1 for a group without errors (NaN).
    """
    usable = np.isfinite(sizes) & (sizes > 0)
    logs = np.log(np.where(usable, sizes, 1.0))
    compared = usable if counted is None else usable & counted
    count = compared.sum(0)
    spread = np.clip(logs - _mean(logs, compared), -np.log(FARTHEST), np.log(FARTHEST))
    between = _mean(spread**2, compared) * count / np.maximum(count - 1, 1) - _mean(noise, compared)
    between = np.where(count > 1, np.maximum(between, 0.0), 0.0)
    weight = np.divide(between, between + noise, out=np.zeros_like(noise), where=(between + noise > 0) & usable)
    spread = np.where(sizes == 0, -np.log(FARTHEST), np.where(usable, spread, 0.0))
    weight = np.where((sizes == 0) & (count > 0), 1.0, weight)
    # With n errors per group, log-sizes of future errors spread by noise * (1 + weight) around their factor, and those
    # of the given errors by (1 - own)**2 * (between + noise): `own` makes the two equal.
    own = 1 - np.sqrt(1 - weight**2)
    return np.exp(weight * spread), np.exp(own * spread)


def _mean(values: Array, usable: NDArray[np.bool_]) -> Array:
    """Means (C,) over the `usable` entries of `values` (G, C); 0 if there are none."""
    count = usable.sum(0)
    return np.divide(np.where(usable, values, 0.0).sum(0), count, out=np.zeros(len(count)), where=count > 0)


@dataclass(frozen=True, eq=False)
class Sample:
    """Errors of n windows, S steps and C channels from which the difficulty is estimated, ordered by series.

    Attributes:
        errors: (n, S, C) float64, absolute, scaled units; NaN where a target is missing.
        levels: for each kind, (n, S or 1, C) float64, levels of forecasts or of preceding values relative to the
            training mean.
        context: context of the windows.
        steps: P, the horizon; windows P apart do not overlap.
        stride: distance between the sampled windows.
        series: number G of series.
        season: number of phases; 1 for no season.
        recent: as in `Difficulty`.
        counted: (G, C), whether a series has a scale of its own, so that its sizes are comparable.
        positive: (C,), whether all forecasts and recent values of a channel are positive in raw units.
    """

    errors: Array
    levels: Mapping[int, Array]
    context: Context
    steps: int
    stride: int
    series: int
    season: int
    recent: int
    counted: NDArray[np.bool_]
    positive: NDArray[np.bool_]

    def of(self, windows: NDArray[np.bool_]) -> Sample:
        """Select some of the windows (n,)."""
        some = torch.from_numpy(np.flatnonzero(windows))
        context = Context(*(None if each is None else each[some] for each in self.context))  # type: ignore[arg-type]
        levels = {kind: each[windows] for kind, each in self.levels.items()}
        return replace(self, errors=self.errors[windows], levels=levels, context=context)

    def halves(self) -> NDArray[np.bool_]:
        """Mask (n,) of the later windows of each series; if there are too few for two halves, of every other series."""
        number = self.context.series.numpy()
        position, count = _positions(number, self.series)
        long = count * self.stride >= 2 * self.steps
        return np.where(long[number], 2 * position >= count[number], number % 2 == 1)

    def lowest(self, kind: int) -> Array:
        """Lowest level of a `kind` that is a level, (C,); see `Difficulty`."""
        levels = self.levels[kind].reshape(-1, self.errors.shape[-1])
        return np.maximum(np.quantile(levels, RARE, axis=0), np.finfo(np.float32).tiny)


def _positions(number: NDArray[np.int64], series: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Position of each window (n,) within its series, and the number of windows of each series (G,)."""
    count = np.bincount(number, minlength=series)
    order = np.argsort(number, kind="stable")
    position = np.empty(len(number), dtype=np.int64)
    position[order] = np.arange(len(number)) - np.repeat(count.cumsum() - count, count)
    return position, count


def estimate(sample: Sample, kinds: Sequence[int]) -> tuple[Difficulty, Difficulty]:
    """Estimate the difficulty from `sample` with these `kinds` by channel, for future errors and for dividing the
    errors of the sample; see `shrink`."""
    kind_of, channels = np.array(kinds, dtype=np.int64), sample.errors.shape[-1]
    sized, lowest = sample.errors, np.ones(channels)
    for kind, levels in sample.levels.items():
        some = kind_of == kind
        if some.any():
            lowest = np.where(some, sample.lowest(kind), lowest)
            sized = np.where(some, sample.errors / np.maximum(levels, lowest), sized)
    with np.errstate(invalid="ignore", divide="ignore"):
        sized = sized / _nanmean(sized, 0)  # errors grow with the step
    series, own_series = _series_factors(sized, sample)
    phases = own_phases = np.ones((0, channels))
    chosen = kind_of == PHASE
    if chosen.any():
        number = sample.context.series.numpy()
        phases, own_phases = _phase_factors(sized / own_series[number][:, None], sample, chosen)
    made = Difficulty(kind_of, series, phases, lowest, sample.recent)
    return made, replace(made, series=own_series, phases=own_phases)


def _nanmean(values: Array, axis: int) -> Array:
    """Mean over `axis` ignoring NaN; NaN if there are no values."""
    count = (~np.isnan(values)).sum(axis)
    return np.divide(np.nansum(values, axis=axis), count, out=np.full(count.shape, np.nan), where=count > 0)


def _series_factors(sized: Array, sample: Sample) -> tuple[Array, Array]:
    """Factors of the series from relative errors (n, S, C)."""
    channels, number = sized.shape[-1], sample.context.series.numpy()
    if sample.series == 1:
        return np.ones((1, channels)), np.ones((1, channels))
    position, count = _positions(number, sample.series)
    # Errors of overlapping windows are correlated, so only windows without overlap count for the variance.
    blocks = np.maximum(1, -(-count * sample.stride // sample.steps))
    block = np.minimum(position * blocks[number] // np.maximum(count[number], 1), blocks[number] - 1)
    first = blocks.cumsum() - blocks
    by_block = _grouped_mean(_nanmean(sized, 1), first[number] + block, int(blocks.sum()))
    owner = np.repeat(np.arange(sample.series), blocks)
    sizes = _grouped_mean(by_block, owner, sample.series)
    there = ~np.isnan(by_block)
    filled = np.zeros((sample.series, channels))
    np.add.at(filled, owner, there.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.where(there, (by_block / sizes[owner] - 1) ** 2, 0.0)
    several = there & (filled[owner] > 1) & (sizes[owner] > 0)
    free = np.where(several, 1 - 1 / np.maximum(filled[owner], 1), 0.0).sum(0)
    squares = np.where(several, away, 0.0).sum(0)
    one = np.divide(squares, free, out=np.full(channels, HALF_NORMAL), where=free > 0)
    return shrink(sizes, one / np.maximum(filled, 1), sample.counted)


def _phase_factors(sized: Array, sample: Sample, chosen: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Factors (season, C) of the phases from relative errors (n, S, C); 1 for channels that are not `chosen`."""
    assert sample.context.phase is not None
    phase = sample.context.phase[:, : sized.shape[1]].numpy().ravel()
    flat = sized.reshape(-1, sized.shape[-1])
    sizes = _grouped_mean(flat, phase, sample.season)
    there = (~np.isnan(flat)).astype(np.float64)
    count = np.zeros((sample.season, flat.shape[-1]))
    np.add.at(count, phase, there)
    rows = np.maximum(count * sample.stride / sized.shape[1], 1)  # each row is forecast by one window per step
    factors, own = shrink(sizes, HALF_NORMAL / rows)
    return np.where(chosen, factors, 1.0), np.where(chosen, own, 1.0)


def _grouped_mean(values: Array, group: NDArray[np.int64], groups: int) -> Array:
    """Means (groups, C) of `values` (m, C) by `group` (m,); NaN for empty groups."""
    there, sums = ~np.isnan(values), np.empty((groups, values.shape[1]))
    counts = np.empty_like(sums)
    for c in range(values.shape[1]):
        counts[:, c] = np.bincount(group, there[:, c], groups)
        sums[:, c] = np.bincount(group, np.where(there[:, c], values[:, c], 0.0), groups)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def choose_kinds(sample: Sample) -> list[int]:
    """Kind with the lowest quantile loss for each channel, by two-fold cross-validation on `sample`; constant if there
    are no two halves or no kind is better."""
    channels, later = sample.errors.shape[-1], sample.halves()
    if later.all() or not later.any():
        return [CONSTANT] * channels
    kinds = [CONSTANT, *sample.levels] + [PHASE] * (
        sample.context.phase is not None and 1 < sample.season <= MOST_PHASES
    )
    halves = sample.of(~later), sample.of(later)
    losses = np.zeros((len(kinds), channels))
    for known, new in (halves, halves[::-1]):
        size = _nanmean(known.errors.reshape(-1, channels), 0)
        with np.errstate(invalid="ignore"):  # channels without errors
            typical = _nanmean(known.errors, 0) / size  # errors grow with the step
        series = estimate(known, [CONSTANT] * channels)[0].series  # so that all series have the same weight
        for k, kind in enumerate(kinds):
            losses[k] += _loss(known, new, kind, typical, series)
    losses = np.nan_to_num(losses, nan=np.inf)
    for k, kind in enumerate(kinds):
        if kind in sample.levels:  # errors proportional to the level only make sense for positive values
            losses[k] = np.where(sample.positive, losses[k], np.inf)
    return [kinds[k] for k in losses.argmin(0)]


def _loss(known: Sample, new: Sample, kind: int, typical: Array, series: Array) -> Array:
    """Quantile loss (C,) on `new` of intervals of one kind fitted to `known`, in units of each series."""
    channels = known.errors.shape[-1]
    made, own = estimate(known, [kind] * channels)
    loss = np.zeros(channels)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = known.errors / (typical * _widths(own, known))
    widths = typical * _widths(made, new)
    unit = series[new.context.series.numpy()][:, None]
    for level in CHOSEN_BY:
        with warnings.catch_warnings(action="ignore"):  # channels without errors have NaN loss
            quantile = np.nanquantile(relative.reshape(-1, channels), level / 100, axis=0)
        width, alpha = quantile * widths, 1 - level / 100
        beyond = np.maximum(new.errors - width, 0)
        loss += _nanmean(((alpha * width + beyond) / unit).reshape(-1, channels), 0)
    return loss


def _widths(difficulty: Difficulty, sample: Sample) -> Array:
    """Difficulty (n, S, C) of the windows of `sample`."""
    factor = np.broadcast_to(difficulty.series[sample.context.series.numpy()][:, None], sample.errors.shape)
    levels = np.ones(())
    for kind, each in sample.levels.items():
        levels = levels * np.where(difficulty.kinds == kind, np.maximum(each, difficulty.lowest), 1.0)
    if (difficulty.kinds == PHASE).any():
        assert sample.context.phase is not None
        phase = sample.context.phase[:, : sample.errors.shape[1]].numpy()
        levels = levels * np.where(difficulty.kinds == PHASE, difficulty.phases[phase], 1.0)
    return np.asarray(factor * levels)
