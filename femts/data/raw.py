"""Unscaled look-backs, for models that are fitted to each look-back."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Raw(NamedTuple):
    """Unscaled look-backs, on the CPU.

    Attributes:
        values: (B, L, C) float64, transformed if requested and without effects; NaN where missing or before the series
            begins.
        mean, scale: (B or 1, 1, C) float64, of the scaler.
    """

    values: Tensor
    mean: Tensor
    scale: Tensor
