"""Checks of tokens and their attention mask; masked tokens must not affect the others."""

from __future__ import annotations

import torch
from torch import Tensor

from femts.mixers.ops.gradients import transformed

MOST = 2.0**20  # largest value in a masked token; beyond it, projections and gradients of other tokens could overflow


def check_tokens(x: Tensor, axes: str, weight: Tensor) -> None:
    """Raise ValueError unless `x` has the `axes` (such as "B, T, D") and the width and dtype of `weight` (., D)."""
    if x.dim() != axes.count(",") + 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must be ({axes}) with D = {weight.shape[1]}.")
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"x has dtype {x.dtype}, but the layer has {weight.dtype}; pass x.to({weight.dtype}).")


def as_mask(attention_mask: Tensor | None, x: Tensor) -> Tensor | None:
    """`attention_mask` (B, T) as bool, or None; raise ValueError if it does not fit `x` (B, T, D) or is an additive
    mask (0 for tokens to read)."""
    if attention_mask is None:
        return None
    if attention_mask.shape != x.shape[:2]:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; it must be {tuple(x.shape[:2])}, (B, T)."
        )
    mask = attention_mask.bool()
    # Only a float mask is inspected, because that synchronises with the GPU, and only if it has values.
    unknown = attention_mask.is_meta or torch.compiler.is_compiling() or transformed()
    looked_into = attention_mask.is_floating_point() and not unknown
    if looked_into and not torch.equal(mask.to(attention_mask.dtype), attention_mask):
        raise ValueError(
            "attention_mask has values other than 0 and 1; pass True for tokens to read, such as mask == 0 "
            "for an additive mask."
        )
    return mask


def harmless(x: Tensor, mask: Tensor | None) -> Tensor:
    """`x` (B, T, D), made finite and at most `MOST` (float16: 256) where `mask` is False, because a weight or gradient
    of 0 does not keep NaN out of a sum."""
    if mask is None:
        return x
    most = min(MOST, torch.finfo(x.dtype).max ** 0.5)
    return torch.where(mask.unsqueeze(-1), x, torch.nan_to_num(x).clamp(-most, most))
