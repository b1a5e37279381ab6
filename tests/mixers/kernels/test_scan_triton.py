"""The Triton recurrence, compared with torch."""

from __future__ import annotations

import pytest
import torch
from combinations import in_turn
from kernel_cases import assert_near, with_gradients

from femts.mixers.kernels import using
from femts.mixers.ops.scan import decayed_sum

SHAPES = [
    ((2, 1, 3), (2, 1, 3)),
    ((2, 7), (2, 7)),
    ((2, 33, 3), (2, 33, 3)),
    ((1, 65, 2, 3), (1, 65, 1, 3)),  # stacks of values that share their decays; more than a block of tokens
    ((2, 5, 2, 3, 4), (2, 5, 2, 1, 1)),  # states of linear attention
    ((1, 6, 1, 17), (1, 6, 1, 17)),  # more than a block of channels
]


def fast(u: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    with using(scan="triton"):
        return decayed_sum(u, g)


def inputs(shape: tuple[int, ...], decays: tuple[int, ...], rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(len(shape))
    return torch.randn(shape, dtype=torch.float64), -rate * torch.rand(decays, dtype=torch.float64)


@in_turn(shapes=SHAPES, rate=(0.1, 5.0, 0.0, 1e4))
def test_agrees_in_float64(shapes: tuple[tuple[int, ...], tuple[int, ...]], rate: float, device: str) -> None:
    given = inputs(*shapes, rate)
    assert_near(with_gradients(fast, given, device), with_gradients(decayed_sum, given), 1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)], ids=str)
def test_low_precision_accuracy(dtype: torch.dtype, tolerance: float, device: str) -> None:
    given = [x.to(dtype) for x in inputs((2, 70, 3), (2, 70, 3), 0.1)]
    exact = with_gradients(decayed_sum, [x.double() for x in given])
    assert_near(with_gradients(fast, given, device), exact, tolerance)


def test_scan_is_bitwise_causal(device: str) -> None:
    u, g = (x.float().to(device) for x in inputs((1, 70, 2), (1, 70, 2), 0.1))
    other = u.clone()
    other[:, 40:] = 1e30
    assert torch.equal(fast(other, g)[:, :40], fast(u, g)[:, :40])


def test_fully_decayed_state_has_no_nan(device: str) -> None:
    u, g = torch.ones(1, 9, 1), torch.zeros(1, 9, 1)
    u[:, 3], g[:, 4] = 1e30, -1e4
    h, *gradients = with_gradients(lambda u, g: fast(u, g)[:, 4:], (u, g), device)
    assert h.max() < 10
    assert all(x.isfinite().all() for x in gradients)
