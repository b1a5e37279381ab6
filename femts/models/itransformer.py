"""iTransformer: "Inverted Transformers Are Effective for Time Series Forecasting", Liu et al., ICLR 2024, section 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Natural, Share
from femts.config.model import ModelConfig, check_heads
from femts.data.batch import Batch
from femts.models.base import ForecastModel, Supports
from femts.models.parts.normalise import normalise
from femts.models.registry import register


@dataclass(frozen=True)
class ITransformerConfig(ModelConfig):
    """Settings of `itransformer`; the defaults are the paper's for ETTh1 at horizons 96 and 192.

    Attributes:
        d_model: width of a token; 512 for ETTh1 at horizons 336 and 720.
        d_ff: hidden width of the feed-forward layers.
        n_layers: number of blocks.
        n_heads: number of attention heads.
        dropout: dropout on embeddings, attention weights and block outputs.
        n_known: number of calendar features, which follows from the step of the data (`--calendar`).
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"d_model": "128,256,512", "n_layers": "1..4", "dropout": "0..0.3"}

    d_model: int = 256
    d_ff: Natural = 256
    n_layers: Natural = 2
    n_heads: int = 8
    dropout: Share = 0.1
    n_known: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.d_model, self.n_heads)


@register(
    "itransformer", summary="Attention across channels, with each channel's look-back as one token (Liu et al. 2024)."
)
class ITransformer(ForecastModel):
    """Embeds the whole look-back of each channel as a token, attends across channels, and maps each token to a
    forecast.

    Calendar features of the look-back are additional tokens, as in the authors' code, and have no forecast.
    """

    Config: ClassVar[type] = ITransformerConfig
    supports = Supports(calendar=True, quantiles=True)
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 1e-4}

    def __init__(self, config: ITransformerConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        self.embed, self.dropout = nn.Linear(config.seq_len, config.d_model), nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.d_model, config.n_heads, config.d_ff, config.dropout, activation=F.gelu, batch_first=True
            )
            for _ in range(config.n_layers)
        )
        self.norm, self.head = nn.LayerNorm(config.d_model), nn.Linear(config.d_model, config.pred_len * self.n_outputs)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C)."""
        x, mean, deviation = normalise(batch.past)
        if batch.known is not None:
            x = torch.cat([x, batch.known[:, : x.shape[1]].to(x.dtype)], dim=-1)
        tokens = self.dropout(self.embed(x.transpose(1, 2)))  # (B, C + K, d_model)
        for block in self.blocks:
            tokens = block(tokens)
        forecast: Tensor = self.head(self.norm(tokens[:, : self.config.n_channels])).transpose(1, 2)
        return forecast * deviation + mean
