"""Resident values of one or several series, which windows are cut out of."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from femts.data.limits import Limits
from femts.data.raw import Raw


@dataclass(frozen=True, eq=False)
class ScaledSeries:
    """Resident values that windows are cut out of, N rows of C channels.

    Attributes:
        values: (N, C), scaled, float32, gaps filled.
        observed: (N, C) bool, which values are real and no filling; None where all are.
        offsets: (N, C), what was taken off the scaled values, for it is known; None where nothing was.
        targets: how many of the channels, the first ones, are scored; None for all.
        raw: the rows (N, C) before scaling, where a model reads them so.
        limits: of the forecasts of each series; None where nothing limits them.
        counted: (S, T) bool of S series and T targets, whose errors mean scaled errors are made of; None for all.
    """

    values: Tensor
    observed: Tensor | None = None
    offsets: Tensor | None = None
    targets: int | None = None
    raw: Raw | None = None
    limits: Limits | None = None
    counted: Tensor | None = None

    def to(self, device: torch.device | str) -> ScaledSeries:
        """A copy on `device`."""
        observed, offsets, counted = (
            None if each is None else each.to(device) for each in (self.observed, self.offsets, self.counted)
        )
        return ScaledSeries(self.values.to(device), observed, offsets, self.targets, self.raw, self.limits, counted)
