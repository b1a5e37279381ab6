"""PatchTST: "A Time Series is Worth 64 Words", Nie et al., ICLR 2023, section 3 and appendix A.1, supervised."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Natural, Share
from femts.config.model import ModelConfig, check_heads
from femts.data.batch import Batch
from femts.data.describe import count
from femts.errors import UsageError
from femts.mixers.ops.dropout import Dropout
from femts.models.base import ForecastModel, Supports
from femts.models.parts.normalise import normalise
from femts.models.registry import register


@dataclass(frozen=True)
class PatchTSTConfig(ModelConfig):
    """Settings of `patchtst`; the defaults are the paper's for the small ETTh sets.

    Attributes:
        patch_len: steps per patch.
        stride: steps between the starts of patches; the look-back's last value is repeated for one more patch.
        d_model: width of a token; 128 for the larger sets.
        d_ff: hidden width of the feed-forward layers; 256 for the larger sets.
        n_layers: number of blocks.
        n_heads: number of attention heads; 16 for the larger sets.
        dropout: dropout on embeddings and block outputs; 0.2 for the larger sets.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"d_model": "16,32,64", "n_layers": "1..4", "dropout": "0..0.5"}

    patch_len: int = 16
    stride: int = 8
    d_model: int = 16
    d_ff: Natural = 128
    n_layers: Natural = 3
    n_heads: int = 4
    dropout: Share = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.d_model, self.n_heads)
        if not 1 <= self.patch_len <= self.seq_len or self.stride < 1:
            raise UsageError(
                f"Settings 'model.patch_len' ({self.patch_len}) and 'model.stride' ({self.stride}) give no patches in "
                f"a look-back of {count(self.seq_len, 'step')}; use a patch length of at most that, and both at least 1."
            )

    @property
    def n_patches(self) -> int:
        """Number of patches of a look-back, including the padded one."""
        return (self.seq_len - self.patch_len) // self.stride + 2


class Block(nn.Module):
    """Attention with residual scores from the block before (RealFormer), and a feed-forward; each followed by batch
    norm."""

    def __init__(self, config: PatchTSTConfig) -> None:
        super().__init__()
        width, self.n_heads = config.d_model, config.n_heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, config.d_ff), nn.GELU(), Dropout(config.dropout), nn.Linear(config.d_ff, width)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(2))
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map tokens `x` (B, N, d) and the attention scores of the block before, (B, H, N, N), to those after this
        block."""
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q / math.sqrt(q.shape[-1])) @ k.mT
        scores = scores if before is None else scores + before
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        mixed = self.dropout(self.out(mixed))
        x = self._norm(0, x + self.dropout(mixed))  # twice, as in the authors' code
        return self._norm(1, x + self.dropout(self.feed_forward(x))), scores

    def _norm(self, which: int, x: Tensor) -> Tensor:
        normed: Tensor = self.norms[which](x.flatten(0, 1))
        return normed.view_as(x)


@register("patchtst", summary="Attention across the patches of each channel separately (Nie et al. 2023).")
class PatchTST(ForecastModel):
    """Cuts each normalised channel into overlapping patches, encodes them, and maps all tokens jointly to the
    forecast."""

    Config: ClassVar[type] = PatchTSTConfig
    supports = Supports(channels=1, subsampling=True, quantiles=True)
    training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 5e-4}

    def __init__(self, config: PatchTSTConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        self.embed = nn.Linear(config.patch_len, config.d_model)
        self.position = nn.Parameter(torch.empty(config.n_patches, config.d_model).uniform_(-0.02, 0.02))
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.head = nn.Linear(config.n_patches * config.d_model, config.pred_len * self.n_outputs)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C)."""
        config = self.config
        x, mean, deviation = normalise(batch.past)
        series = F.pad(x.transpose(1, 2), (0, config.stride), mode="replicate")
        patches = series.unfold(-1, config.patch_len, config.stride).flatten(0, 1)  # (B C, N, patch_len)
        tokens, scores = self.dropout(self.embed(patches) + self.position), None
        for block in self.blocks:
            tokens, scores = block(tokens, scores)
        forecast = self.head(tokens.flatten(1)).unflatten(0, (x.shape[0], -1)).transpose(1, 2)
        return forecast * deviation + mean
