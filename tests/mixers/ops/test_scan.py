"""The linear recurrence, compared with its double sum."""

from __future__ import annotations

import sys

import pytest
import torch
from combinations import in_turn, pairwise
from hypothesis import given, settings
from hypothesis import strategies as st
from mixer_cases import SCAN_PRIORS, gradient_of, make_input, make_layer, over_directions
from torch import Tensor

from femts.mixers.ops import scan
from femts.mixers.ops.scan import decayed_sum, reversed_decayed_sum
from femts.mixers.priors import linear


def case(
    length: int, width: int = 3, rate: float = 1.0, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Columns and log decays."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(2, length, width, generator=generator, dtype=dtype)
    return u, -rate * torch.rand(2, length, width, generator=generator, dtype=dtype)


def double_sum(u: Tensor, log_decay: Tensor, ahead: bool = False) -> Tensor:
    out = torch.zeros_like(u)
    for t in range(u.shape[1]):
        for i in range(t + 1, u.shape[1]) if ahead else range(t + 1):
            between = log_decay[:, t:i] if ahead else log_decay[:, i + 1 : t + 1]
            out[:, t] += between.sum(dim=1).exp() * u[:, i]
    return out


@given(
    length=st.integers(1, 25),
    chunk=st.integers(1, 28),
    rate=st.sampled_from([0.0, 0.01, 1.0, 50.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_scan_matches_the_double_sum(length: int, chunk: int, rate: float, seed: int) -> None:
    u, decay = case(length, rate=rate, seed=seed)
    torch.testing.assert_close(decayed_sum(u, decay, chunk), double_sum(u, decay), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(
        reversed_decayed_sum(u, decay, chunk), double_sum(u, decay, ahead=True), rtol=1e-11, atol=1e-12
    )


def test_default_chunk_equals_one_chunk() -> None:
    for length in (1, 63, 64, 65, 200, 1000):
        u, decay = case(length, rate=0.1)
        torch.testing.assert_close(decayed_sum(u, decay), decayed_sum(u, decay, length), rtol=1e-11, atol=1e-12)


@pairwise(chunk=(1, 3, 16), shape=((2, 7, 1), (1, 7, 3), (1, 1, 3)))
def test_gradients_with_broadcast_decays(chunk: int, shape: tuple[int, ...]) -> None:
    u, decay = case(7)
    decay = decay[: shape[0], : shape[1], : shape[2]]
    if shape[1] == 1:
        decay = decay.expand(shape[0], 7, shape[2])
    inputs = (u.requires_grad_(), decay.detach().clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: decayed_sum(a, b, chunk), inputs)
    assert torch.autograd.gradcheck(lambda a, b: reversed_decayed_sum(a, b, chunk), inputs)


@pytest.mark.parametrize("rate", [0.0, 1e4])
def test_extreme_decays(rate: float) -> None:
    u, _ = case(100)
    decay = torch.full_like(u, -rate).requires_grad_()
    u.requires_grad_()
    h = decayed_sum(u, decay, 16)
    expected = u if rate else u.cumsum(1)
    torch.testing.assert_close(h, expected, rtol=1e-12, atol=1e-12)
    h.sum().backward()
    assert torch.isfinite(gradient_of(decay)).all() and torch.isfinite(gradient_of(u)).all()


def test_16_bit_inputs_accumulate_in_float32() -> None:
    u = torch.ones(1, 3000, 1, dtype=torch.bfloat16)
    h = decayed_sum(u, torch.zeros_like(u))
    assert h.dtype == torch.bfloat16
    assert abs(h[0, -1, 0].item() - 3000) <= 16, "a sum in bfloat16 would stop at 256"


def test_scan_is_bitwise_causal() -> None:
    u, decay = case(300, dtype=torch.float32)
    for cut in (1, 64, 150, 299):
        other = u.clone()
        other[:, cut:] = 1e30
        assert torch.equal(decayed_sum(other, decay)[:, :cut], decayed_sum(u, decay)[:, :cut])


@pytest.mark.parametrize("prior", SCAN_PRIORS)
@over_directions
def test_layers_are_independent_of_chunk_size(prior: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(length=150)
    expected, whole, seen = layer(x), scan.decayed_sum, []
    mixers = [module for name, module in sys.modules.items() if name.startswith("femts.mixers")]
    users = [module for module in mixers if hasattr(module, "decayed_sum")]
    for chunk in (5, 32, 150):

        def with_chunk(u: Tensor, decay: Tensor, size: int | None = None, chunk: int = chunk) -> Tensor:
            seen.append(chunk)
            return whole(u, decay, chunk)

        for module in users:
            monkeypatch.setattr(module, "decayed_sum", with_chunk)
        monkeypatch.setattr(linear, "CHUNK", chunk)
        torch.testing.assert_close(layer(x), expected, rtol=1e-10, atol=1e-11)
    assert set(seen) == {5, 32, 150}


@pairwise(rate=(0.0, 1.0, 1e4), length=(1, 130))
def test_export_form_matches_the_scan(length: int, rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    u, decay = case(length, rate=rate)
    expected, highest = decayed_sum(u, decay), u.cummax(1).values
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    torch.testing.assert_close(decayed_sum(u, decay), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(scan.running_max(u), highest, rtol=0, atol=0)


@in_turn(prior=SCAN_PRIORS, causal=(False, True))
def test_layers_in_export_form_match(prior: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = make_layer(prior, causal=causal), make_input(length=150)
    with torch.no_grad():
        expected = layer(x)
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
        torch.testing.assert_close(layer(x), expected, rtol=1e-9, atol=1e-10)
