"""AFT's normalised exponential weights as a selection prior (appendix H.3, eq. 30): `p_t(i)`
proportional to `exp(k_i)`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from femts.mixers.budget import Widths
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.ops.scan import decayed_sum, running_max
from femts.mixers.priors.base import Params, PerChannelBound, Prior, at_least_float32, visible
from femts.mixers.priors.registry import register_prior


class AFTState(NamedTuple):
    """`top` (B, E): largest key so far; `sums` (B, k + 1, E): sums of `exp(key - top)` times values and 1."""

    top: Tensor
    sums: Tensor


@register_prior
class AFTPrior(Prior):
    """One key per channel. Keys are unbounded, so sums are kept relative to the largest key of the *prefix*: with a
    maximum over all time, the future would change the rounding, or even the value, of the past."""

    NAME, ORDER, per_channel, operation = "rnn_softmax", 3, True, "scan"
    row_params = frozenset({"q"})

    def __init__(self, config: FreeEnergyMixerConfig, widths: Widths) -> None:
        super().__init__(config, widths)
        self.param_widths = {"k": widths.fem_dim, **({"q": widths.fem_dim} if _has_query_gate(config) else {})}

    @classmethod
    def weight_count(cls, config: FreeEnergyMixerConfig, fem_dim: int, qk_dim: int) -> int:
        return config.n_embd * fem_dim * (1 + _has_query_gate(config))

    def log_scores(self, params: Params, keep: Tensor) -> Tensor:
        return params["k"].unsqueeze(1).expand(-1, params["k"].shape[1], -1, -1)

    def bind(self, params: Params, mask: Tensor | None) -> PerChannelBound:
        k = at_least_float32(params["k"])
        seen = k.detach()  # the result does not depend on the reference point, nor does its gradient
        if mask is not None:
            seen = seen.masked_fill(~mask[:, :, None], torch.finfo(k.dtype).min)
            k = torch.where(mask[:, :, None], k, seen)
        if not self.config.causal:
            top = seen.amax(dim=1, keepdim=True) if seen.shape[1] else seen
            weight = torch.exp(k - top).unsqueeze(2)
            return PerChannelBound(
                lambda u: (weight * u).sum(1, keepdim=True).expand_as(u), k, mask, visible(mask, causal=False)
            )
        top = running_max(seen)
        fade = (torch.cat([top[:, :1], top[:, :-1]], dim=1) - top).unsqueeze(2)
        weight = torch.exp(k - top).unsqueeze(2)
        return PerChannelBound(lambda u: decayed_sum(weight * u, fade), k, mask, visible(mask, causal=True))

    def post_read(self, read: Tensor, params: Params) -> Tensor:
        return torch.sigmoid(params["q"]) * read if "q" in params else read

    def init_state(self, batch_size: int, value_width: int) -> AFTState:
        width = self.widths.fem_dim
        return AFTState(
            torch.full((batch_size, width), -torch.inf), torch.zeros(batch_size, value_width // width + 1, width)
        )

    def step(self, params: Params, values: Tensor, state: AFTState) -> tuple[Tensor, AFTState]:
        k = at_least_float32(params["k"])
        columns = values[:, 0].unflatten(-1, (-1, k.shape[-1])).to(k.dtype)
        columns = torch.cat([columns, torch.ones_like(k).unsqueeze(1)], dim=1)
        top = torch.maximum(state.top.to(k), k)
        fade, weight = torch.exp(state.top.to(k) - top), torch.exp(k - top)
        sums = fade.unsqueeze(1) * state.sums.to(k) + weight.unsqueeze(1) * columns
        mixed = (sums[:, :-1] / sums[:, -1:]).flatten(1).unsqueeze(1).to(values.dtype)
        return mixed, AFTState(top, sums)


def _has_query_gate(config: FreeEnergyMixerConfig) -> bool:
    """AFT alone multiplies its read by sigmoid(q) (Zhai et al., 2021); L or G replace this gate."""
    return not (config.use_lse or config.use_outer_gate)
