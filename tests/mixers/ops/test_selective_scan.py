"""The selective scan, compared with its definition."""

from __future__ import annotations

import pytest
import torch
from combinations import in_turn

from femts.mixers.ops.selective_scan import LONG, selective_scan
from femts.mixers.ops.selective_scan_plain import selective_scan_plain


def inputs(length: int, rate: float, dtype: torch.dtype = torch.float64, batch: int = 2) -> list[torch.Tensor]:
    torch.manual_seed(length)
    u = torch.randn(batch, length, 3, 4)
    delta, rates = torch.rand(batch, length, 4), rate * torch.rand(5, 4)
    b, c = torch.rand(batch, length, 5), torch.rand(batch, length, 5)
    return [x.to(dtype).requires_grad_() for x in (u, delta, rates, b, c)]


def by_chunks(given: list[torch.Tensor], chunk: int | None) -> torch.Tensor:
    u, delta, rates, b, c = given
    return selective_scan(u, delta, rates, b, c, chunk)


@in_turn(
    at=((1, None), (7, 3), (12, 4), (13, 1), (13, 50), (LONG + 9, None), (7, 3), (13, 4)), rate=(0.0, 0.1, 5.0, 500.0)
)
def test_scan_and_gradients_match_the_definition(at: tuple[int, int | None], rate: float) -> None:
    length, chunk = at
    given = inputs(length, rate)
    fast, plain = by_chunks(given, chunk), selective_scan_plain(*given)
    torch.testing.assert_close(fast, plain, rtol=1e-11, atol=1e-12)
    upstream = torch.randn_like(plain)
    for one, other in zip(*(torch.autograd.grad(y, given, upstream) for y in (fast, plain)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("chunk", [4, None])
def test_in_place_states_are_bit_identical(chunk: int | None) -> None:
    given = inputs(13, 0.5, torch.float32)
    with torch.no_grad():
        alone = by_chunks(given, chunk)
    assert torch.equal(alone, by_chunks(given, chunk))


@pytest.mark.parametrize("chunk", [5, 16, None])
def test_float32_accuracy_and_causality(chunk: int | None) -> None:
    exact, single = inputs(600, 0.05), inputs(600, 0.05, torch.float32)
    y = by_chunks(single, chunk)
    reference = selective_scan_plain(*exact)
    assert ((y.double() - reference).abs().max() / reference.abs().max()).item() < 1e-5
    changed = [x.detach().clone() for x in single]
    for x in changed:
        if x.dim() > 2:  # all but the rates
            x[:, 333:] *= 7
    assert torch.equal(by_chunks(changed, chunk)[:, :333], y[:, :333])


def test_fully_decayed_state_has_no_nan() -> None:
    u, delta, rates, b, c = inputs(40, 1.0, torch.float32)
    with torch.no_grad():
        u[:, 10] = 1e30
        delta[:, 11] = 1e7
        u[:, 11] = 0.0
    y = selective_scan(u, delta, rates, b, c, chunk=8)
    assert y[:, 11:].abs().max() < 1e3
    for gradient in torch.autograd.grad(y[:, 11:].sum(), (u, delta, rates, b, c)):
        assert gradient.isfinite().all()
