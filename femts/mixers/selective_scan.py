"""The scan of the `mamba` prior: `h_t = exp(g_t) h_{t-1} + b_t (x) u_t`, `y_t = <c_t, h_t>`, in a plain and a fast form.

Shapes: u (B, T, K, E) K stacks of E channels; log_decay g (B, T, N, E) <= 0; b, c (B, T, N); y as u.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.mixers.scan import decayed_sum, reversed_decayed_sum


def selective_scan_plain(u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The definition, with every state of every step spread out."""
    h = decayed_sum(_spread(u, b), log_decay.unsqueeze(2))
    return torch.einsum("btkne,btn->btke", h, c)


def selective_scan_two_sided(u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The plain form plus its mirror image without the diagonal."""
    h = reversed_decayed_sum(_spread(u, b), log_decay.unsqueeze(2))
    return selective_scan_plain(u, log_decay, b, c) + torch.einsum("btkne,btn->btke", h, c)


def _spread(u: Tensor, b: Tensor) -> Tensor:
    return b[:, :, None, :, None] * u.unsqueeze(3)


def selective_scan(u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The same step by step: one token's states stay in the cache, and outer products are never spread over time."""
    y: Tensor = _SelectiveScan.apply(u, log_decay, b, c)
    return y


class _SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> Tensor:  # type: ignore[override]
        batch, length, stacks, width = u.shape
        states = b.shape[-1]
        decay = log_decay.exp()
        h = u.new_empty(length, batch, stacks, states, width)
        y = torch.empty_like(u, memory_format=torch.contiguous_format)
        for t in range(length):
            if t:
                torch.mul(decay[:, t, None], h[t - 1], out=h[t])
            else:
                h[t].zero_()
            h[t].flatten(0, 1).baddbmm_(_column(b, t, stacks), u[:, t].reshape(-1, 1, width))
            y[:, t] = torch.bmm(_column(c, t, stacks).mT, h[t].flatten(0, 1)).view(batch, stacks, width)
        ctx.save_for_backward(u, decay, b, c, h)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: FunctionCtx, grad_y: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        u, decay, b, c, h = ctx.saved_tensors  # type: ignore[attr-defined]
        batch, length, stacks, width = u.shape
        grad_u, grad_log = torch.empty_like(u), torch.zeros_like(decay)
        grad_b, grad_c = torch.empty_like(b), torch.empty_like(c)
        grad_h = torch.zeros_like(h[0])
        for t in range(length - 1, -1, -1):
            out = grad_y[:, t].reshape(-1, 1, width)
            grad_h.flatten(0, 1).baddbmm_(_column(c, t, stacks), out)
            grad_c[:, t] = torch.bmm(h[t].flatten(0, 1), out.mT).view(batch, stacks, -1).sum(1)
            fed = u[:, t].reshape(-1, width, 1)
            grad_b[:, t] = torch.bmm(grad_h.flatten(0, 1), fed).view(batch, stacks, -1).sum(1)
            grad_u[:, t] = torch.bmm(_column(b, t, stacks).mT, grad_h.flatten(0, 1)).view(batch, stacks, width)
            if t:
                grad_h.mul_(decay[:, t, None])  # first: what has decayed to 0 may meet a past of any size
                grad_log[:, t] = (grad_h * h[t - 1]).sum(1)
        return grad_u, grad_log, grad_b, grad_c


def _column(rows: Tensor, t: int, stacks: int) -> Tensor:
    """Row t of (B, T, N) as a column for every stack, (B K, N, 1)."""
    return rows[:, t].repeat_interleave(stacks, dim=0).unsqueeze(-1)
