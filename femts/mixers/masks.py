"""The attention mask as the layer reads it, and tokens of which masked ones can do no harm."""

from __future__ import annotations

import torch
from torch import Tensor

MOST = 2.0**20  # of what stands in a masked token; beyond it, projections and gradients of other tokens could overflow


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
    looked_into = attention_mask.is_floating_point() and not (attention_mask.is_meta or torch.compiler.is_compiling())
    if looked_into and not torch.equal(mask.to(attention_mask.dtype), attention_mask):
        raise ValueError(
            "attention_mask has values other than 0 and 1; give True for tokens to read, such as mask == 0 "
            "of one that is added to scores."
        )
    return mask


def harmless(x: Tensor, mask: Tensor | None) -> Tensor:
    """`x` (B, T, D), finite and at most `MOST` where `mask` is False: no weight or gradient of 0
    keeps NaN out of a sum."""
    return x if mask is None else torch.where(mask.unsqueeze(-1), x, torch.nan_to_num(x).clamp(-MOST, MOST))
