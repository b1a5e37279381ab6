"""The recurrence `h_t = exp(g_t) h_{t-1} + u_t`, shared by all scan priors and the conditioner."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from femts.mixers.kernels import chosen
from femts.mixers.ops.gradients import bounded, transformed
from femts.mixers.ops.scan_torch import decayed_sum_torch, default_chunk


def decayed_sum(u: Tensor, log_decay: Tensor, chunk: int | None = None) -> Tensor:
    """All prefix sums `h_t = sum_{i<=t} exp(sum_{i<s<=t} g_s) u_i` along dimension 1.

    Decays are only multiplied, never divided or computed from differences of cumulative sums, so neither long sequences
    nor strong decays lose accuracy. Chunks are computed in parallel and joined by their last states: O(T) work in about
    2 sqrt(T) steps.

    Args:
        u: (B, T, ...).
        log_decay: g <= 0, with as many dimensions as `u`, broadcastable to it, and the same (B, T).
        chunk: chunk size of the torch form; by default the whole of a short sequence and about sqrt(T) of a long one,
            or a Triton kernel, as chosen by `femts.mixers.kernels`. Export and `torch.func` use a form without loops.

    Returns:
        h, in the shape of `u`; summed at least in float32.
    """
    kind = torch.promote_types(u.dtype, torch.float32)
    if torch.compiler.is_exporting() or transformed():
        return prefixes((log_decay.to(kind).exp(), u.to(kind)), _join)[1].to(u.dtype)
    if chunk is None and chosen("scan", u.device, kind) == "triton" and u.numel():
        from femts.mixers.kernels.scan_triton import decayed_sum_triton

        return decayed_sum_triton(u.to(kind), log_decay.to(kind)).to(u.dtype)
    if chunk is None:
        chunk = default_chunk(u.shape[1], 64)
    return decayed_sum_torch(u.to(kind), log_decay.to(kind), chunk).to(u.dtype)


Parts = tuple[Tensor, ...]


def prefixes(x: Parts, join: Callable[[Parts, Parts], Parts]) -> Parts:
    """Join each prefix of `x`, tensors (B, T, ...), along dimension 1 by the associative `join(earlier, later)`.

    Takes log2 T rounds instead of T steps (Hillis & Steele, 1986): more work, but a small exported graph.
    """
    reach = 1
    while reach < x[0].shape[1]:
        joined = join(tuple(part[:, :-reach] for part in x), tuple(part[:, reach:] for part in x))
        x = tuple(torch.cat([part[:, :reach], new], dim=1) for part, new in zip(x, joined, strict=True))
        reach *= 2
    return x


def running_max(x: Tensor) -> Tensor:
    """Running maximum along dimension 1 of `x` (B, T, ...)."""
    if torch.compiler.is_exporting():  # ONNX has no cummax
        return prefixes((x,), lambda earlier, later: (torch.maximum(earlier[0], later[0]),))[0]
    return torch.cummax(x, dim=1).values


def _join(earlier: Parts, later: Parts) -> Parts:
    """Combine two stretches of the recurrence, each a decay and a sum, into one."""
    return earlier[0] * later[0], earlier[1] * later[0] + later[1]


def reversed_decayed_sum(u: Tensor, log_decay: Tensor, chunk: int | None = None) -> Tensor:
    """The mirror image without the diagonal: `h_t = sum_{i>t} exp(sum_{t<=s<i} g_s) u_i`."""
    log_decay = log_decay.to(torch.promote_types(u.dtype, torch.float32))  # the bound exceeds the range of float16
    backward = decayed_sum(u.flip(1), log_decay.flip(1), chunk).flip(1)
    decay, after = (
        bounded(log_decay.exp().expand_as(u)),
        torch.cat([backward[:, 1:], torch.zeros_like(backward[:, :1])], dim=1),
    )
    return (decay * after.masked_fill(decay == 0, 0.0)).to(u.dtype)  # see `scan_torch` on decays of 0
