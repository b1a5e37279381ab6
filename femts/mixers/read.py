"""The free-energy read of a prior (section 2.3.2, eq. 10 and 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.ops.norm import rms_norm


class FreeEnergyRead(NamedTuple):
    """Parts of a read before the output projection, each (B, T, H, d_v) unless stated otherwise; None for disabled
    components.

    Attributes:
        mu: mean of the values under the prior.
        f_max: free energy at the largest inverse temperature (L).
        f: the read, `(1 - lam) mu + lam f_max`.
        lam: inner gate in [0, 1] (T).
        gate: outer gate, positive, with unit root mean square over the H d_v channels (G).
        beta: largest inverse temperature, (H, d_v) (L).
    """

    mu: Tensor
    f_max: Tensor | None
    f: Tensor
    lam: Tensor | None
    gate: Tensor | None
    beta: Tensor | None


def free_energy_read(
    mix: Callable[[Tensor], Tensor],
    v: Tensor,
    beta: Tensor | None,
    lam: Tensor | None,
    gate: Tensor | None,
    cap: float,
    support: Tensor | None,
) -> FreeEnergyRead:
    """Read `v` (..., H, d_v) through a prior.

    The prior mixes `[v, exp(beta v)]` once. Only the exponent is capped, at `|beta v| <= cap`: with a cap of 40 every
    sum fits float32 and bfloat16, so no maximum over time is needed and causality is exact.

    Args:
        mix: applies p to a stack of value channels.
        beta: (H, d_v), or None for the mean alone.
        lam, gate: as in `FreeEnergyRead`, in the shape of `v`.
        support: False for tokens that see nothing (shape of `v` without its last two axes); their read is 0.
    """
    if beta is None:
        mu = mix(v)
        return FreeEnergyRead(mu, None, mu, None, gate, None)
    scaled = (beta * v).clamp(-cap, cap)
    mixed = mix(torch.cat([v, scaled.exp().to(v.dtype)], dim=-1))
    mu, z = (part.contiguous() for part in mixed.chunk(2, dim=-1))  # otherwise the logarithm is not vectorised
    if support is not None:
        z = z.masked_fill(~support[..., None, None], 1.0)
    f_max = (z.log() / beta).to(v.dtype)
    f = f_max if lam is None else torch.lerp(mu, f_max, lam.to(mu.dtype))
    return FreeEnergyRead(mu, f_max, f, lam, gate, beta)


def outer_gate(pre: Tensor, eps: float) -> Tensor:
    """G: softplus, then unit root mean square over the last axis (section 2.3.2): positive, and preserves the scale of
    the read.

    `eps` is a lower bound of the softplus, which keeps the mean square positive and its gradient finite if all of them
    underflow.
    """
    gate = F.softplus(pre) + eps
    return rms_norm(gate, None, 0.0)
