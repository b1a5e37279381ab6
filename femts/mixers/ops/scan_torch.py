"""`h_t = exp(g_t) h_{t-1} + u_t` in torch, in both directions, with gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx


def decayed_sum_torch(u: Tensor, log_decay: Tensor, chunk: int) -> Tensor:
    """`femts.mixers.ops.scan.decayed_sum` for float32 or float64 tensors, in chunks of `chunk` steps."""
    result: Tensor = _DecayedSum.apply(u, log_decay, chunk, False)
    return result


def default_chunk(length: int, whole: int) -> int:
    """Default chunk size: the whole sequence up to `whole` tokens, about the square root of `length` beyond."""
    return length if length <= whole else 2 ** math.ceil(math.log2(length) / 2)


class _DecayedSum(torch.autograd.Function):
    """The forward sum `h_t = exp(g_t) h_{t-1} + u_t`, or `backwards` `h_t = exp(g_{t+1}) h_{t+1} + u_t`.

    Each is the adjoint of the other, so the gradient is computed by the other one and only `h` and `g` are saved. The
    gradient is taken with respect to g, not to the decay: a decay that underflows to 0 then cuts off a past of any
    size, where infinity times 0 would be NaN.
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
    """Gradients of the summands of `h` and, if `needed`, of the decays; they are differentiable themselves."""
    grad_u: Tensor = _DecayedSum.apply(grad_h, log_decay, chunk, not backwards)
    if not needed:
        return grad_u, None
    source, target = (grad_u, h) if backwards else (h, grad_u)
    product = (log_decay[:, 1:].exp() * target[:, 1:]) * source[:, :-1]
    product = product.sum_to_size(log_decay[:, 1:].shape)
    return grad_u, torch.cat([torch.zeros_like(log_decay[:, :1]), product], dim=1)


def _steps(u: Tensor, decay: Tensor, backwards: bool = False) -> Tensor:
    length = u.shape[1]
    h = u.new_empty(length, u.shape[0], *u.shape[2:])  # time first, so that each step writes one contiguous block
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
