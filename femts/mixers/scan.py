"""One recurrence serves every scan prior and the conditioner: `h_t = exp(g_t) h_{t-1} + u_t`."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.mixers.gradients import bounded, transformed
from femts.mixers.kernels import chosen


def decayed_sum(u: Tensor, log_decay: Tensor, chunk: int | None = None) -> Tensor:
    """All prefix sums `h_t = sum_{i<=t} exp(sum_{i<s<=t} g_s) u_i` along dimension 1.

    Decays are only ever multiplied up, never divided by or taken as differences of cumulative sums, so no length and no
    strength of decay loses accuracy. Chunks run side by side and are joined by their last states: O(T) work, about
    2 sqrt(T) steps.

    Args:
        u: (B, T, ...).
        log_decay: g <= 0, of as many dimensions as `u` and broadcastable to it; (B, T) are those of `u`.
        chunk: steps in a chunk of the torch form; the default is the whole of a short sequence and about sqrt(T) of a long
            one, or a Triton kernel, as `femts.mixers.kernels` chooses. Export and `torch.func` get a form without steps.

    Returns:
        h, shaped as `u`; summed in float32 at least.
    """
    kind = torch.promote_types(u.dtype, torch.float32)
    if torch.compiler.is_exporting() or transformed():
        return prefixes((log_decay.to(kind).exp(), u.to(kind)), _join)[1].to(u.dtype)
    if chunk is None and chosen("scan", u.device, kind) == "triton":
        from femts.mixers.kernels.scan_triton import decayed_sum_triton

        return decayed_sum_triton(u.to(kind), log_decay.to(kind)).to(u.dtype)
    if chunk is None:
        chunk = default_chunk(u.shape[1], 64)
    result: Tensor = _DecayedSum.apply(u.to(kind), log_decay.to(kind), chunk, False)
    return result.to(u.dtype)


def default_chunk(length: int, whole: int) -> int:
    """Steps in a chunk: all of a sequence of up to `whole` tokens, about the root of a longer one's `length`."""
    return length if length <= whole else 2 ** math.ceil(math.log2(length) / 2)


Parts = tuple[Tensor, ...]


def prefixes(x: Parts, join: Callable[[Parts, Parts], Parts]) -> Parts:
    """What the associative `join(earlier, later)` makes of each prefix of `x`, tensors (B, T, ...), along dimension 1.

    In log2 T rounds instead of T steps (Hillis & Steele, 1986): more work, but a graph that is written out stays small.
    """
    reach = 1
    while reach < x[0].shape[1]:
        joined = join(tuple(part[:, :-reach] for part in x), tuple(part[:, reach:] for part in x))
        x = tuple(torch.cat([part[:, :reach], new], dim=1) for part, new in zip(x, joined, strict=True))
        reach *= 2
    return x


def running_max(x: Tensor) -> Tensor:
    """The largest value so far along dimension 1 of `x` (B, T, ...)."""
    if torch.compiler.is_exporting():  # ONNX has no cummax
        return prefixes((x,), lambda earlier, later: (torch.maximum(earlier[0], later[0]),))[0]
    return torch.cummax(x, dim=1).values


def _join(earlier: Parts, later: Parts) -> Parts:
    """Two stretches of the recurrence as one, each a decay and a sum."""
    return earlier[0] * later[0], earlier[1] * later[0] + later[1]


def reversed_decayed_sum(u: Tensor, log_decay: Tensor, chunk: int | None = None) -> Tensor:
    """The mirror image without the diagonal: `h_t = sum_{i>t} exp(sum_{t<=s<i} g_s) u_i`."""
    backward = decayed_sum(u.flip(1), log_decay.flip(1), chunk).flip(1)
    decay, after = bounded(log_decay.exp().expand_as(u)), torch.cat([backward[:, 1:], torch.zeros_like(backward[:, :1])], dim=1)
    return decay * after.masked_fill(decay == 0, 0.0)  # see _DecayedSum on decays of 0


class _DecayedSum(torch.autograd.Function):
    """The sum forwards, `h_t = exp(g_t) h_{t-1} + u_t`, or `backwards`, `h_t = exp(g_{t+1}) h_{t+1} + u_t`.

    Each is the adjoint of the other, so the gradient is the other one and only `h` and `g` are kept. The gradient is that of
    g, not of the decay: a decay that underflows to 0 then cuts off a past of any size, where infinity times 0 would be NaN.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, log_decay: Tensor, chunk: int, backwards: bool) -> Tensor:  # type: ignore[override]
        decay = log_decay.exp()
        if chunk >= u.shape[1]:
            h = _steps(u, decay, backwards)
        elif backwards:
            later = torch.cat([decay[:, 1:], torch.ones_like(decay[:, :1])], dim=1)
            h = _chunked(u.flip(1), later.flip(1), chunk).flip(1)
        else:
            h = _chunked(u, decay, chunk)
        ctx.save_for_backward(h, log_decay)
        ctx.chunk, ctx.backwards = chunk, backwards  # type: ignore[attr-defined]
        return h

    @staticmethod
    def backward(ctx: FunctionCtx, grad_h: Tensor) -> tuple[Tensor, Tensor | None, None, None]:  # type: ignore[override]
        h, log_decay = ctx.saved_tensors  # type: ignore[attr-defined]
        needed: bool = ctx.needs_input_grad[1]  # type: ignore[attr-defined]
        return *sum_gradients(grad_h, h, log_decay, needed, ctx.chunk, ctx.backwards), None, None  # type: ignore[attr-defined]


def sum_gradients(
    grad_h: Tensor, h: Tensor, log_decay: Tensor, needed: bool, chunk: int, backwards: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Gradients of what is summed to `h` and, where it is `needed`, of its decays; they have gradients again."""
    grad_u: Tensor = _DecayedSum.apply(grad_h, log_decay, chunk, not backwards)
    if not needed:
        return grad_u, None
    source, target = (grad_u, h) if backwards else (h, grad_u)
    product = (log_decay[:, 1:].exp() * target[:, 1:]) * source[:, :-1]
    product = product.sum_to_size(log_decay[:, 1:].shape)
    return grad_u, torch.cat([torch.zeros_like(log_decay[:, :1]), product], dim=1)


def _steps(u: Tensor, decay: Tensor, backwards: bool = False) -> Tensor:
    length = u.shape[1]
    h = u.new_empty(length, u.shape[0], *u.shape[2:])  # time first: each step then writes one contiguous piece
    order = range(length - 1, -1, -1) if backwards else range(length)
    previous = None
    for t in order:
        if previous is None:
            h[t] = u[:, t]
        else:
            torch.addcmul(u[:, t], decay[:, max(t, previous)], h[previous], out=h[t])
        previous = t
    return h.transpose(0, 1)


def _chunked(u: Tensor, decay: Tensor, chunk: int) -> Tensor:
    length = u.shape[1]
    pad = -length % chunk
    if pad:
        u = torch.cat([u, u.new_zeros(u.shape[0], pad, *u.shape[2:])], dim=1)
        decay = torch.cat([decay, decay.new_ones(decay.shape[0], pad, *decay.shape[2:])], dim=1)
    u, decay = u.unflatten(1, (-1, chunk)).transpose(1, 2), decay.unflatten(1, (-1, chunk)).transpose(1, 2)
    within = _steps(u, decay)  # (B, chunk, n_chunks, ...)
    reach = torch.cumprod(decay, dim=1)
    carry = _steps(within[:, -1], reach[:, -1])  # state at the end of each chunk
    carry = torch.cat([torch.zeros_like(carry[:, :1]), carry[:, :-1]], dim=1)
    return (within + reach * carry.unsqueeze(1)).transpose(1, 2).flatten(1, 2)[:, :length]
