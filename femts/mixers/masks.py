"""Tokens and their attention mask as the layer reads them; masked tokens can do no harm."""

from __future__ import annotations

import torch
from torch import Tensor

from femts.mixers.ops.gradients import transformed

MOST = 2.0**20  # of what stands in a masked token; beyond it, projections and gradients of other tokens could overflow


def check_tokens(x: Tensor, axes: str, weight: Tensor) -> None:
    """ValueError where `x` lacks the `axes` (such as "B, T, D"), or the width and type of `weight` (., D)."""
    if x.dim() != axes.count(",") + 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must be ({axes}) with D = {weight.shape[1]}.")
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"x is of {x.dtype} and the layer of {weight.dtype}; give x.to({weight.dtype}).")


def as_mask(attention_mask: Tensor | None, x: Tensor) -> Tensor | None:
    """`attention_mask` (B, T) as bool, or None; ValueError where it does not fit `x` (B, T, D), or is one to add
    to scores, 0 for what is read."""
    if attention_mask is None:
        return None
    if attention_mask.shape != x.shape[:2]:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; it must be {tuple(x.shape[:2])}, (B, T)."
        )
    mask = attention_mask.bool()
    # Only a mask of floats is looked into, as that makes a GPU wait, and only where there are values.
    unknown = attention_mask.is_meta or torch.compiler.is_compiling() or transformed()
    looked_into = attention_mask.is_floating_point() and not unknown
    if looked_into and not torch.equal(mask.to(attention_mask.dtype), attention_mask):
        raise ValueError(
            "attention_mask has values other than 0 and 1; give True for tokens to read, such as mask == 0 "
            "of one that is added to scores."
        )
    return mask


def harmless(x: Tensor, mask: Tensor | None) -> Tensor:
    """`x` (B, T, D), finite and at most `MOST` (float16: 256) where `mask` is False: no weight or
    gradient of 0 keeps NaN out of a sum."""
    if mask is None:
        return x
    most = min(MOST, torch.finfo(x.dtype).max ** 0.5)
    return torch.where(mask.unsqueeze(-1), x, torch.nan_to_num(x).clamp(-most, most))
