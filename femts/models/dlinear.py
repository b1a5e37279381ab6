"""DLinear: "Are Transformers Effective for Time Series Forecasting?", Zeng et al., AAAI 2023,
section 4.2 (LTSF-Linear)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Count
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.models.base import ForecastModel, Supports
from femts.models.registry import register


@dataclass(frozen=True)
class DLinearConfig(ModelConfig):
    """Settings of `dlinear`.

    Attributes:
        kernel_size: steps of the moving average that gives the trend; 25 in the paper.
        individual: one pair of linear maps per channel instead of one pair shared by all.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"kernel_size": "5,13,25,49,97", "individual": "false,true"}

    kernel_size: Count = 25
    individual: bool = False


class ChannelLinear(nn.Module):
    """A linear map along time, shared by all channels (`maps` 1) or one for each (`maps` C)."""

    def __init__(self, in_steps: int, out_steps: int, maps: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_steps)  # the bound of nn.Linear for the inputs of one map
        self.weight = nn.Parameter(torch.empty(maps, out_steps, in_steps).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(maps, out_steps).uniform_(-bound, bound))

    def forward(self, series: Tensor) -> Tensor:
        """`series` (B, C, in) -> (B, C, out)."""
        if len(self.weight) == 1:
            return F.linear(series, self.weight[0], self.bias[0])
        return torch.einsum("bci,coi->bco", series, self.weight) + self.bias


@register("dlinear", summary="Trend by moving average and remainder, with one linear map each (Zeng et al. 2023).")
class DLinear(ForecastModel):
    """Splits the look-back into a moving average and a remainder, and adds the forecasts of one linear map for each."""

    Config: ClassVar[type] = DLinearConfig
    supports = Supports(channels=1, quantiles=True)

    def __init__(self, config: DLinearConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        maps, width = config.n_channels if config.individual else 1, config.pred_len * self.n_outputs
        self.remainder = ChannelLinear(config.seq_len, width, maps)
        self.trend = ChannelLinear(config.seq_len, width, maps)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C)."""
        series = batch.past.transpose(1, 2)
        trend = moving_average(series, self.config.kernel_size)
        return (self.remainder(series - trend) + self.trend(trend)).transpose(1, 2)


def moving_average(series: Tensor, kernel_size: int) -> Tensor:
    """Centred moving average of `series` (B, C, L) over `kernel_size` steps, in the same shape, padded with the end
    values.

    Computed from differences of prefix sums, so its cost does not depend on the kernel. The mean of each series is
    subtracted first, because prefix sums of a long series far from 0 lose all digits of the differences.
    """
    before = (kernel_size - 1) // 2
    mean = series.mean(-1, keepdim=True)
    padded = F.pad(series - mean, (before, kernel_size - 1 - before), mode="replicate")
    sums = F.pad(padded.cumsum(-1), (1, 0))
    return torch.add(mean, sums[..., kernel_size:] - sums[..., :-kernel_size], alpha=1 / kernel_size)
