"""Linear attention without feature map or normaliser: the LinTrans baseline of SAMoVAR (Lu & Yang, 2025)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from femts.mixers.ops.dropout import Dropout


class UnnormalisedLinearAttention(nn.Module):
    """`o_t = sum_{i<=t} <q_t, k_i> v_i` per head, (B, T, D) -> (B, T, D).

    Its weights can be negative and do not sum to one, so it is not a selection prior and has no free-energy read. The
    dense form suffices for the short sequences of the forecaster.
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, rows: slice = slice(None)) -> Tensor:
        """Mix `x` (B, T, D) for the Q tokens `rows`: (B, Q, D)."""
        q, k, v = self.in_proj(x).unflatten(-1, (3, self.n_heads, -1)).unbind(2)
        scores = torch.einsum("bthd,bihd->bhti", q, k).tril()[:, :, rows]
        mixed = torch.einsum("bhti,bihd->bthd", scores, v).flatten(2)
        y: Tensor = self.out_proj(self.dropout(mixed))
        return y
