"""Comparing a fast form with its plain twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def with_gradients(call: Callable[..., Tensor], inputs: Sequence[Tensor], device: str = "cpu") -> list[Tensor]:
    """Output of `call` and gradients of its inputs, as float64 on the CPU."""
    given = [x.detach().to(device).requires_grad_() for x in inputs]
    y = call(*given)
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(y)
    gradients = torch.autograd.grad(y, given, upstream, materialize_grads=True)
    return [x.detach().double().cpu() for x in (y, *gradients)]


def assert_near(found: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float) -> None:
    """Each tensor is finite and within `tolerance` of the largest expected entry."""
    for position, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.isfinite().all(), f"output {position}"
        largest = other.abs().max().clamp_min(1e-30)
        assert ((one - other).abs().max() / largest).item() <= tolerance, f"output {position}"
