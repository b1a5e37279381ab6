"""The hidden temperature and the posterior: diagnostics from the dense prior, O(T^2) in memory (appendix G.1)."""

from __future__ import annotations

import torch
from torch import Tensor


def log_tilted(p: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """`log p_t(i) + beta_t v_i`: `p` (B, Q, T, H, d_v or 1), `v` (B, T, H, d_v), `beta` (B, Q, H, d_v) -> (B, Q, T, H, d_v)."""
    return p.log() + beta.unsqueeze(2) * v.unsqueeze(1)


def find_hidden_temperature(p: Tensor, v: Tensor, beta_max: Tensor, lam: Tensor) -> Tensor:
    """The beta* in [0, beta_max] whose free energy is the gated read (proposition G.2), by bisection on the rising F.

    Where a channel is constant over the support every beta answers; the lowest is returned.

    Args:
        p: dense prior of Q tokens over T, (B, Q, T, H, d_v or 1); v: (B, T, H, d_v); lam: (B, Q, H, d_v); beta_max:
            broadcastable to it.

    Returns:
        beta* (B, Q, H, d_v), to the precision of the type.
    """
    high = beta_max.expand_as(lam).clone()
    mu = (p * v.unsqueeze(1)).sum(2)
    away = v.unsqueeze(1) - mu.unsqueeze(2)

    def gain(beta: Tensor) -> Tensor:
        """F(beta) - mu without cancellation, so that small gates are told apart."""
        tilt = beta.unsqueeze(2) * away
        top = tilt.masked_fill(p == 0, -torch.inf).amax(2).clamp_min(0.0)
        small = (p * torch.expm1(tilt.clamp_max(1.0))).sum(2).log1p()
        return torch.where(top < 1.0, small, torch.logsumexp(p.log() + tilt, dim=2)) / beta

    target = lam * gain(high)
    low, steps = torch.zeros_like(high), 60 if v.dtype == torch.float64 else 30
    largest = high.clone()
    for _ in range(steps):
        middle = (low + high) / 2
        below = gain(middle) < target
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    found = (low + high) / 2
    return torch.where(lam >= 1, largest, torch.where(lam <= 0, torch.zeros_like(found), found))
