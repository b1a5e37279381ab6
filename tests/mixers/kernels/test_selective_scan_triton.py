"""The Triton selective scan, compared with its definition."""

from __future__ import annotations

import torch
from combinations import in_turn
from kernel_cases import assert_near, with_gradients

from femts.mixers.kernels import using
from femts.mixers.ops.selective_scan import selective_scan
from femts.mixers.ops.selective_scan_plain import selective_scan_plain


def fast(*given: torch.Tensor) -> torch.Tensor:
    with using(selective_scan="triton"):
        u, delta, rate, b, c = given
        return selective_scan(u, delta, rate, b, c)


def inputs(length: int, width: int, states: int, stacks: int, rate: float) -> list[torch.Tensor]:
    torch.manual_seed(length)
    return [
        torch.randn(2, length, stacks, width).double(),
        torch.rand(2, length, width).double() + 0.1,
        rate * torch.rand(states, width).double(),
        torch.rand(2, length, states).double(),
        torch.rand(2, length, states).double(),
    ]


@in_turn(
    sizes=((1, 3, 2, 2), (7, 3, 5, 1), (17, 2, 2, 3), (33, 1, 1, 1), (3, 17, 1, 1), (17, 2, 2, 1)),
    rate=(0.1, 5.0, 0.1, 500.0, 0.0),
)
def test_agrees_in_float64(sizes: tuple[int, int, int, int], rate: float, device: str) -> None:
    given = inputs(*sizes, rate)
    assert_near(with_gradients(fast, given, device), with_gradients(selective_scan_plain, given), 1e-11)


def test_float32_accuracy_and_causality(device: str) -> None:
    given = [x.float() for x in inputs(20, 2, 2, 2, 0.1)]
    found = with_gradients(fast, given, device)
    assert_near(found, with_gradients(selective_scan_plain, [x.double() for x in given]), 5e-6)
    for x in (given[0], given[1], given[3], given[4]):
        x[:, 13:] *= 7
    assert torch.equal(with_gradients(fast, given, device)[0][:, :13], found[0][:, :13])


def test_fully_decayed_state_has_no_nan(device: str) -> None:
    u, delta, rate, b, c = (x.float() for x in inputs(20, 1, 1, 1, 1.0))
    u[:, 5], delta[:, 6] = 1e30, 1e4
    y, *gradients = with_gradients(lambda *given: fast(*given)[:, 6:], (u, delta, rate + 0.1, b, c), device)
    assert y.abs().max() < 1e5
    assert all(x.isfinite().all() for x in gradients)
