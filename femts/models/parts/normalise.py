"""Instance normalisation of each window and channel by its own mean and deviation (RevIN without weights, Kim et al.,
ICLR 2022)."""

from __future__ import annotations

from torch import Tensor


def normalise(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise `x` (B, L, C) to mean 0 and deviation 1 over the look-back; also return mean and deviation, (B, 1,
    C)."""
    mean = x.mean(1, keepdim=True)
    deviation = (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    return (x - mean) / deviation, mean, deviation
