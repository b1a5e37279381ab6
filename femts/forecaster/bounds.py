"""Ends of the intervals around forecasts, in raw units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.data.frequency import phases
from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.resident import Context
from femts.data.windows import location
from femts.evaluation.intervals import check_levels
from femts.evaluation.quantiles import check_quantiles, level_of
from femts.forecaster.scoring import calibrated
from femts.forecaster.trained import Trained
from femts.models.base import Forecasts

Array = NDArray[np.float64]


class Ends(NamedTuple):
    """Ends of intervals that a user asks for.

    Attributes:
        levels: percent.
        quantiles: each an end of an interval; 0.5 is the forecast.
    """

    levels: tuple[float, ...]
    quantiles: tuple[float, ...]

    @classmethod
    def of(cls, level: Sequence[float] | None, quantiles: Sequence[float] | None) -> Ends:
        """The ends by what `predict` was given; UsageError for what is no level or quantile."""
        return cls(
            () if level is None else check_levels(level),
            () if quantiles is None else check_quantiles(quantiles),
        )

    @property
    def needed(self) -> tuple[float, ...]:
        """Levels that have to be calibrated."""
        return (*self.levels, *(level_of(q) for q in self.quantiles if q != 0.5))


@dataclass(frozen=True, eq=False)
class Ahead:
    """Forecasts of S series, P steps of T targets each, and what they are of.

    Attributes:
        names: of the series.
        preprocess: of each.
        recent: look-backs (S, L, C), raw units, NaN where missing.
        when: stamps of the steps of each.
        scaled: forecasts, in scaled units, effects of known columns taken off.
        offsets: these effects (S, P, C); None where there are none.
        targets: T.
    """

    names: Sequence[str]
    preprocess: Sequence[Preprocess]
    recent: Array
    when: Sequence[pd.Index]
    scaled: Forecasts
    offsets: Array | None
    targets: int

    def raw(self) -> Array:
        """The forecasts in raw units, (S, P, T)."""
        points = self.scaled.points[..., : self.targets].cpu().double().numpy()
        return np.stack([one.inverse(values, self.known(s)) for s, (one, values) in enumerate(self._with(points))])

    def recent_level(self, steps: int, others: Sequence[Preprocess]) -> torch.Tensor:
        """Mean of the last `steps` values (S, 1, T) float64 in the scaled units of `others`, effects among them."""
        recent = np.stack([one.scale(values[-steps:]) for one, values in zip(others, self.recent, strict=True)])
        recent = recent[..., : self.targets]
        count = (~np.isnan(recent)).sum(1, keepdims=True)
        return torch.from_numpy(np.nansum(recent, axis=1, keepdims=True) / np.maximum(count, 1))

    def known(self, series: int) -> Array | None:
        """Effects (P, C) of a series by its number."""
        return None if self.offsets is None else self.offsets[series]

    def _with(self, values: Array) -> list[tuple[Preprocess, Array]]:
        return list(zip(self.preprocess, values, strict=True))

    def within(self) -> Forecasts:
        """The forecasts as they are scored, and as intervals are around them: at the ends of the domain, where they
        leave it."""
        limits = Limits.of(self.preprocess, self.targets)
        points = self.scaled.points[..., : self.targets].cpu().double()
        quantiles = self.scaled.quantiles
        quantiles = None if quantiles is None else quantiles[..., : self.targets].cpu().double()
        if limits is None:
            return Forecasts(points, quantiles)
        if self.offsets is not None:
            limits = limits.without(torch.from_numpy(self.offsets[..., : self.targets]))
        return Forecasts(limits.clip(points), None if quantiles is None else limits.clip(quantiles))

    def in_units_of(self, others: Sequence[Preprocess]) -> Forecasts:
        """The forecasts `within` in the scaled units of `others`, effects put back; float64 on the CPU."""
        made = self.within()
        points, quantiles = (
            None if each is None else torch.from_numpy(self._converted(each.numpy(), others))
            for each in (made.points, made.quantiles)
        )
        assert points is not None
        return Forecasts(points, quantiles)

    def _converted(self, values: Array, others: Sequence[Preprocess]) -> Array:
        """Scaled `values` (S, P, T) or (S, P, Q, T) in other units."""
        made = np.empty_like(values)
        for s, (own, other) in enumerate(zip(self.preprocess, others, strict=True)):
            known = self.known(s)
            if known is not None:
                known = known if values.ndim == 3 else known[:, None]
            if own is other:
                made[s] = values[s] if known is None else values[s] + known[..., : self.targets]
            else:
                made[s] = other.rescale(own.inverse(values[s], known))
        return made


def raw_bounds(forecaster: Trained[Any, Any], ahead: Ahead, points: Array, ends: Ends) -> dict[str, Array]:
    """Bounds (S, P, T) in raw units by name: `lo-80`, `hi-80`, `q-10`.

    They are made in the scaled units of the forecaster whose errors the intervals come from, by which they are also
    undone: one that has learned from all rows scales otherwise.

    Args:
        forecaster: a trained one.
        ahead: its forecasts.
        points: the same in raw units, (S, P, T).
        ends: which to make.
    """
    intervals, scored = calibrated(forecaster), _scored_preprocess(forecaster, ahead)
    season = len(intervals.difficulty.phases)
    phase = [phases(when, forecaster.freq, season) for when in ahead.when]
    known = [each for each in phase if each is not None]
    context = Context(
        intervals.numbers(ahead.names),
        location(scored, ahead.targets)[:, None],
        ahead.recent_level(intervals.difficulty.recent, scored),
        torch.from_numpy(np.stack(known)) if known else None,
    )
    forecasts = ahead.in_units_of(scored)
    made = intervals.bounds(forecasts.points, context, forecasts.quantiles, forecaster.model.quantiles)
    pairs = {0.0: (points, points)}
    for level in set(ends.needed):
        low, high = (
            np.stack([one.inverse(values) for one, values in zip(scored, bound.numpy(), strict=True)])
            for bound in made[level]
        )
        pairs[level] = np.minimum(low, points), np.maximum(high, points)  # which rounding might leave outside
    return named_bounds(pairs, ends)


def _scored_preprocess(forecaster: Trained[Any, Any], ahead: Ahead) -> Sequence[Preprocess]:
    """Preprocessing of each series by the forecaster whose errors its intervals come from."""
    if forecaster.scored is None:
        return ahead.preprocess
    scored = forecaster.scored.preprocess
    if isinstance(scored, Preprocess):
        return [scored]
    return [scored.series.get(name, own) for name, own in zip(ahead.names, ahead.preprocess, strict=True)]


def named_bounds(pairs: Mapping[float, tuple[Array, Array]], ends: Ends) -> dict[str, Array]:
    """Ends by name, `lo-80`, `hi-80`, `q-10`, from the lower and the upper one of each level; 0
    stands for the forecast."""
    bounds = {f"{side}-{level:g}": pairs[level][k] for level in ends.levels for k, side in enumerate(("lo", "hi"))}
    return bounds | {f"q-{100 * q:g}": pairs[level_of(q)][q > 0.5] for q in ends.quantiles}
