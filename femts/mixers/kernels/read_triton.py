"""The elementwise parts of the free-energy read (section 2.3.2) in four Triton kernels: before and after the prior,
each forward and backward.

They replace some thirty passes over memory and compute in float32 for any dtype of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.mixers.ops.gradients import derived, twice
from femts.mixers.read import outer_gate

ELEMENTS = 2048  # elements per program


@triton.jit
def _softplus(x):
    """log(1 + exp(x)), accurate for very negative x too."""
    e = tl.exp(-tl.abs(x))
    u = 1.0 + e
    log1p = tl.where(u == 1.0, e, tl.log(u) * (e / tl.where(u == 1.0, 1.0, u - 1.0)))
    return tl.maximum(x, 0.0) + log1p


@triton.jit
def _before_kernel(
    v, beta, out, grad_out, grad_v, grad_beta, rows, row_stride, cap,
    width: tl.constexpr, head: tl.constexpr, height: tl.constexpr, padded: tl.constexpr, gradient: tl.constexpr,
):  # fmt: skip
    """`out` (rows, heads, 2 head) = [v, exp(beta v)] with |beta v| <= cap, or with `gradient` the gradients of v and
    beta."""
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None].to(tl.int64)
    channel = tl.arange(0, padded)[None, :]
    inside = (row < rows) & (channel < width)
    b = tl.load(beta + channel, mask=channel < width, other=1.0)
    x = tl.load(v + row * row_stride + channel, mask=inside, other=0.0)
    scaled = b * x.to(b.dtype)
    tilted = tl.exp(tl.minimum(tl.maximum(scaled, -cap), cap))
    first = row * 2 * width + (channel // head) * 2 * head + channel % head
    if gradient:
        grad_x = tl.load(grad_out + first, mask=inside, other=0.0).to(b.dtype)
        grad_tilted = tl.load(grad_out + first + head, mask=inside, other=0.0).to(b.dtype)
        grad_scaled = tl.where((scaled >= -cap) & (scaled <= cap), grad_tilted * tilted, 0.0)
        tl.store(grad_v + row * width + channel, grad_x + grad_scaled * b, mask=inside)
        share = tl.sum(grad_scaled * x.to(b.dtype), 0, keep_dims=True)
        tl.store(grad_beta + tl.program_id(0) * width + channel, share, mask=channel < width)
    else:
        tl.store(out + first, x, mask=inside)
        tl.store(out + first + head, tilted, mask=inside)


@triton.jit
def _after_kernel(
    mixed, beta, lam_pre, gate_pre, out, grad_out, grad_mixed, grad_beta, grad_lam, grad_gate,
    rows, lam_stride, gate_stride, eps,
    width: tl.constexpr, head: tl.constexpr, height: tl.constexpr, padded: tl.constexpr,
    with_lam: tl.constexpr, with_gate: tl.constexpr, gradient: tl.constexpr,
):  # fmt: skip
    """`out` (rows, width) = gate ((1 - lam) mu + lam log(z) / beta) of `mixed` = [mu, z], or with `gradient` its
    gradients."""
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None].to(tl.int64)
    channel = tl.arange(0, padded)[None, :]
    inside = (row < rows) & (channel < width)
    b = tl.load(beta + channel, mask=channel < width, other=1.0)
    first = row * 2 * width + (channel // head) * 2 * head + channel % head
    mu = tl.load(mixed + first, mask=inside, other=0.0).to(b.dtype)
    z = tl.load(mixed + first + head, mask=inside, other=1.0).to(b.dtype)
    f_max = tl.log(z) / b
    f = f_max
    if with_lam:
        lam = tl.sigmoid(tl.load(lam_pre + row * lam_stride + channel, mask=inside, other=0.0).to(b.dtype))
        f = mu + lam * (f_max - mu)
    if with_gate:
        pre = tl.load(gate_pre + row * gate_stride + channel, mask=inside, other=0.0).to(b.dtype)
        positive = tl.where(inside, _softplus(pre) + eps, 0.0)
        mean_square = tl.sum(positive * positive, 1, keep_dims=True) / width
        scale = 1.0 / tl.sqrt(tl.where(row < rows, mean_square, 1.0))
        gate = positive * scale
    at = row * width + channel
    if gradient:
        grad = tl.load(grad_out + at, mask=inside, other=0.0).to(b.dtype)
        grad_f = grad
        if with_gate:
            grad_f = grad * gate
            grad_g = grad * f
            mean = tl.sum(grad_g * gate, 1, keep_dims=True) / width
            tl.store(grad_gate + at, scale * (grad_g - gate * mean) * tl.sigmoid(pre), mask=inside)
        grad_max = grad_f
        if with_lam:
            grad_max = grad_f * lam
            tl.store(grad_lam + at, grad_f * (f_max - mu) * lam * (1.0 - lam), mask=inside)
            tl.store(grad_mixed + first, grad_f * (1.0 - lam), mask=inside)
        else:
            tl.store(grad_mixed + first, tl.zeros_like(grad_f), mask=inside)
        tl.store(grad_mixed + first + head, grad_max / (b * z), mask=inside)
        share = tl.sum(-grad_max * f_max / b, 0, keep_dims=True)
        tl.store(grad_beta + tl.program_id(0) * width + channel, share, mask=channel < width)
    else:
        tl.store(out + at, gate * f if with_gate else f, mask=inside)


def _shape(rows: int, width: int) -> tuple[tuple[int], dict[str, int]]:
    """Grid and block for kernels over (rows, width): whole rows, because the gate is normalised over them."""
    padded = triton.next_power_of_2(width)
    height = max(1, ELEMENTS // padded)
    return (triton.cdiv(rows, height),), {"width": width, "height": height, "padded": padded}


def _plain_before(v: Tensor, beta: Tensor, cap: float) -> Tensor:
    v = v.unflatten(-1, tuple(beta.shape))
    return torch.cat([v, (beta * v).clamp(-cap, cap).exp().to(v.dtype)], dim=-1)


def _plain_after(mixed: Tensor, beta: Tensor, lam: Tensor | None, gate: Tensor | None, eps: float) -> Tensor:
    mu, z = mixed.chunk(2, dim=-1)
    f = (z.log() / beta).flatten(-2)
    f = f if lam is None else torch.lerp(mu.flatten(-2), f, torch.sigmoid(lam))
    return f if gate is None else outer_gate(gate, eps) * f


class _Before(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, v: Tensor, beta: Tensor, cap: float) -> Tensor:  # type: ignore[override]
        """`v` (rows, E), `beta` (H, d_v) -> (rows, H, 2 d_v)."""
        ctx.save_for_backward(v, beta)
        ctx.cap = cap  # type: ignore[attr-defined]
        heads, head = beta.shape
        out = v.new_empty(v.shape[0], heads, 2 * head)
        grid, block = _shape(*v.shape)
        kernel: Any = _before_kernel[grid]
        with torch.cuda.device_of(v):
            kernel(v, beta, out, out, out, out, v.shape[0], v.stride(0), cap, head=head, gradient=False, **block)
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, grad_out: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        v, beta = ctx.saved_tensors  # type: ignore[attr-defined]
        if twice():
            return *derived(partial(_plain_before, cap=ctx.cap), (v, beta), grad_out), None  # type: ignore[attr-defined]
        grid, block = _shape(*v.shape)
        grad_v, grad_beta = v.new_empty(v.shape), beta.new_empty(*grid, beta.numel())
        grad_out, rows = grad_out.contiguous(), v.shape[0]
        kernel: Any = _before_kernel[grid]
        with torch.cuda.device_of(v):
            kernel(
                v, beta, v, grad_out, grad_v, grad_beta, rows, v.stride(0), ctx.cap,  # type: ignore[attr-defined]
                head=beta.shape[1], gradient=True, **block,
            )  # fmt: skip
        return grad_v, grad_beta.sum(0).view_as(beta), None


class _After(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: FunctionCtx, mixed: Tensor, beta: Tensor, lam: Tensor | None, gate: Tensor | None, eps: float
    ) -> Tensor:
        """`mixed` (rows, H, 2 d_v), `lam` and `gate` (rows, E) before their activations -> (rows, E)."""
        ctx.save_for_backward(mixed, beta, lam, gate)  # type: ignore[arg-type]
        ctx.eps = eps  # type: ignore[attr-defined]
        out = mixed.new_empty(mixed.shape[0], beta.numel())
        _launch_after(mixed, beta, lam, gate, eps, out, None)
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, grad_out: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        mixed, beta, lam, gate = ctx.saved_tensors  # type: ignore[attr-defined]
        if twice():
            return *derived(partial(_plain_after, eps=ctx.eps), (mixed, beta, lam, gate), grad_out), None  # type: ignore[attr-defined]
        grid, _ = _shape(mixed.shape[0], beta.numel())
        grad_beta = beta.new_empty(*grid, beta.numel())
        grads = [
            torch.empty_like(mixed),
            grad_beta,
            *(None if x is None else x.new_empty(x.shape) for x in (lam, gate)),
        ]
        _launch_after(mixed, beta, lam, gate, ctx.eps, grad_out.contiguous(), grads)  # type: ignore[attr-defined]
        return grads[0], grad_beta.sum(0).view_as(beta), grads[2], grads[3], None


def _launch_after(
    mixed: Tensor,
    beta: Tensor,
    lam: Tensor | None,
    gate: Tensor | None,
    eps: float,
    out: Tensor,
    grads: list[Any] | None,
) -> None:
    grid, block = _shape(mixed.shape[0], beta.numel())
    strides = [0 if x is None else x.stride(0) for x in (lam, gate)]
    pointers = [mixed if x is None else x for x in (lam, gate)]
    targets = [out if x is None else x for x in grads or [None] * 4]
    kernel: Any = _after_kernel[grid]
    with torch.cuda.device_of(mixed):
        kernel(
            mixed, beta, *pointers, out, out, *targets, mixed.shape[0], *strides, eps, head=beta.shape[1],
            with_lam=lam is not None, with_gate=gate is not None, gradient=grads is not None, **block,
        )  # fmt: skip


def gated_read_triton(
    mix: Callable[[Tensor], Tensor],
    v: Tensor,
    beta: Tensor,
    lam: Tensor | None,
    gate: Tensor | None,
    cap: float,
    eps: float,
    support: Tensor | None,
) -> Tensor:
    """The read of `v` (..., H, d_v) at `beta` (H, d_v), times its outer gate: (..., H, d_v).

    Args:
        lam, gate: inner and outer gate before their activations, in the shape of `v`, or None without them.
        mix, cap, support: as in `femts.mixers.read.free_energy_read`; eps as in `outer_gate`.
    """
    beta = beta.to(torch.promote_types(v.dtype, torch.float32)).contiguous()
    rows, lam_rows, gate_rows = (None if x is None else _as_rows(x.flatten(-2)) for x in (v, lam, gate))
    stacked: Tensor = _Before.apply(rows, beta, cap)
    mixed = mix(stacked.view(*v.shape[:-1], -1)).to(v.dtype)
    if support is not None:  # the layer sets such rows to 0
        mixed = mixed.masked_fill(~support[..., None, None], 1.0)
    o: Tensor = _After.apply(mixed.reshape(stacked.shape).contiguous(), beta, lam_rows, gate_rows, eps)
    return o.view_as(v)


def _as_rows(x: Tensor) -> Tensor:
    """(..., E) -> (rows, E), a view of a projection if possible; the numbers of a row are contiguous."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()
