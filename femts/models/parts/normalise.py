"""Instance normalisation: each window and channel by its own mean and deviation (Kim et al., RevIN,
ICLR 2022; no weights)."""

from __future__ import annotations

from torch import Tensor


def normalise(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`x` (B, L, C) -> the same with mean 0 and deviation 1 over its look-back, and that mean and
    deviation, (B, 1, C)."""
    mean = x.mean(1, keepdim=True)
    deviation = (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    return (x - mean) / deviation, mean, deviation
