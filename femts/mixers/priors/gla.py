"""Gated linear attention as a selection prior (appendix H.2): linear attention with a learned decay."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.priors.base import Params, at_least_float32
from femts.mixers.priors.linear import LinearPrior
from femts.mixers.priors.registry import register_prior


@register_prior
class GatedLinearPrior(LinearPrior):
    """One decay per head and token, `exp(g_t) = sigmoid(projection + bias)`, initialised to memories of 8 to 400 tokens
    across the heads."""

    NAME, ORDER = "gla", 2
    NO_WEIGHT_DECAY = ("decay_bias",)

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__(config, widths)
        self.param_widths = {**self.param_widths, "decay": config.n_head}
        self.decay_bias = nn.Parameter(torch.linspace(2.0, 6.0, config.n_head))

    @classmethod
    def weight_count(cls, config: FreeEnergyMixerConfig, fem_dim: int, qk_dim: int) -> int:
        return super().weight_count(config, fem_dim, qk_dim) + config.n_embd * config.n_head

    def log_decay(self, params: Params) -> Tensor:
        return F.logsigmoid(at_least_float32(params["decay"] + self.decay_bias))
