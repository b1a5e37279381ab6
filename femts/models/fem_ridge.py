"""A segment forecaster and a ridge regression as equal partners: their mean is the forecast, and what they go on from.

The partners err differently. The ridge regression sees any horizon from the look-back itself and
does not drift; the mixer is the better one at short horizons. Neither is trained to mend the other:
fitted to what a linear path leaves over, the mixer overfits (results/trials.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from femts.config.bounds import UpTo1
from femts.data.batch import Batch
from femts.models.fem import SegmentConfig, SegmentForecaster
from femts.models.registry import register
from femts.models.ridge import RidgeConfig


@dataclass(frozen=True)
class FemRidgeConfig(RidgeConfig, SegmentConfig):
    """Configuration of `FemRidge`: that of the segment forecaster, and that of the ridge regression."""

    window_std: UpTo1 = 0.5  # of 0, .25, .5 and 1 on five data sets (results/trials.md)


@register("fem_sm_ridge", "fem_sm averaged with ridge, step by step", prior="softmax")
@register("fem_gla_ridge", "fem_gla averaged with ridge, step by step", prior="gla")
@register("fem_aft_ridge", "fem_aft averaged with ridge, step by step", prior="rnn_softmax")
@register("fem_mamba_ridge", "fem_mamba averaged with ridge, step by step", prior="mamba")
@register("sm_ridge", "sm averaged with ridge, step by step", prior="softmax", components="")
class FemRidge(SegmentForecaster):
    """Mean of a segment forecaster and a ridge regression (see the module); the loss is the former's alone."""

    Config = FemRidgeConfig
    # The ridge regression has a mean alone, and reads the channel alone.
    supports = replace(SegmentForecaster.supports, known=False, quantiles=False)

    def __init__(self, config: FemRidgeConfig) -> None:
        super().__init__(config)
        self.linear = config.linear()

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Fit the ridge regression to the training rows."""
        self.linear.fit(series, self.config.ridge, observed)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C)."""
        return self.direct_forecast(batch, self.config.pred_len)

    def direct_forecast(self, batch: Batch, steps: int) -> Tensor:
        """The next `steps`, at most `longest`: the ridge regression's from the look-back, the mixer's from it and the
        means so far."""
        pieces = []
        for line in self.linear(batch.past, min(steps, self.linear.longest)).split(self.config.pred_len, dim=1):
            piece = (super().forward(batch)[:, : line.shape[1]] + line) / 2
            pieces.append(piece)
            batch = batch.after(piece)
        return torch.cat(pieces, dim=1)
