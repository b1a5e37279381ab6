"""The recurrence of `femts.mixers.ops.scan` in one Triton kernel per direction."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.mixers.ops.gradients import twice
from femts.mixers.ops.scan_torch import default_chunk, sum_gradients

TIME, WIDTH = 64, 16  # tokens and channels per program


@triton.jit
def joined(decay, h, later_decay, later_h):
    """Combine two stretches of a recurrence into one."""
    return decay * later_decay, later_decay * h + later_h


@triton.jit
def last_row(x, n_rows: tl.constexpr):
    """The last row of `x` (n_rows, width)."""
    return tl.sum(tl.where((tl.arange(0, n_rows) == n_rows - 1)[:, None], x, 0.0), 0)


@triton.jit
def _scan_kernel(
    u, g, out, h, grad_g, stacks, width, g_batch, g_time, g_stack, g_width,
    length: tl.constexpr, time: tl.constexpr, channels: tl.constexpr, backwards: tl.constexpr,
    with_grad_g: tl.constexpr,
):  # fmt: skip
    """out_t = exp(g_t) out_{t-1} + u_t, or `backwards` exp(g_{t+1}) out_{t+1} + u_t and also d/dg_t = exp(g_t) out_t
    h_{t-1}.

    `u`, `out`, `h`, `grad_g` are contiguous (B, T, stacks, width).
    """
    row, column = tl.program_id(0), tl.program_id(1) * channels + tl.arange(0, channels)
    batch, stack = (row // stacks).to(tl.int64), row % stacks
    decays = g + batch * g_batch + stack * g_stack + column[None, :] * g_width
    start = (batch * length * stacks + stack) * width + column[None, :]
    carry = tl.zeros((channels,), u.dtype.element_ty)
    for block in range((length + time - 1) // time):
        step = block * time + tl.arange(0, time)
        t = (length - 1 - step if backwards else step)[:, None]
        inside = (step < length)[:, None] & (column < width)[None, :]
        arriving = t + 1 if backwards else t
        decay = tl.exp(tl.load(decays + arriving * g_time, mask=inside & (arriving < length), other=0.0))
        at = start + t.to(tl.int64) * stacks * width
        value = tl.load(u + at, mask=inside, other=0.0)
        reach, within = tl.associative_scan((decay, value), 0, joined)
        result = within + reach * carry[None, :]
        tl.store(out + at, result, mask=inside)
        carry = last_row(result, time)
        if with_grad_g:
            before = inside & (t > 0)
            fade = tl.exp(tl.load(decays + t * g_time, mask=before, other=0.0))
            past = tl.load(h + at - stacks * width, mask=before, other=0.0)
            tl.store(grad_g + at, fade * result * past, mask=inside)


def _launch(u: Tensor, g: Tensor, h: Tensor | None, backwards: bool) -> tuple[Tensor, Tensor | None]:
    """Sum of `u` (B, T, K, E) with decays `g` broadcast to it; with `h` also the gradient of g."""
    batch, length, stacks, width = u.shape
    out, grad_g = torch.empty_like(u), None if h is None else torch.empty_like(u)
    time = min(TIME, triton.next_power_of_2(length))
    grid: tuple[int, int] = (batch * stacks, triton.cdiv(width, WIDTH))
    kernel: Any = _scan_kernel[grid]
    with torch.cuda.device_of(u):
        kernel(
            u, g, out, u if h is None else h, out if grad_g is None else grad_g, stacks, width,
            *g.expand_as(u).stride(),
            length=length, time=time, channels=WIDTH, backwards=backwards, with_grad_g=grad_g is not None,
        )  # fmt: skip
    return out, grad_g


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, g: Tensor) -> Tensor:  # type: ignore[override]
        h, _ = _launch(u, g, None, backwards=False)
        ctx.save_for_backward(h, g)
        return h

    @staticmethod
    def backward(ctx: FunctionCtx, grad_h: Tensor) -> tuple[Tensor, Tensor | None]:  # type: ignore[override]
        h, g = ctx.saved_tensors  # type: ignore[attr-defined]
        needed: bool = ctx.needs_input_grad[1]  # type: ignore[attr-defined]
        if twice():
            return sum_gradients(grad_h, h, g, needed, default_chunk(h.shape[1], 64))
        grad_u, grad_g = _launch(grad_h.contiguous(), g, h if needed else None, backwards=True)
        return grad_u, None if grad_g is None else grad_g.sum_to_size(g.shape)


def decayed_sum_triton(u: Tensor, log_decay: Tensor) -> Tensor:
    """`femts.mixers.ops.scan.decayed_sum` for float32 or float64 tensors."""
    four = (*u.shape[:2], -1, u.shape[-1]) if u.dim() > 2 else (*u.shape, 1, 1)
    last = log_decay.shape[-1] if u.dim() > 2 else 1
    g = log_decay.expand(*u.shape[:-1], last) if u.dim() > 2 else log_decay.expand_as(u)
    h: Tensor = _Scan.apply(u.reshape(four).contiguous(), g.reshape(*u.shape[:2], -1, last))
    return h.view_as(u)
