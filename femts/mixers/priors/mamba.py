"""A positive selective state space as a selection prior (appendix H.4, eq. 32; Gu & Dao, 2023).

`s_t(i) = sum_n C_tn exp(sum_{i<s<=t} delta_s A_n) delta_i B_in`, per channel, plus a positive skip at i = t. All
factors are positive, and hence the impulse response; its normaliser is the same scan over ones.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.ops.dense import path_sums
from femts.mixers.ops.selective_scan import selective_scan
from femts.mixers.ops.selective_scan_plain import log_decays, selective_scan_two_sided
from femts.mixers.priors.base import Params, PerChannelBound, Prior, at_least_float32, visible, without_autocast
from femts.mixers.priors.registry import register_prior


@register_prior
class MambaPrior(Prior):
    """Step sizes per channel from a low-rank map; B and C shared by the channels; `ssm_rank` states per channel."""

    NAME, ORDER, per_channel, operation = "mamba", 5, True, "selective_scan"
    NO_WEIGHT_DECAY = ("A_log", "skip", "dt_proj.bias")

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__(config, widths)
        width, states, rank = widths.fem_dim, config.ssm_rank, _delta_rank(config.n_embd)
        self.param_widths = {"dt": rank, "B": states, "C": states}
        self.dt_proj = nn.Linear(rank, width)
        self.A_log = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(width, 1))
        self.skip = nn.Parameter(torch.full((width,), -2.0))
        with torch.no_grad():  # step sizes are initialised log-uniformly in [.001, .1], as in Mamba
            step = torch.exp(torch.linspace(math.log(1e-3), math.log(1e-1), width))
            self.dt_proj.bias.copy_(step + torch.log(-torch.expm1(-step)))  # inverse softplus

    def _system(self, params: Params) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """step size (..., E), rate (N, E), b and c (..., N), skip (E,)."""
        eps = self.config.eps  # keeps every weight above 0 if a softplus underflows
        delta = F.softplus(at_least_float32(self.dt_proj(params["dt"]))) + eps
        b, c = (F.softplus(at_least_float32(params[name])) + eps for name in ("B", "C"))
        rate = at_least_float32(self.A_log).exp().mT.contiguous()
        return delta, rate, b, c, F.softplus(at_least_float32(self.skip))

    @classmethod
    def weight_count(cls, config: FreeEnergyMixerConfig, fem_dim: int, qk_dim: int) -> int:
        rank, states = _delta_rank(config.n_embd), config.ssm_rank
        return config.n_embd * (rank + 2 * states) + fem_dim * (rank + states + 1)

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        eps = self.config.eps
        delta = F.softplus(self.dt_proj(params["dt"])) + eps
        b, c = F.softplus(params["B"]) + eps, F.softplus(params["C"]) + eps
        s = torch.zeros(delta.shape[0], delta.shape[1], *delta.shape[1:], dtype=delta.dtype)
        for n in range(self.config.ssm_rank):  # one term of eq. 32 per state
            decay = path_sums(keep * -delta * self.A_log[:, n].exp(), self.config.causal).exp()
            s = s + c[:, :, None, None, n] * decay * (delta * b[..., n : n + 1]).unsqueeze(1)
        s = s + torch.eye(s.shape[1], dtype=s.dtype)[None, :, :, None] * F.softplus(self.skip)
        return s.log()

    def bind(self, params: Params, mask: Tensor | None) -> PerChannelBound:
        causal = self.config.causal
        delta, rate, b, c, skip = self._system(params)
        if mask is not None:  # tokens that nobody may read count as absent: no time passes
            delta = delta.masked_fill(~mask[:, :, None], 0.0)

        def accumulate(u: Tensor) -> Tensor:
            with without_autocast(u):
                scan = selective_scan if causal else selective_scan_two_sided
                return scan(u, delta, rate, b, c) + skip * u

        return PerChannelBound(accumulate, delta, mask, visible(mask, causal))

    def init_state(self, batch_size: int, value_width: int) -> Tensor:
        """States of values and 1, (B, k + 1, N, E)."""
        width, states = self.A_log.shape
        return self.A_log.new_zeros(batch_size, value_width // width + 1, states, width)

    def step(self, params: Params, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        delta, rate, b, c, skip = self._system(params)
        columns = values[:, 0].unflatten(-1, (-1, delta.shape[-1])).to(delta.dtype)
        columns = torch.cat([columns, torch.ones_like(columns[:, :1])], dim=1)  # (B, k + 1, E)
        fed = (delta.unsqueeze(1) * columns).unsqueeze(2) * b[:, None, :, None]
        state = log_decays(delta, rate).exp().unsqueeze(1) * state.to(delta) + fed
        with without_autocast(state):
            scores = torch.einsum("bkne,bn->bke", state, c) + skip * columns
        return (scores[:, :-1] / scores[:, -1:]).flatten(1).unsqueeze(1).to(values.dtype), state


def _delta_rank(n_embd: int) -> int:
    """Rank of the step-size map (Gu & Dao, 2023: D/16)."""
    return max(1, math.ceil(n_embd / 16))
