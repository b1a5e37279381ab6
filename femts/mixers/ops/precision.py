"""Matrix products in bfloat16 within a float32 step, for CPUs with native bfloat16 products (AMX, AVX512-BF16).

Autocast over everything does not pay off there, because softmax, exponentials, norms and residuals are slower in 16
bits than in 32. Only the two products that dominate a step, the MLP and the mixer's projection, benefit, and only they
use this. Parameters, sums and gradients stay float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_low = ContextVar("low", default=False)  # of the training thread only, not of threads that forecast concurrently


@contextmanager
def low_precision_products(enabled: bool = True) -> Iterator[None]:
    """Enable or disable bfloat16 products of float32 tensors on a CPU for the forward passes inside; disabled by
    default."""
    before = _low.set(enabled)
    try:
        yield
    finally:
        _low.reset(before)


@contextmanager
def full_precision(device: str) -> Iterator[None]:
    """Compute in the dtypes of the tensors on `device`, regardless of an enclosing autocast or
    `low_precision_products`.

    Weights that an autocast inside casts are not cached: torch clears its cache at the end of the outermost autocast
    only, and a training inside would compute every step with its initial weights.
    """
    with torch.autocast(device, enabled=False, cache_enabled=False), low_precision_products(enabled=False):
        yield


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear` of `x` (..., in), by a bfloat16 product if these are enabled: (..., out), in float32 in any case."""
    if not _lowers(x):
        return F.linear(x, weight, bias)
    return F.linear(x.bfloat16(), weight.bfloat16(), None if bias is None else bias.bfloat16()).float()


def mlp(x: Tensor, layers: Iterable[nn.Module]) -> Tensor:
    """Apply linear layers and activations in turn, (..., in) -> (..., out); with low-precision products, intermediate
    results stay in 16 bits."""
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
