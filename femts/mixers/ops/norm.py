"""RMSNorm with half of the memory passes of torch's on a CPU, where torch composes it of single operations."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from femts.mixers.ops.gradients import derived, transformed, twice


class RMSNorm(nn.RMSNorm):
    """`torch.nn.RMSNorm` over the last axis, with weights."""

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps or 0.0)


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Divide `x` (..., d) by the root of its mean square plus eps, and multiply by `weight` (d,)."""
    fast = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    if not fast or torch.compiler.is_compiling() or transformed():
        return _plain(x, weight, eps)
    y: Tensor = _RMSNorm.apply(x, weight, eps)
    return y


def _plain(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], weight, eps)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor | None, eps: float) -> Tensor:  # type: ignore[override]
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = size.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        normal = x * scale
        ctx.save_for_backward(x, normal, scale, weight)  # type: ignore[arg-type]
        ctx.eps = eps  # type: ignore[attr-defined]
        return normal if weight is None else normal * weight

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:  # type: ignore[override]
        x, normal, scale, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        if twice():
            grad_x, grad_weight = derived(partial(_plain, eps=ctx.eps), (x, weight), grad)  # type: ignore[attr-defined]
            return grad_x, grad_weight, None
        product, width = grad * normal, normal.shape[-1]
        ones = normal.new_ones(width) if weight is None else weight
        # Component of the gradient along `normal`, which cannot change its norm.
        mean = product @ (ones / -width).unsqueeze(-1)
        along = torch.addcmul(grad if weight is None else grad * weight, normal, mean).mul_(scale)
        return along, None if weight is None else product.sum_to_size(weight.shape), None
