"""Dense forms in which definitions are written: no scan, chunks or kernels."""

from __future__ import annotations

import torch
from torch import Tensor


def path_sums(g: Tensor, causal: bool) -> Tensor:
    """`sum_{i<s<=t} g_s` for i <= t and, without `causal`, `sum_{t<=s<i} g_s` for i > t: (B, T, c) -> (B, T, T, c)."""
    length = g.shape[1]
    sums = torch.zeros(g.shape[0], length, length, g.shape[2], dtype=g.dtype)
    for t in range(length):
        for i in range(length):
            if i < t:
                sums[:, t, i] = g[:, i + 1 : t + 1].sum(1)
            elif i > t:
                sums[:, t, i] = -torch.inf if causal else g[:, t:i].sum(1)
    return sums


def rotated(x: Tensor, theta: float, start: int | Tensor = 0) -> Tensor:
    """Rotary positions as complex numbers: pair j turns by t * theta^(-j / pairs), t from `start`. `x` (B, T, H, d)."""
    half = x.shape[-1] // 2
    angle = (start + torch.arange(x.shape[1]))[..., None, None] * theta ** (-torch.arange(half, dtype=x.dtype) / half)
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], dim=-1)
