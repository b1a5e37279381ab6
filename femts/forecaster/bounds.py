"""Bounds of prediction intervals around forecasts, in raw units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.data.dataset import Dataset
from femts.data.frequency import phases
from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.resident import Context
from femts.errors import UsageError
from femts.evaluation.intervals import check_levels
from femts.evaluation.quantiles import check_quantiles, level_of
from femts.forecaster.scoring import calibrated
from femts.models.base import Forecasts

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

Array = NDArray[np.float64]


class QuantileSpec(NamedTuple):
    """Requested interval bounds.

    Attributes:
        levels: levels in percent.
        quantiles: each the bound of an interval; 0.5 is the forecast.
    """

    levels: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()

    @classmethod
    def of(cls, level: Sequence[float] | None, quantiles: Sequence[float] | None) -> QuantileSpec:
        """Bounds from the arguments of `predict`; raise UsageError for an invalid level or quantile."""
        return cls(
            () if level is None else check_levels(level),
            () if quantiles is None else check_quantiles(quantiles),
        )

    @property
    def needed(self) -> tuple[float, ...]:
        """Levels that have to be calibrated."""
        return (*self.levels, *(level_of(q) for q in self.quantiles if q != 0.5))


class OddReading(NamedTuple):
    """A reading far outside the usual range, read as missing.

    Attributes:
        series: name of its series; empty for a table.
        column: name of its column.
        stamp: its time stamp, or the number of its row.
        value: its value in raw units.
    """

    series: str
    column: str
    stamp: object
    value: float

    @classmethod
    def all(cls, data: Dataset, odd: NDArray[np.bool_]) -> tuple[OddReading, ...]:
        """The readings in the mask `odd` (S, L, C) of the last rows of each series of `data`."""
        series, steps, columns = (each.tolist() for each in np.nonzero(odd))
        rows = data.spans[series, 1] - odd.shape[1] + np.array(steps, dtype=np.int64)
        stamps = rows if data.stamps is None else data.stamps[rows]
        return tuple(
            cls(data.series[s], data.columns[c], when, float(data.values[row, c]))
            for s, c, row, when in zip(series, columns, rows.tolist(), stamps, strict=True)
        )


@dataclass(frozen=True, eq=False)
class SeriesForecasts:
    """Forecasts of S series, P steps of T targets each, with their inputs.

    Attributes:
        series: names of the series.
        preprocess: preprocessing of the series.
        recent: look-backs (S, L, C) in raw units, NaN for missing values and odd readings.
        stamps: time stamps of the steps of each series, (S P,), series by series.
        scaled: forecasts in scaled units, without the effects of future covariates.
        offsets: these effects (S, P, C); None if there are none.
        targets: T.
        odd: readings of the look-backs that are read as missing.
        unlike: factor (S, 1, T) of at least 1 on the widths of intervals; None if all are 1.
        closed: mask (S, P, T) of steps at times at which a series never has a value; None if there are none.
    """

    series: Sequence[str]
    preprocess: Preprocess
    recent: Array
    stamps: pd.Index
    scaled: Forecasts
    offsets: Array | None
    targets: int
    odd: tuple[OddReading, ...] = ()
    unlike: torch.Tensor | None = None
    closed: NDArray[np.bool_] | None = None

    def first(self, steps: int) -> SeriesForecasts:
        """The same forecasts, truncated to `steps` steps."""
        every = len(self.stamps) // len(self.series)
        if steps == every:
            return self
        kept = (np.arange(0, len(self.stamps), every)[:, None] + np.arange(steps)).ravel()
        scaled = self.scaled.with_each(*2 * (lambda values: values[:, :steps],))
        offsets = None if self.offsets is None else self.offsets[:, :steps]
        return replace(self, stamps=self.stamps[kept], scaled=scaled, offsets=offsets)

    def raw(self) -> Array:
        """The forecasts in raw units, (S, P, T); NaN where they are `absent`."""
        made = self.preprocess.inverse(self.scaled.points[..., : self.targets].cpu().double().numpy(), self.offsets)
        return np.where(self.absent, np.nan, made)

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """Mask (S, P) of the steps that are `closed` for all targets."""
        steps = len(self.stamps) // len(self.series)
        closed = np.zeros((len(self.series), steps, 1), bool) if self.closed is None else self.closed
        return np.asarray(closed.all(axis=2))

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Mask (S, P, T) of the steps without a forecast: those of targets that have `ended`, and `closed` ones."""
        ended = np.repeat(self.ended[:, None], len(self.stamps) // len(self.series), axis=1)
        return ended if self.closed is None else ended | self.closed

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Mask (S, T) of the targets without any value in the look-back."""
        return np.asarray(np.isnan(self.recent[..., : self.targets]).all(axis=1))

    def recent_level(self, steps: int, units: Preprocess) -> torch.Tensor:
        """Mean of the last `steps` values (S, 1, T), float64, in the scaled `units`, including effects."""
        recent = units.scale(self.recent[:, -steps:])[..., : self.targets]
        count = (~np.isnan(recent)).sum(1, keepdims=True)
        return torch.from_numpy(np.nansum(recent, axis=1, keepdims=True) / np.maximum(count, 1))

    def within(self) -> Forecasts:
        """The forecasts as they are scored and surrounded by intervals, clipped to the bounds of the domain."""
        limits = Limits.of(self.preprocess, self.targets)
        made = self.scaled.with_each(*2 * (lambda values: values[..., : self.targets].cpu().double(),))
        if limits is None:
            return made
        if self.offsets is not None:
            limits = limits.without(torch.from_numpy(self.offsets[..., : self.targets]))
        return made.with_each(limits.clip, limits.clip)

    def in_units_of(self, units: Preprocess) -> Forecasts:
        """The result of `within` in other scaled `units`, with effects added back; float64 on the CPU."""
        return self.within().with_each(*2 * (lambda values: torch.from_numpy(self._converted(values.numpy(), units)),))

    def _converted(self, values: Array, units: Preprocess) -> Array:
        """Convert scaled `values` (S, P, T) or (S, P, Q, T) to other units."""
        known = self.offsets
        if known is not None:
            known = known[..., : self.targets] if values.ndim == 3 else known[:, :, None, : self.targets]
        if units is self.preprocess:
            return values if known is None else values + known
        return units.rescale(self.preprocess.inverse(values, known))


def raw_bounds(forecaster: Forecaster, made: SeriesForecasts, points: Array, ends: QuantileSpec) -> dict[str, Array]:
    """Bounds (S, P, T) in raw units by name: `lo-80`, `hi-80`, `q-10`.

    They are computed in, and converted from, the scaled units of the forecaster whose errors calibrated the intervals,
    because a refitted forecaster scales differently.

    Args:
        forecaster: a trained forecaster.
        made: its forecasts.
        points: the same in raw units, (S, P, T).
        ends: requested bounds.
    """
    intervals, units = calibrated(forecaster), _scored_units(forecaster, made)
    forecasts = made.in_units_of(units)
    context, learned = _context(forecaster, made, forecasts, units), forecaster.model.quantiles
    each = intervals.bounds(forecasts.points, context, forecasts.quantiles, learned, sorted(set(ends.needed)))
    pairs = {0.0: (points, points)}
    for level in set(ends.needed):
        low, high = (units.inverse(bound.numpy()) for bound in each[level])
        pairs[level] = np.minimum(low, points), np.maximum(high, points)  # rounding might leave points outside
    bounds = {f"{side}-{level:g}": pairs[level][k] for level in ends.levels for k, side in enumerate(("lo", "hi"))}
    return bounds | {f"q-{100 * q:g}": pairs[level_of(q)][q > 0.5] for q in ends.quantiles}


def sample_paths(forecaster: Forecaster, made: SeriesForecasts, count: int, seed: int) -> Iterator[Array]:
    """Yield `count` joint sample paths (S, P, T) in raw units around the forecasts `made`; see
    `femts.evaluation.joint`. Paths of other forecasts with the same `seed` have the errors of the same origins.

    Raises:
        UsageError: The intervals are none, of too few steps, or of an earlier version without joint errors.
    """
    intervals, units = calibrated(forecaster), _scored_units(forecaster, made)
    steps = made.scaled.points.shape[1]
    intervals.check((), steps)
    if intervals.joint is None:
        raise UsageError(
            "The intervals of this run have no joint errors to draw paths from; calibrate them again with `femts "
            "calibrate RUN`."
        )
    forecasts = made.in_units_of(units)
    context = _context(forecaster, made, forecasts, units)
    learned = () if forecasts.quantiles is None else (forecasts.quantiles, forecaster.model.quantiles)
    below, above = (each.numpy() for each in intervals.units(forecasts.points, context, *learned))
    points, limits = forecasts.points.numpy(), Limits.of(units, made.targets)
    for number in range(count):
        relative = intervals.joint.draw(context.series, steps, np.random.default_rng((seed, number)))
        path = points + np.nan_to_num(relative * np.where(relative < 0, below, above))
        yield units.inverse(path if limits is None else limits.clip(torch.from_numpy(path)).numpy())


def _context(forecaster: Forecaster, made: SeriesForecasts, forecasts: Forecasts, units: Preprocess) -> Context:
    """Context of the forecasts `made`, which are `forecasts` in scaled `units`, for the intervals."""
    intervals, steps = calibrated(forecaster), made.scaled.points.shape[1]
    phase = phases(made.stamps, forecaster.freq, len(intervals.difficulty.phases))
    location = units.scaler.mean[:, None, : made.targets] / units.scaler.scale[:, None, : made.targets]
    return Context(
        intervals.numbers(made.series),
        torch.from_numpy(location),
        made.recent_level(intervals.difficulty.recent, units),
        None if phase is None else torch.from_numpy(phase.reshape(-1, steps)),
        made.unlike,
        forecasts.of_members,
    )


def _scored_units(forecaster: Forecaster, made: SeriesForecasts) -> Preprocess:
    """Preprocessing of the series by the forecaster whose errors calibrated the intervals; new series have their
    own."""
    if forecaster.scored is None:
        return made.preprocess
    places = forecaster.scored.preprocess.places(made.series)
    units = forecaster.scored.preprocess.take(places).with_others(made.preprocess, np.flatnonzero(places < 0))
    return replace(units, domain=made.preprocess.domain)  # bounds inferred from more rows
