"""The selective scan by definition, against which the fast forms are tested; see `selective_scan`."""

from __future__ import annotations

import torch
from torch import Tensor

from femts.mixers.ops.scan import decayed_sum, reversed_decayed_sum


def selective_scan_plain(u: Tensor, delta: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The definition, which materialises every state of every step."""
    return torch.einsum("btkne,btn->btke", decayed_sum(*_spread(u, delta, rate, b)), c)


def selective_scan_two_sided(u: Tensor, delta: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The plain form plus its mirror image without the diagonal."""
    h = reversed_decayed_sum(*_spread(u, delta, rate, b))
    return selective_scan_plain(u, delta, rate, b, c) + torch.einsum("btkne,btn->btke", h, c)


def _spread(u: Tensor, delta: Tensor, rate: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs of each step to the states, (B, T, K, N, E), and their log decays."""
    return b[:, :, None, :, None] * (delta.unsqueeze(2) * u).unsqueeze(3), log_decays(delta, rate).unsqueeze(2)


def log_decays(delta: Tensor, rate: Tensor) -> Tensor:
    """Step sizes (..., E) and rates (N, E) -> (..., N, E)."""
    return delta.unsqueeze(-2) * -rate
