"""Limits of forecasts in scaled units that correspond to the clipping of raw values in `Preprocess.inverse`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from femts.data.preprocess import Preprocess

# Limits are widened by this relative amount, so that rounding leaves no clipped forecast inside the domain.
HAIR = 2.0**-40
# Scaled values are float32; differences to a limit below its resolution count as none.
RESOLVED = 2.0**-20


class Limits(NamedTuple):
    """Smallest and largest forecasts of windows or series, each (B or 1, 1 or P, T), scaled units, float64."""

    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, preprocess: Preprocess, targets: int) -> Limits | None:
        """Limits (S, 1, T) of the first T channels of each series, before offsets are removed; None if there are
        none."""
        if preprocess.linear and preprocess.domain.low is None and preprocess.domain.high is None:
            return None
        low, high = (torch.from_numpy(each)[:, None] for each in preprocess.limits(targets))
        if not (low.isfinite() | high.isfinite()).any():
            return None
        return cls(low - HAIR * (1 + low.abs()), high + HAIR * (1 + high.abs()))

    def at(self, numbers: Tensor) -> Limits:
        """Limits of the series `numbers` (B,); unchanged for a single series."""
        return self if len(self.low) == 1 else Limits(*(each[numbers.cpu()] for each in self))

    def without(self, offsets: Tensor) -> Limits:
        """Limits after subtracting `offsets` (B or 1, P, T)."""
        return Limits(self.low - offsets, self.high - offsets)

    def clip(self, forecast: Tensor) -> Tensor:
        """Clip `forecast` (B, P, T), or quantiles (B, P, Q, T), to the limits; non-finite values are kept."""
        low, high = ((each if forecast.ndim == 3 else each[:, :, None]).to(forecast) for each in self)
        return forecast.clamp(low, high).where(forecast.isfinite(), forecast)

    def within(self, target: Tensor) -> Tensor:
        """Actual values `target` (B, P, T), NaN where they are outside the limits by more than rounding, as no interval
        can contain them."""
        low, high = (each.to(target.device) for each in self)
        reached = (target >= low - RESOLVED * (1 + low.abs())) & (target <= high + RESOLVED * (1 + high.abs()))
        return self.clip(target).masked_fill(~reached, torch.nan)
