"""The scan of the `mamba` prior in one Triton kernel per direction.

States live in registers and are recomputed in the backward pass: only those before each block of tokens are stored.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import FunctionCtx

from femts.mixers.kernels.scan_triton import joined
from femts.mixers.ops.gradients import derived, twice
from femts.mixers.ops.selective_scan_plain import selective_scan_plain

TIME, WIDTH, WARPS = 16, 16, 8  # tokens, channels and warps per program


@triton.jit
def _tokens(
    delta, u, b, rate, batch, stack, t, column, stacks, width, n_states, length: tl.constexpr, states: tl.constexpr
):
    """For the tokens `t` (time,): step sizes and values (time, channels), b (states, time), and decays and inputs
    (states, time, channels) of each step; outside the sequence, decays are 1 and inputs 0."""
    in_sequence = (t >= 0) & (t < length)
    inside = in_sequence[:, None] & (column < width)[None, :]
    token = batch * length + t
    step = tl.load(delta + token[:, None] * width + column[None, :], mask=inside, other=0.0)
    value = tl.load(u + (token[:, None] * stacks + stack) * width + column[None, :], mask=inside, other=0.0)
    weight = _by_state(b, token, in_sequence, n_states, states)
    return (
        step,
        value,
        weight,
        tl.exp(-step[None, :, :] * rate[:, None, :]),
        weight[:, :, None] * (step * value)[None, :, :],
    )


@triton.jit
def _by_state(b, token, in_sequence, n_states, states: tl.constexpr):
    """Rows of `b` (B T, n_states) as (states, time)."""
    state = tl.arange(0, states)[:, None]
    return tl.load(b + token[None, :] * n_states + state, mask=in_sequence[None, :] & (state < n_states), other=0.0)


@triton.jit
def _forward_kernel(
    u, delta, rates, b, c, y, befores, stacks, width, n_states,
    length: tl.constexpr, time: tl.constexpr, channels: tl.constexpr, states: tl.constexpr,
):  # fmt: skip
    """y (B, T, stacks, width); the states before each block are written to `befores` (B stacks, blocks, n_states,
    width)."""
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * channels + tl.arange(0, channels)
    batch, stack, state = row // stacks, row % stacks, tl.arange(0, states)
    in_state = (state < n_states)[:, None] & (column < width)[None, :]
    at_state = state[:, None] * width + column[None, :]
    rate = tl.load(rates + at_state, mask=in_state, other=0.0)
    blocks: tl.constexpr = (length + time - 1) // time
    carry = tl.zeros((states, channels), u.dtype.element_ty)
    for block in range(blocks):
        tl.store(befores + (row * blocks + block) * n_states * width + at_state, carry, mask=in_state)
        t = block * time + tl.arange(0, time)
        _, _, _, decay, added = _tokens(
            delta, u, b, rate, batch, stack, t, column, stacks, width, n_states, length, states
        )
        reach, within = tl.associative_scan((decay, added), 1, joined)
        h = within + reach * carry[:, None, :]
        weight = _by_state(c, batch * length + t, t < length, n_states, states)
        at = ((batch * length + t[:, None]) * stacks + stack) * width + column[None, :]
        tl.store(y + at, tl.sum(weight[:, :, None] * h, 0), mask=(t < length)[:, None] & (column < width)[None, :])
        carry = tl.sum(tl.where((tl.arange(0, time) == time - 1)[None, :, None], h, 0.0), 1)


@triton.jit
def _backward_kernel(
    u, delta, rates, b, c, befores, grad_y, grad_u, grad_delta, grad_rate, grad_b, grad_c, stacks, width, n_states,
    length: tl.constexpr, time: tl.constexpr, channels: tl.constexpr, states: tl.constexpr,
):  # fmt: skip
    """Gradients of u and delta in their shapes, of the rates (B stacks, n_states, width), and of b and c (programs, B,
    T, n_states)."""
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * channels + tl.arange(0, channels)
    batch, stack, state = row // stacks, row % stacks, tl.arange(0, states)
    batches = tl.num_programs(0) // stacks
    # This program's contribution to the gradients of b and c.
    share = (tl.program_id(1) * stacks + stack) * batches * length * n_states
    in_state = (state < n_states)[:, None] & (column < width)[None, :]
    at_state = state[:, None] * width + column[None, :]
    rate = tl.load(rates + at_state, mask=in_state, other=0.0)
    blocks: tl.constexpr = (length + time - 1) // time
    carry = tl.zeros((states, channels), u.dtype.element_ty)
    rate_sum = tl.zeros((states, channels), u.dtype.element_ty)
    for from_end in range(blocks):
        block = blocks - 1 - from_end
        t = block * time + tl.arange(0, time)
        first = tl.arange(0, time)[None, :, None] == 0
        # States before each token: the same scan, one token late.
        _, _, _, decay, added = _tokens(
            delta, u, b, rate, batch, stack, t - 1, column, stacks, width, n_states, length, states
        )
        reach, within = tl.associative_scan((tl.where(first, 1.0, decay), tl.where(first, 0.0, added)), 1, joined)
        before = tl.load(befores + (row * blocks + block) * n_states * width + at_state, mask=in_state, other=0.0)
        past = within + reach * before[:, None, :]
        step, value, weight, decay, added = _tokens(
            delta, u, b, rate, batch, stack, t, column, stacks, width, n_states, length, states
        )
        token, in_sequence = batch * length + t, t < length
        inside = in_sequence[:, None] & (column < width)[None, :]
        at = (token[:, None] * stacks + stack) * width + column[None, :]
        upstream = tl.load(grad_y + at, mask=inside, other=0.0)
        read = _by_state(c, token, in_sequence, n_states, states)
        later = tl.load(
            delta + (token + 1)[:, None] * width + column[None, :], mask=inside & (t + 1 < length)[:, None], other=0.0
        )
        later_decay = tl.exp(-later[None, :, :] * rate[:, None, :])
        reach, within = tl.associative_scan(
            (later_decay, read[:, :, None] * upstream[None, :, :]), 1, joined, reverse=True
        )
        grad_h = within + reach * carry[:, None, :]
        carry = tl.sum(tl.where(first, grad_h, 0.0), 1)

        faded = decay * past  # multiply by the decay first: a state that decays to 0 may meet a past of any size
        grad_log = grad_h * faded
        rate_sum -= tl.sum(grad_log * step[None, :, :], 1)
        grad_fed = tl.sum(grad_h * weight[:, :, None], 0)
        tl.store(grad_u + at, grad_fed * step, mask=inside)
        tl.store(grad_delta + at, grad_fed * value - tl.sum(grad_log * rate[:, None, :], 0), mask=inside)
        to = share + token[None, :] * n_states + state[:, None]
        mine = in_sequence[None, :] & (state < n_states)[:, None]
        tl.store(grad_b + to, tl.sum(grad_h * (step * value)[None, :, :], 2), mask=mine)
        tl.store(grad_c + to, tl.sum((faded + added) * upstream[None, :, :], 2), mask=mine)
    tl.store(grad_rate + row * n_states * width + at_state, rate_sum, mask=in_state)


class _SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, delta: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:  # type: ignore[override]
        (batch, length, stacks, width), n_states = u.shape, rate.shape[0]
        grid, block = _shape(u, n_states)
        y, befores = (
            torch.empty_like(u),
            u.new_empty(batch * stacks, triton.cdiv(length, block["time"]), n_states, width),
        )
        kernel: Any = _forward_kernel[grid]
        with torch.cuda.device_of(u):
            kernel(u, delta, rate, b, c, y, befores, stacks, width, n_states, **block)
        ctx.save_for_backward(u, delta, rate, b, c, befores)
        return y

    @staticmethod
    def backward(ctx: FunctionCtx, grad_y: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        u, delta, rate, b, c, befores = ctx.saved_tensors  # type: ignore[attr-defined]
        if twice():
            return derived(selective_scan_plain, (u, delta, rate, b, c), grad_y)
        (stacks, width), n_states = u.shape[2:], rate.shape[0]
        grid, block = _shape(u, n_states)
        grad_u, grad_delta, grad_rate = (
            torch.empty_like(u),
            torch.empty_like(u),
            rate.new_empty(grid[0], n_states, width),
        )
        grad_b, grad_c = (b.new_empty(grid[1] * stacks, *b.shape) for _ in "bc")
        grads = (grad_u, grad_delta, grad_rate, grad_b, grad_c)
        kernel: Any = _backward_kernel[grid]
        with torch.cuda.device_of(u):
            kernel(u, delta, rate, b, c, befores, grad_y.contiguous(), *grads, stacks, width, n_states, **block)
        return grad_u, grad_delta.sum(2), grad_rate.sum(0), grad_b.sum(0), grad_c.sum(0)


def _shape(u: Tensor, n_states: int) -> tuple[tuple[int, int], dict[str, int]]:
    batch, length, stacks, width = u.shape
    states = triton.next_power_of_2(n_states)
    block = {"length": length, "time": TIME, "channels": WIDTH, "states": states, "num_warps": WARPS}
    return (batch * stacks, triton.cdiv(width, WIDTH)), block


def selective_scan_triton(u: Tensor, delta: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """`femts.mixers.ops.selective_scan.selective_scan` for float32 or float64 tensors."""
    y: Tensor = _SelectiveScan.apply(*(x.contiguous() for x in (u, delta, rate, b, c)))
    return y
