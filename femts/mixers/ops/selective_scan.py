"""The scan of the `mamba` prior, `h_t = exp(-delta_t a) h_{t-1} + b_t (x) delta_t u_t`, `y_t = <c_t, h_t>`.

Shapes: u (B, T, K, E) with K stacks of E channels; step sizes delta >= 0 (B, T, E); rates a > 0 (N, E); b, c (B, T, N);
y as u.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from femts.mixers.kernels import chosen
from femts.mixers.ops.gradients import bounded, derived, transformed, twice
from femts.mixers.ops.scan import decayed_sum
from femts.mixers.ops.scan_torch import default_chunk
from femts.mixers.ops.selective_scan_plain import log_decays, selective_scan_plain

LONG = 256  # tokens; a longer sequence is scanned in chunks


def selective_scan(u: Tensor, delta: Tensor, rate: Tensor, b: Tensor, c: Tensor, chunk: int | None = None) -> Tensor:
    """Compute the scan by the kernel that `femts.mixers.kernels` chooses; in torch step by step, so that outer products
    are never materialised over time.

    Long sequences are cut into chunks that are computed in parallel, about 2 sqrt(T) steps in all; the state at the end
    of a chunk reaches the tokens of later ones through decays alone. As in `decayed_sum`, decays are only multiplied.

    Args:
        u, delta, rate, b, c: see the module.
        chunk: chunk size of the torch form; by default the whole of a short sequence and about sqrt(T) of a long one.
    """
    if torch.compiler.is_exporting() or transformed():
        return selective_scan_plain(u, delta, rate, b, c)
    kernel = "torch" if chunk is not None else chosen("selective_scan", u.device, u.dtype)
    if kernel == "triton":
        from femts.mixers.kernels.selective_scan_triton import selective_scan_triton

        return selective_scan_triton(u, delta, rate, b, c)
    if kernel == "mamba_ssm":
        from femts.mixers.kernels.selective_scan_mamba_ssm import selective_scan_mamba_ssm

        return selective_scan_mamba_ssm(u, delta, rate, b, c)
    batch, length, stacks, width = u.shape
    if not length:
        return u
    if chunk is None:
        chunk = default_chunk(length, LONG)
    fed, log_decay = delta.unsqueeze(2) * u, log_decays(delta, rate)
    if chunk >= length:
        return _scan(fed, log_decay, b, c)[0]
    pad = -length % chunk
    parts = (batch, (length + pad) // chunk)
    fed, log_decay, b, c = (
        F.pad(x, (0, 0) * (x.dim() - 2) + (0, pad)).unflatten(1, (parts[1], chunk)).flatten(0, 1)
        for x in (fed, log_decay, b, c)
    )
    within, last = _scan(fed, log_decay, b, c)
    reach = log_decay.cumsum(1).exp()  # decay from before a chunk to each of its tokens: (B chunks, chunk, N, E)
    states = last.unflatten(0, parts).unflatten(-1, (stacks, width))
    carry = decayed_sum(states, log_decay.sum(1).unflatten(0, parts).unsqueeze(-2))
    before = torch.cat([torch.zeros_like(carry[:, :1]), carry[:, :-1]], dim=1).flatten(0, 1)  # (B chunks, N, K, E)
    across = torch.einsum("btne,bnke->btke", bounded(c.unsqueeze(-1) * reach), before)
    return (within + across).unflatten(0, parts).flatten(1, 2)[:, :length]


def _scan(u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """y and the last states, (B, N, K E), for inputs `u` and decays (B, T, N, E)."""
    y, last = _SelectiveScan.apply(u, log_decay, b, c)
    return y, last


def _scan_plain(u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """`_scan` with every state of every step materialised."""
    h = decayed_sum(b[:, :, None, :, None] * u.unsqueeze(3), log_decay.unsqueeze(2))  # (B, T, K, N, E)
    return torch.einsum("btkne,btn->btke", h, c), h[:, -1].transpose(1, 2).flatten(2)


class _SelectiveScan(torch.autograd.Function):
    """The states h are stored as (T, B, N, K E): the product of a step then covers all stacks at once, and its row
    comes first because a matrix times a column takes eight times as long on a CPU."""

    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, log_decay: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        batch, length, stacks, width = u.shape
        spread = (batch, b.shape[-1], stacks, width)
        decay, flat = log_decay.exp(), u.flatten(2)
        # Without gradients, all tokens share one buffer for the states, which stays in the cache.
        places = length if any(ctx.needs_input_grad) else 1  # type: ignore[attr-defined]
        h = u.new_empty(places, batch, b.shape[-1], stacks * width).expand(length, -1, -1, -1)
        y = torch.empty_like(flat)
        for t in range(length):
            if t:
                torch.mul(decay[:, t, :, None], h[t - 1].view(spread), out=h[t].view(spread))
            else:
                h[t].zero_()
            h[t].baddbmm_(b[:, t, :, None], flat[:, t, None])
            y[:, t] = torch.bmm(c[:, t, None], h[t]).squeeze(1)
        ctx.save_for_backward(u, log_decay, b, c, decay, h)
        return y.view(u.shape), h[-1].clone()

    @staticmethod
    def backward(ctx: FunctionCtx, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        u, log_decay, b, c, decay, h = ctx.saved_tensors  # type: ignore[attr-defined]
        if twice():
            return derived(_scan_plain, (u, log_decay, b, c), grad_y, grad_last)
        batch, length, stacks, width = u.shape
        spread = (batch, b.shape[-1], stacks, width)
        flat, grad_y = u.flatten(2), grad_y.flatten(2)
        grad_u, grad_log = torch.empty_like(flat), torch.zeros_like(decay)
        grad_b, grad_c = torch.empty_like(b), torch.empty_like(c)
        grad_h = grad_last.clone()
        for t in range(length - 1, -1, -1):
            grad_h.baddbmm_(c[:, t, :, None], grad_y[:, t, None])
            grad_c[:, t] = torch.bmm(grad_y[:, t, None], h[t].mT).squeeze(1)
            grad_b[:, t] = torch.bmm(flat[:, t, None], grad_h.mT).squeeze(1)
            grad_u[:, t] = torch.bmm(b[:, t, None], grad_h).squeeze(1)
            if t:
                # Multiply by the decay first: a state that decays to 0 may meet a past of any size.
                grad_h.view(spread).mul_(decay[:, t, :, None])
                grad_log[:, t] = (grad_h * h[t - 1]).view(spread).sum(2)
        return grad_u.view(u.shape), grad_log, grad_b, grad_c
