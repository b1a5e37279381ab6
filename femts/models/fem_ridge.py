"""The mean of a segment forecaster and a ridge regression, also fed back in recursive forecasts.

The two make different errors. The ridge regression forecasts any horizon directly from the look-back and does not
drift; the mixer is better at short horizons. Neither is trained on the residuals of the other: fitted to the residuals
of a linear map, the mixer overfits (results/trials.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from femts.config.bounds import UpTo1
from femts.data.batch import Batch
from femts.models.fem import SegmentConfig, SegmentForecaster
from femts.models.registry import register
from femts.models.ridge import RidgeConfig


@dataclass(frozen=True)
class FemRidgeConfig(RidgeConfig, SegmentConfig):
    """Configuration of `FemRidge`: the fields of the segment forecaster and of the ridge regression."""

    window_std: UpTo1 = 0.5  # best of 0, .25, .5 and 1 on five datasets (results/trials.md)


@register("fem_sm_ridge", "Mean of fem_sm and ridge at each step", prior="softmax")
@register("fem_gla_ridge", "Mean of fem_gla and ridge at each step", prior="gla")
@register("fem_aft_ridge", "Mean of fem_aft and ridge at each step", prior="rnn_softmax")
@register("fem_mamba_ridge", "Mean of fem_mamba and ridge at each step", prior="mamba")
@register("sm_ridge", "Mean of sm and ridge at each step", prior="softmax", components="")
class FemRidge(SegmentForecaster):
    """Mean of a segment forecaster and a ridge regression (see the module); the loss is that of the segment forecaster
    alone. With quantiles, all of them move with the median. Only the segment forecaster reads known inputs."""

    Config = FemRidgeConfig

    def __init__(self, config: FemRidgeConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        self.linear = config.linear()

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit the ridge regression to the training rows."""
        self.linear.fit(series, self.config.ridge, observed)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C)."""
        forecast = self.direct_forecast(batch, self.config.pred_len)
        return forecast.flatten(1, 2) if self.quantiles else forecast

    def direct_forecast(self, batch: Batch, steps: int) -> Tensor:
        """Forecast `steps` steps, at most `longest`: the ridge regression from the look-back, the mixer recursively
        from the look-back and the means so far."""
        pieces = []
        for line in self.linear(batch.past, min(steps, self.linear.longest)).split(self.config.pred_len, dim=1):
            piece = self.ordered(super().forward(batch))[:, : line.shape[1]]
            point = self.point(piece)
            mean = (point + line) / 2
            pieces.append(piece + (mean - point)[:, :, None] if self.quantiles else mean)
            batch = batch.after(mean)
        return torch.cat(pieces, dim=1)
