"""Products in bfloat16 inside a float32 step, for CPUs that multiply bfloat16 natively (AMX, AVX512-BF16).

An autocast over everything gains nothing there: softmax, exponentials, norms and residuals cost
more in 16 bits than in 32. What gains are the two products that most of a step goes into, the MLP
and the mixer's projection; they alone ask here. Parameters, sums and gradients stay float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_low = ContextVar("low", default=False)  # of the thread that trains, not of one that forecasts beside it


@contextmanager
def low_precision_products(enabled: bool = True) -> Iterator[None]:
    """Switch bfloat16 products of float32 tensors on a CPU on, or off, for the forward passes
    inside; off by default."""
    before = _low.set(enabled)
    try:
        yield
    finally:
        _low.reset(before)


@contextmanager
def full_precision(device: str) -> Iterator[None]:
    """Compute in the types of the tensors on `device`, whatever autocast or bfloat16 products the caller is within."""
    with torch.autocast(device, enabled=False), low_precision_products(enabled=False):
        yield


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear` of `x` (..., in), by a bfloat16 product where these are on: (..., out) in float32 all the same."""
    if not _lowers(x):
        return F.linear(x, weight, bias)
    return F.linear(x.bfloat16(), weight.bfloat16(), None if bias is None else bias.bfloat16()).float()


def mlp(x: Tensor, layers: Iterable[nn.Module]) -> Tensor:
    """Linear layers and activations in turn, (..., in) -> (..., out); lowered, what is between them
    stays in 16 bits."""
    low = _lowers(x)
    x = x.bfloat16() if low else x
    for layer in layers:
        if low and isinstance(layer, nn.Linear):
            x = F.linear(x, layer.weight.bfloat16(), None if layer.bias is None else layer.bias.bfloat16())
        else:
            x = layer(x)
    return x.float() if low else x


def _lowers(x: Tensor) -> bool:
    return not torch.compiler.is_compiling() and _low.get() and x.device.type == "cpu" and x.dtype == torch.float32
