"""Linear attention without a normalizer."""

from __future__ import annotations

import torch

from femts.models.parts.lintrans import UnnormalisedLinearAttention


def test_equals_the_explicit_sum() -> None:
    torch.manual_seed(0)
    layer = UnnormalisedLinearAttention(d_model=8, n_heads=2, dropout=0.0).double()
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    q, k, v = (part.reshape(3, 5, 2, 4) for part in layer.in_proj(x).chunk(3, dim=-1))
    read = torch.zeros(3, 5, 2, 4, dtype=torch.float64)
    for t in range(5):
        for i in range(t + 1):
            read[:, t] += (q[:, t] * k[:, i]).sum(-1, keepdim=True) * v[:, i]
    torch.testing.assert_close(layer(x), layer.out_proj(read.flatten(2)), rtol=1e-12, atol=1e-12)
