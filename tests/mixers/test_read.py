"""The free-energy read: bounds, monotonicity, KL form and gradient (section 2.3, appendices F and G)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from combinations import in_turn, pairwise
from hypothesis import given, settings
from hypothesis import strategies as st
from mixer_cases import (
    COMPONENTS,
    PRIORS,
    dense,
    gradient_of,
    make_input,
    make_layer,
    over_priors,
    values,
)
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.read import free_energy_read, outer_gate
from femts.mixers.reference import free_energy, reference


@pairwise(prior=PRIORS, components=COMPONENTS, causal=(True, False))
def test_layer_equals_the_dense_reference(prior: str, components: str, causal: bool) -> None:
    layer, x = make_layer(prior, components, causal=causal), make_input()
    expected, read = reference(layer, x), layer.read(x)
    for name in ("mu", "f_max", "f", "lam", "gate"):
        got, want = getattr(read, name), getattr(expected, name)
        assert (got is None) == (want is None), name
        if want is not None:
            torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-12, msg=partial("{}: {}".format, name))
    torch.testing.assert_close(layer(x), expected.y, rtol=1e-11, atol=1e-12)


@in_turn(prior=PRIORS, causal=(True, False))
def test_mean_and_free_energy_are_bounded_by_the_values(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(length=12)
    read: Any = layer.read(x)
    v, p = values(layer, x), dense(layer, x)
    assert (read.beta * v).abs().max() < layer.config.value_logexp_cap, "the case must stay below the cap"
    seen = (p > 0).expand(*p.shape[:3], *v.shape[2:])
    spread = v.unsqueeze(1).expand_as(seen)
    low = spread.masked_fill(~seen, torch.inf).amin(2)
    high = spread.masked_fill(~seen, -torch.inf).amax(2)
    tiny = 1e-12
    assert (low <= read.mu + tiny).all()
    assert (read.mu <= read.f_max + tiny).all()
    assert (read.f_max <= high + tiny).all()
    assert (read.mu <= read.f + tiny).all() and (read.f <= read.f_max + tiny).all()
    assert (read.lam >= 0).all() and (read.lam <= 1).all()


@in_turn(prior=PRIORS, causal=(True, False))
def test_free_energy_increases_with_beta(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "L", causal=causal), make_input(length=12)
    v, bound = values(layer, x), layer.bind(x)
    previous = bound.mix(v)
    for beta in (1e-4, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0):
        f: Any = free_energy_read(
            bound.mix, v, torch.full(v.shape[2:], beta, dtype=v.dtype), None, None, 40.0, None
        ).f_max
        assert (f >= previous - 1e-11).all(), beta
        if beta == 1e-4:
            torch.testing.assert_close(f, previous, rtol=0, atol=2e-3)
        previous = f
    assert (previous[:, -1] > bound.mix(v)[:, -1] + 0.1).any(), "the free energy must move somewhere"


@in_turn(prior=PRIORS, causal=(False, True))
def test_free_energy_is_mean_plus_kl(prior: str, causal: bool) -> None:
    """F = mu + KL(p || q) / beta with q the tilted posterior (lemma F.1)."""
    layer, x = make_layer(prior, "L", causal=causal), make_input()
    read: Any = layer.read(x)
    v, p = values(layer, x), dense(layer, x)
    q = layer.posterior(x)
    p = p.expand_as(q)
    kl = torch.where(p > 0, p * (p.clamp_min(1e-300).log() - q.clamp_min(1e-300).log()), 0.0).sum(2)
    torch.testing.assert_close((p * v.unsqueeze(1)).sum(2), read.mu, rtol=0, atol=1e-12)
    torch.testing.assert_close(read.mu + kl / read.beta, read.f_max, rtol=1e-11, atol=1e-11)


@in_turn(prior=PRIORS, causal=(True, False))
def test_value_gradient_is_the_posterior(prior: str, causal: bool) -> None:
    """dF_t / dv_i = q_t(i), by autograd through the fast path against the dense posterior."""
    layer, x = make_layer(prior, "L", causal=causal), make_input(batch=1, length=7)
    q, bound = layer.posterior(x), layer.bind(x)
    v, beta = values(layer, x).detach().requires_grad_(), F.softplus(layer.beta_raw + 1.8).detach()
    f = free_energy_read(bound.mix, v, beta, None, None, 40.0, None).f
    for t in range(x.shape[1]):
        (gradient,) = torch.autograd.grad(f[:, t].sum(), v, retain_graph=True)
        torch.testing.assert_close(gradient, q[:, t], rtol=1e-11, atol=1e-12)


@over_priors
def test_gated_gradient_mixes_prior_and_posterior(prior: str) -> None:
    layer, x = make_layer(prior, "LT"), make_input(batch=1, length=6)
    read: Any = layer.read(x)
    bound, p = layer.bind(x), dense(layer, x)
    v = values(layer, x).detach().requires_grad_()
    log_q = p.log() + read.beta.detach() * v.detach().unsqueeze(1)
    expected = (1 - read.lam).unsqueeze(2) * p + read.lam.unsqueeze(2) * log_q.softmax(2)
    f = free_energy_read(bound.mix, v, read.beta, read.lam, None, 40.0, None).f
    for t in range(x.shape[1]):
        (gradient,) = torch.autograd.grad(f[:, t].sum(), v, retain_graph=True)
        torch.testing.assert_close(gradient, expected[:, t].detach(), rtol=1e-11, atol=1e-12)


@given(beta=st.floats(0.05, 10.0), scale=st.floats(0.1, 3.0), shift=st.floats(-1.0, 1.0), seed=st.integers(0, 2**16))
@settings(max_examples=30, deadline=None)
def test_shift_and_scale_law(beta: float, scale: float, shift: float, seed: int) -> None:
    """F(beta; a v + b) = a F(a beta; v) + b (appendix G.6)."""
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(1, 4, 4, 1, 1, generator=generator, dtype=torch.float64).softmax(2)
    v = torch.randn(1, 4, 1, 3, generator=generator, dtype=torch.float64)

    def read(values: Tensor, temperature: float) -> Any:
        beta = torch.full((1, 3), temperature, dtype=v.dtype)
        return free_energy_read(
            lambda u: torch.einsum("btihc,bihc->bthc", p.expand(-1, -1, -1, -1, u.shape[-1]), u),
            values, beta, None, None, 1e3, None,
        ).f_max  # fmt: skip

    torch.testing.assert_close(
        read(scale * v + shift, beta), scale * read(v, scale * beta) + shift, rtol=1e-9, atol=1e-10
    )
    torch.testing.assert_close(read(v, beta), free_energy(p, v, torch.full_like(v, beta)), rtol=1e-10, atol=1e-11)


def test_cap_does_not_affect_the_mean() -> None:
    v = torch.tensor([1000.0, -1000.0, 3.0], dtype=torch.float64).view(1, 3, 1, 1)
    beta = torch.full((1, 1), 2.0, dtype=torch.float64)
    read: Any = free_energy_read(lambda u: u, v, beta, None, None, 40.0, None)
    assert read.mu.flatten().tolist() == [1000.0, -1000.0, 3.0]
    torch.testing.assert_close(read.f_max.flatten().tolist(), [20.0, -20.0, 3.0])


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_read_uses_one_prior_pass(prior: str) -> None:
    """mu and F_max come from one `mix` of [v, exp(beta v)] (appendix F.4)."""
    layer, x = make_layer(prior, "LT"), make_input()
    bound, calls = layer.bind(x), []

    def counted(u: Tensor) -> Tensor:
        calls.append(u.shape)
        return bound.mix(u)

    v = values(layer, x)
    free_energy_read(counted, v, F.softplus(layer.beta_raw + 1.8), None, None, 40.0, None)
    assert calls == [(*v.shape[:-1], 2 * v.shape[-1])]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_outer_gate_has_unit_rms(dtype: torch.dtype) -> None:
    for level in (-1e4, -200.0, -60.0, -30.0, 0.0, 30.0, 1e4):
        pre = (level + torch.linspace(-1, 1, 16, dtype=dtype)).requires_grad_()
        gate = outer_gate(pre, 1e-6)
        gate.square().sum().backward()
        assert torch.isfinite(gate).all() and torch.isfinite(gradient_of(pre)).all(), level
        assert (gate > 0).all(), level
        torch.testing.assert_close(gate.square().mean().item(), 1.0, rtol=1e-5, atol=0)


def test_aft_query_gate_only_without_components() -> None:
    alone, x = make_layer("rnn_softmax", ""), make_input()
    assert "q" in alone.split_sizes
    q = alone._project(x, None)["q"]
    torch.testing.assert_close(alone(x), alone.out_proj(torch.sigmoid(q) * alone.read(x).mu.flatten(2)))
    for components in ("L", "LT", "G", "CLTG"):
        assert "q" not in make_layer("rnn_softmax", components).split_sizes
