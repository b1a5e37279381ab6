"""What metrics see: the forecasts and the actual values of a batch of windows, in one unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.evaluation.coverage import Bounds
from femts.evaluation.scale import SeasonalScale
from femts.models.base import Forecasts
from femts.models.naive import repeat_season

Units = Literal["scaled", "raw"]


@dataclass(frozen=True, eq=False)
class Values:
    """B windows of P steps and T targets, float64 on the CPU.

    Attributes:
        forecast: (B, P, T).
        actual: (B, P, T), NaN where missing.
        look_back: makes `past`, which few metrics need and which is longer than all else; None if there is none.
        season: steps in a season.
        zero: (B or 1, 1, T), distance from 0 within which a value may be 0, given the float32 resolution of models.
        absolute, squared: (B or 1, 1, T), mean absolute and root mean squared seasonal change of the training rows
            (`SeasonalScale`); NaN in scaled units.
        bounds: lower and upper bounds (B, P, T) of the intervals by level in percent.
        inside: (B, P, T), whether these contain the actual values, 0 or 1, by level; NaN where missing.
        quantiles: quantile forecasts (B, P, T) by level between 0 and 1.
    """

    forecast: Tensor
    actual: Tensor
    look_back: Callable[[], Tensor] | None = None
    season: int = 1
    zero: Tensor | float = 0.0
    absolute: Tensor | float = torch.nan
    squared: Tensor | float = torch.nan
    bounds: Mapping[float, tuple[Tensor, Tensor]] | None = None
    inside: Mapping[float, Tensor] | None = None
    quantiles: Mapping[float, Tensor] | None = None

    @cached_property
    def past(self) -> Tensor:
        """Look-backs (B, L, T) with gaps filled."""
        return self.actual[:, :0] if self.look_back is None else self.look_back()

    @cached_property
    def error(self) -> Tensor:
        """Forecast minus actual value, NaN where missing."""
        return self.forecast - self.actual

    @cached_property
    def size(self) -> Tensor:
        """Absolute actual value, 0 if it may be 0."""
        size = self.actual.abs()
        return torch.where(size <= self.zero, 0.0, size)

    @cached_property
    def seasonal_naive(self) -> Tensor | None:
        """Forecast (B, P, T) that repeats the last season; None if the look-back is shorter."""
        if self.past.shape[1] < self.season:
            return None
        return repeat_season(self.past, self.actual.shape[1], self.season)


class Viewer:
    """Makes the `Values` of batches, in scaled and in raw units.

    Args:
        preprocess: conversion between both, for each series.
        season: steps in a season.
        scale: seasonal changes of the training rows; None if no metric needs them.
        bounds: bounds of intervals; None omits them.
    """

    def __init__(
        self, preprocess: Preprocess, season: int = 1, scale: SeasonalScale | None = None, bounds: Bounds | None = None
    ) -> None:
        self.preprocess, self._season, self._scale, self._bounds = preprocess, season, scale, bounds
        self._seen: tuple[Batch, Callable[[Units], Values]] | None = None

    def views(self, forecasts: Forecasts, batch: Batch, series: NDArray[np.int64]) -> Callable[[Units], Values]:
        """The values of `batch` by unit, made when first asked for; kept for the next call with the same batch.

        Args:
            forecasts: in scaled units.
            batch: windows.
            series: (B,), number of the series of each window.
        """
        if self._seen is None or self._seen[0] is not batch:

            @cache
            def view(units: Units) -> Values:
                return self._scaled(forecasts, batch) if units == "scaled" else self._raw(view("scaled"), series)

            self._seen = batch, view
        return self._seen[1]

    def _scaled(self, forecasts: Forecasts, batch: Batch) -> Values:
        forecast, actual = (each.cpu().double() for each in (forecasts.points, batch.target))
        bounds, inside = (None, None) if self._bounds is None else self._bounds.of(forecasts, batch)
        return Values(forecast, actual, lambda: batch.past.cpu().double(), self._season, bounds=bounds, inside=inside)

    def _raw(self, scaled: Values, series: NDArray[np.int64]) -> Values:
        several, targets = len(self.preprocess.series) > 1, scaled.actual.shape[-1]
        own, numbers = (
            (self.preprocess.at(series), series) if several else (self.preprocess, np.zeros(1, dtype=np.int64))
        )
        absolute: Tensor | float = torch.nan
        squared: Tensor | float = torch.nan
        if self._scale is not None:
            absolute, squared = (
                torch.from_numpy(each[numbers])[:, None] for each in (self._scale.absolute, self._scale.squared)
            )
        bounds = scaled.bounds
        if bounds is not None:
            bounds = {level: (own.inverse(low), own.inverse(high)) for level, (low, high) in bounds.items()}
        return Values(
            own.inverse(scaled.forecast),
            own.restore(scaled.actual),
            lambda: own.restore(scaled.past),
            self._season,
            torch.from_numpy(zero_within(own.scaler, targets))[:, None],
            absolute,
            squared,
            bounds,
        )


def zero_within(scaler: Scaler, targets: int) -> NDArray[np.float64]:
    """Distance (S, T) from 0 within which a raw value may have been 0, given the float32 resolution of scaled
    values."""
    return 2.0**-20 * (np.abs(scaler.mean[:, :targets]) + scaler.scale[:, :targets])
