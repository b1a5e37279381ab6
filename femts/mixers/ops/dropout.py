"""Dropout with cheap random numbers on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers.ops.gradients import transformed

_LEVELS = 2**16


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`; on a CPU with 16 random bits per element, four elements per draw, instead of a float64 draw
    for each.

    There, the drop probability is `p` rounded to 1 / 65536, and the kept elements are scaled by exactly that
    probability. `torch.func` uses torch's own dropout, which supports `vmap(randomness=...)`.
    """

    def forward(self, x: Tensor) -> Tensor:
        plain = x.device.type != "cpu" or torch.compiler.is_compiling() or transformed()
        if plain or not self.training or self.p == 0.0:
            return F.dropout(x, self.p, self.training)
        dropped = round(self.p * _LEVELS)
        if dropped in (0, _LEVELS):
            return F.dropout(x, dropped / _LEVELS)
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
        mask = bits[: x.numel()].view(x.shape) >= dropped - _LEVELS // 2
        return x * mask.to(x.dtype).mul_(_LEVELS / (_LEVELS - dropped))
