"""Rotary position embedding (Su et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor


def rotate(x: Tensor, theta: float, start: int | Tensor = 0, stride: int = 1) -> Tensor:
    """Rotate channel pairs (j, j + d/2) of `x` (B, T, H, d), d even, by angles proportional to the position.

    The dot product of two rotated vectors depends only on the difference of their positions. `start` is the position of
    the first token, a number or (B, 1), and `stride` the distance between tokens. Angles are computed in float64 if the
    device supports it: in float32 the thousandth position is off by 1e-4.
    """
    half = x.shape[-1] // 2
    kind = torch.float32 if x.device.type == "mps" else torch.float64
    frequency = theta ** (-torch.arange(half, device=x.device, dtype=kind) / half)
    position = start + stride * torch.arange(x.shape[1], device=x.device, dtype=kind)
    angle = position[..., None, None] * frequency  # (T, 1, half) or (B, T, 1, half)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
