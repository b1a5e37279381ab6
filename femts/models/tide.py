"""TiDE: "Long-term Forecasting with TiDE: Time-series Dense Encoder", Das et al., TMLR 2023, section 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from femts.config.bounds import Count, Natural, Share
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.models.base import ForecastModel, Supports
from femts.models.parts.normalise import normalise
from femts.models.registry import register


@dataclass(frozen=True)
class TiDEConfig(ModelConfig):
    """Settings of `tide`; the defaults lie in the middle of the paper's search space.

    Attributes:
        hidden: width of the dense encoder and decoder.
        n_encoder, n_decoder: numbers of residual blocks.
        decoder_out: width of the decoder output per step.
        temporal_hidden: hidden width of the temporal decoder, which combines this output with the known inputs of a
            step.
        narrow: width to which the known inputs of a step are projected.
        dropout: dropout in all residual blocks.
        n_static, n_known: numbers of static and known inputs, which follow from the data.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"hidden": "64,128,256", "n_encoder": "1..2", "dropout": "0..0.5"}

    hidden: Count = 128
    n_encoder: Count = 2
    n_decoder: Count = 2
    decoder_out: Count = 8
    temporal_hidden: Count = 32
    narrow: Count = 4
    dropout: Share = 0.3
    n_static: Natural = 0
    n_known: Natural = 0


class Residual(nn.Module):
    """Dense layer with ReLU, linear layer with dropout, linear skip connection and layer norm: (..., in) -> (...,
    out)."""

    def __init__(self, inputs: int, hidden: int, outputs: int, dropout: float, norm: bool = True) -> None:
        super().__init__()
        self.dense = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs), nn.Dropout(dropout)
        )
        self.skip, self.norm = nn.Linear(inputs, outputs), nn.LayerNorm(outputs) if norm else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(self.dense(x) + self.skip(x))
        return out


@register("tide", summary="Dense encoder and decoder of each channel with its covariates (Das et al. 2023).")
class TiDE(ForecastModel):
    """Encodes the look-back of a channel, its static inputs and the known inputs over look-back and horizon by dense
    residual blocks, decodes a vector for each step, and combines it with the known inputs of that step into a forecast;
    a linear map of the look-back is added."""

    Config: ClassVar[type] = TiDEConfig
    supports = Supports(known=True, static=True, recursive=False, quantiles=True, channels=1, subsampling=True)
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 1e-3}

    def __init__(self, config: TiDEConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        narrow, drop, wide = min(config.narrow, config.n_known), config.dropout, config.hidden
        self.narrow = Residual(config.n_known, config.temporal_hidden, narrow, drop) if narrow else None
        inputs = config.seq_len + config.n_static + narrow * (config.seq_len + config.pred_len)
        sizes = [inputs, *[wide] * config.n_encoder]
        encoder = [Residual(a, wide, b, drop) for a, b in pairwise(sizes)]
        width = config.decoder_out * config.pred_len
        sizes = [*[wide] * config.n_decoder, width]
        decoder = [Residual(a, wide, b, drop) for a, b in pairwise(sizes)]
        self.dense = nn.Sequential(*encoder, *decoder)
        self.temporal = Residual(config.decoder_out + narrow, config.temporal_hidden, self.n_outputs, drop, norm=False)
        self.linear = nn.Linear(config.seq_len, config.pred_len * self.n_outputs)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C)."""
        x, mean, deviation = normalise(batch.past)
        series, steps = x.transpose(1, 2), self.config.pred_len  # (B, C, L)
        known = batch.known_to(steps)
        inputs, ahead = [series], None
        if self.narrow is not None and known is not None:
            features = self.narrow(known.to(x.dtype))  # (B, L + P, r)
            inputs.append(features.flatten(1)[:, None].expand(-1, series.shape[1], -1))
            ahead = features[:, None, -steps:].expand(-1, series.shape[1], -1, -1)
        if batch.static is not None:
            inputs.append(batch.static[:, None].expand(-1, series.shape[1], -1))
        decoded = self.dense(torch.cat(inputs, dim=-1)).unflatten(-1, (steps, -1))  # (B, C, P, decoder_out)
        decoded = decoded if ahead is None else torch.cat([decoded, ahead], dim=-1)
        forecast = self.temporal(decoded).flatten(2) + self.linear(series)
        return forecast.transpose(1, 2) * deviation + mean
