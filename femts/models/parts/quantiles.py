"""Quantiles between those of a model, and the pinball loss, whose expectation is minimised by a quantile (Koenker &
Bassett, "Regression Quantiles", Econometrica 1978)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def pinball(forecast: Tensor, target: Tensor, quantiles: Sequence[float], dim: int = -2) -> Tensor:
    """Pinball loss of each value.

    Args:
        forecast: Q quantiles along `dim`, which is negative.
        target: without that dimension.
        quantiles: Q levels in (0, 1).

    Returns:
        In the shape of `forecast`: level * (target - forecast) if the target is above the forecast, otherwise (1 -
        level) * (forecast - target).
    """
    levels = torch.tensor(quantiles, dtype=torch.float32, device=forecast.device).view(-1, *[1] * (-1 - dim))
    error = target.unsqueeze(dim) - forecast
    return torch.maximum(levels * error, (levels - 1) * error)


def mean_pinball(
    outputs: Tensor, target: Tensor, quantiles: Sequence[float], observed: Tensor | None = None, dim: int = -2
) -> Tensor:
    """Mean pinball loss over all quantiles and the `observed` values of the target.

    Args:
        outputs: P steps of Q quantiles along `dim`, with the quantiles of a step side by side.
        target: P steps along `dim`.
        quantiles: Q levels in (0, 1).
        observed: mask in the shape of `target`; None means all.
    """
    losses = pinball(outputs.unflatten(dim, (-1, len(quantiles))), target, quantiles, dim)
    if observed is None:
        return losses.mean()
    return (losses.mean(dim) * observed).sum() / observed.sum().clamp(min=1)


def quantile_at(forecast: Tensor, learned: Sequence[float], quantile: float) -> Tensor:
    """Interpolate one quantile (B, S, C) of `forecast` (B, S, Q, C), whose levels are `learned`; constant beyond the
    outermost ones."""
    place = float(np.interp(quantile, learned, range(len(learned))))
    below = int(place)
    lower = forecast[:, :, below]
    return lower if place == below else torch.lerp(lower, forecast[:, :, below + 1], place - below)
