"""Limits of forecasts in scaled units: where `Preprocess.inverse` makes them end in raw ones."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from femts.data.preprocess import Preprocess

# A limit lies this far outside, for its size, so that rounding leaves none of what ends there within the domain.
HAIR = 2.0**-40
# Scaled values are float32: what is nearer to a limit than they resolve is at it.
RESOLVED = 2.0**-20


class Limits(NamedTuple):
    """Smallest and largest forecasts of some windows or series, each (B or 1, 1 or P, T), scaled units, float64."""

    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, preprocess: Preprocess, targets: int) -> Limits | None:
        """Limits (S, 1, T) of the first T channels of each series, offsets put back; None where nothing limits one."""
        if preprocess.linear and preprocess.domain.low is None and preprocess.domain.high is None:
            return None
        low, high = (torch.from_numpy(each)[:, None] for each in preprocess.limits(targets))
        if not (low.isfinite() | high.isfinite()).any():
            return None
        return cls(low - HAIR * (1 + low.abs()), high + HAIR * (1 + high.abs()))

    def at(self, numbers: Tensor) -> Limits:
        """Those of the series `numbers` (B,); themselves where they are of one."""
        return self if len(self.low) == 1 else Limits(*(each[numbers.cpu()] for each in self))

    def without(self, offsets: Tensor) -> Limits:
        """Limits of forecasts without `offsets` (B or 1, P, T)."""
        return Limits(self.low - offsets, self.high - offsets)

    def clip(self, forecast: Tensor) -> Tensor:
        """The `forecast` (B, P, T), or quantiles (B, P, Q, T), within the limits; what is not finite stays so."""
        low, high = ((each if forecast.ndim == 3 else each[:, :, None]).to(forecast) for each in self)
        return forecast.clamp(low, high).where(forecast.isfinite(), forecast)

    def within(self, target: Tensor) -> Tensor:
        """Values `target` (B, P, T) that happened, NaN where an interval cannot reach them; rounding apart."""
        low, high = (each.to(target.device) for each in self)
        reached = (target >= low - RESOLVED * (1 + low.abs())) & (target <= high + RESOLVED * (1 + high.abs()))
        return self.clip(target).masked_fill(~reached, torch.nan)
