"""The scan of the `mamba` prior by the CUDA kernel of mamba-ssm (Gu & Dao, 2023)."""

from __future__ import annotations

from torch import Tensor

from femts.mixers.ops.gradients import first_only


def selective_scan_mamba_ssm(u: Tensor, delta: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """`selective_scan` of `femts.mixers.ops`: stacks become additional channels with shared step sizes and rates."""
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

    stacks = u.shape[2]
    y: Tensor = selective_scan_fn(
        u.flatten(2).mT.contiguous(),
        delta.repeat(1, 1, stacks).mT.contiguous(),
        -rate.mT.repeat(stacks, 1),
        b.mT.contiguous(),
        c.mT.contiguous(),
    )
    return first_only(y.mT.reshape(u.shape), "selective_scan=mamba_ssm")
