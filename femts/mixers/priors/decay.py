"""Input-conditioned exponential decay as a selection prior (appendix H.3, eq. 31)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.ops.dense import path_sums
from femts.mixers.ops.scan import decayed_sum, reversed_decayed_sum
from femts.mixers.priors.base import Params, PerChannelBound, Prior, at_least_float32, visible
from femts.mixers.priors.registry import register_prior


@register_prior
class DecayPrior(Prior):
    """One decay per channel and token, `sigmoid(projection + bias)`, initialised to memories of 8 to 400 tokens across
    the channels."""

    NAME, ORDER, per_channel, operation = "rnn_decay", 4, True, "scan"
    NO_WEIGHT_DECAY = ("decay_bias",)

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__(config, widths)
        self.param_widths = {"decay": widths.fem_dim}
        self.decay_bias = nn.Parameter(torch.linspace(2.0, 6.0, widths.fem_dim))

    def _log_decay(self, params: Params) -> Tensor:
        return F.logsigmoid(at_least_float32(params["decay"] + self.decay_bias))

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        return path_sums(keep * F.logsigmoid(params["decay"] + self.decay_bias), self.config.causal)

    def bind(self, params: Params, mask: Tensor | None) -> PerChannelBound:
        causal, log_decay = self.config.causal, self._log_decay(params)
        if mask is not None:  # tokens that nobody may read count as absent
            log_decay = log_decay.masked_fill(~mask[:, :, None], 0.0)
        fade = log_decay.unsqueeze(2)

        def accumulate(u: Tensor) -> Tensor:
            past = decayed_sum(u, fade)
            return past if causal else past + reversed_decayed_sum(u, fade)

        return PerChannelBound(accumulate, log_decay, mask, visible(mask, causal))

    def init_state(self, batch_size: int, value_width: int) -> Tensor:
        """Decayed sums of values and 1, (B, k + 1, E)."""
        width = self.widths.fem_dim
        return self.decay_bias.new_zeros(batch_size, value_width // width + 1, width)

    def step(self, params: Params, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        decay = self._log_decay(params).exp()
        columns = values[:, 0].unflatten(-1, (-1, decay.shape[-1])).to(decay.dtype)
        columns = torch.cat([columns, torch.ones_like(decay).unsqueeze(1)], dim=1)
        state = decay.unsqueeze(1) * state.to(decay) + columns
        return (state[:, :-1] / state[:, -1:]).flatten(1).unsqueeze(1).to(values.dtype), state
