"""What every forecaster is: a module from a scaled look-back to a scaled forecast, with its own frozen configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.errors import UsageError

# What the baselines' papers share: Adam at a low rate that falls by the epoch, no average of the weights, next to no clipping.
PUBLISHED_TRAINING: Mapping[str, Any] = {
    "lr": 1e-4,
    "betas": (0.9, 0.999),
    "weight_decay": 0.0,
    "clip": 1e6,
    "ema": 0.0,
    "schedule": "exponential",
}


def mean_square(forecast: Tensor, target: Tensor, seen: Tensor | None = None) -> Tensor:
    """Mean squared error of two tensors of one shape, over what is `seen` of the target, if that is given."""
    if seen is None:
        return F.mse_loss(forecast, target)
    return ((forecast - target).square() * seen).sum() / seen.sum().clamp(min=1)


class ForecastModel(nn.Module):
    """Base of all forecasters.

    Shapes: B windows, L = `seq_len` steps of look-back, P = `pred_len` steps of forecast, C channels; values are scaled
    (zero mean, unit variance on the training rows).

    Attributes:
        Config: frozen dataclass whose first fields are `seq_len`, `pred_len`, `n_channels`.
        training_defaults: fields of `TrainingConfig` that this model wants different.
        rolls_out: made to go on beyond its horizon, where tables score it, too.
        channel_independent: claims that the forecast of a channel depends on that channel alone; `femts audit` holds it to it.
    """

    Config: ClassVar[type]
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    rolls_out: ClassVar[bool] = False
    channel_independent: ClassVar[bool] = False

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    def forward(self, x: Tensor) -> Tensor:
        """Forecast the next P steps: `x` (B, L, C) -> (B, P, C)."""
        raise TypeError(f"{type(self).__name__} does not define forward")

    def loss(self, x: Tensor, y: Tensor, seen: Tensor | None = None) -> Tensor:
        """Training loss, a scalar, for the look-back `x` (B, L, C) and what followed, `y` (B, P, C).

        `seen` (B, L + P, C) says which of these values are real; the loss leaves the others out.
        """
        return mean_square(self(x), y, None if seen is None else seen[:, x.shape[1] :])

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Before the first step: fit what has a closed form to the training rows `series` (rows, C); by default nothing.

        `observed` (rows, C) says which of them are real; None means all.
        """

    def at_once(self, x: Tensor, steps: int) -> Tensor:
        """What the model forecasts of the next `steps` without going on from a forecast: `x` (B, L, C) -> (B, P or more, C)."""
        return self(x)  # type: ignore[no-any-return]

    def forecast(self, x: Tensor, steps: int) -> Tensor:
        """Any number of next steps: beyond what it forecasts at once, the model reads its forecasts as history.

        Args:
            x: look-back (B, L, C).
            steps: at least 1.

        Returns:
            Forecast (B, steps, C).
        """
        if steps < 1:
            raise UsageError(f"A horizon of {steps} steps cannot be forecast; ask for 1 or more.")
        pieces, left = [], steps
        while True:
            piece = self.at_once(x, left)
            pieces.append(piece)
            left -= piece.shape[1]
            if left <= 0:
                break
            x = torch.cat([x, piece.to(x.dtype)], dim=1)[:, -x.shape[1] :]
        return torch.cat(pieces, dim=1)[:, :steps]
