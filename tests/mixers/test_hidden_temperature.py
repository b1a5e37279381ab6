"""The inner gate as a temperature: (1 - lambda) mu + lambda F_max = F(beta*) (proposition G.2)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from combinations import in_turn, pairwise
from hypothesis import given, settings
from hypothesis import strategies as st
from mixer_cases import PRIORS, dense, make_input, make_layer, over_layers, over_priors, values
from torch import Tensor

from femts.errors import UsageError
from femts.mixers.reference import free_energy
from femts.mixers.temperature import find_hidden_temperature, hidden_selection, tilting_values


@in_turn(prior=PRIORS, causal=(True, False))
def test_hidden_temperature_reproduces_the_gated_read(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(length=10)
    read: Any = layer.read(x)
    star = layer.hidden_temperature(x)
    assert star.shape == read.f.shape
    assert (star >= 0).all() and (star <= read.beta + 1e-12).all()
    p, v = dense(layer, x), values(layer, x)
    several = ((p > 1e-6).sum(2) > 1).expand_as(star)  # with one token to see, every beta answers
    f = free_energy(p, v, star.clamp_min(1e-12))
    assert (f - read.f)[several].abs().max() < 1e-9
    mixed = (1 - read.lam) * read.mu + read.lam * read.f_max
    torch.testing.assert_close(read.f, mixed, rtol=1e-12, atol=1e-13)


@over_priors
def test_posterior_is_a_distribution(prior: str) -> None:
    layer, x = make_layer(prior, "CLTG"), make_input(length=10)
    q, p, v = layer.posterior(x), dense(layer, x), values(layer, x)
    assert q.shape == (2, 10, 10, *v.shape[2:])
    assert (q.sum(2) - 1).abs().max() < 1e-12
    assert (q[(p == 0).expand_as(q)] == 0).all()
    star = layer.hidden_temperature(x).unsqueeze(2)
    tilted = p * torch.exp(star * v.unsqueeze(1))
    torch.testing.assert_close(q, tilted / tilted.sum(2, keepdim=True), rtol=1e-10, atol=1e-12)


@over_layers
def test_diagnostics_for_every_component_set(prior: str, components: str) -> None:
    layer, x = make_layer(prior, components), make_input()
    star, q = layer.hidden_temperature(x), layer.posterior(x)
    if "L" not in components:
        assert (star == 0).all()
        torch.testing.assert_close(q, dense(layer, x).expand_as(q), rtol=1e-11, atol=1e-13)
    elif "T" not in components:
        read: Any = layer.read(x)
        torch.testing.assert_close(star, read.beta.expand_as(star), rtol=1e-12, atol=0)


def random_case(seed: int, length: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    p = torch.randn(1, 1, length, 1, 1, generator=generator, dtype=torch.float64).mul(2).softmax(2)
    v = 2 * torch.randn(1, length, 1, 1, generator=generator, dtype=torch.float64)
    return p, v


def solve(p: Tensor, v: Tensor, beta: float, lam: float) -> tuple[Tensor, Tensor, Tensor]:
    """beta* of one query over all tokens, repeated for each token."""
    length = v.shape[1]
    p = p.expand(1, length, length, 1, 1)
    star = find_hidden_temperature(p, v, torch.tensor(beta, dtype=v.dtype), torch.full_like(v, lam))
    mu = (p * v.unsqueeze(1)).sum(2)

    def above_the_mean(beta: Tensor) -> Tensor:  # F(beta) - mu without cancellation
        away = beta.clamp_min(1e-300).unsqueeze(2) * (v.unsqueeze(1) - mu.unsqueeze(2))
        return (p * torch.expm1(away)).sum(2).log1p() / beta.clamp_min(1e-300)

    return star, mu + lam * above_the_mean(torch.full_like(v, beta)), mu + above_the_mean(star)


@given(lam=st.floats(0.0, 1.0), beta=st.floats(0.1, 10.0), seed=st.integers(0, 9999))
@settings(max_examples=40, deadline=None)
def test_hidden_temperature_exists_for_any_gate(lam: float, beta: float, seed: int) -> None:
    star, target, reached = solve(*random_case(seed), beta, lam)
    assert (star >= 0).all() and (star <= beta).all()
    torch.testing.assert_close(reached, target, rtol=0, atol=1e-9)


def test_hidden_temperature_at_gate_limits() -> None:
    p, v = random_case(3)
    assert (solve(p, v, 3.0, 0.0)[0] == 0).all()
    assert (solve(p, v, 3.0, 1.0)[0] == 3.0).all()


@pytest.mark.parametrize("lam", [1e-2, 1e-6])
def test_hidden_temperature_resolves_small_gates(lam: float) -> None:
    """Near 0 beta* is 2 lambda (F_max - mu) / Var_p(v) (appendix F.5): relative accuracy, not only absolute."""
    p, v = random_case(5)
    star, _, _ = solve(p, v, 2.0, lam)
    weights, column = p[0, 0, :, 0, 0], v[0, :, 0, 0]
    mu = (weights * column).sum()
    variance = (weights * (column - mu).square()).sum()
    gain = torch.logsumexp(weights.log() + 2.0 * column, 0) / 2.0 - mu
    assert star.flatten()[0].item() == pytest.approx((2 * lam * gain / variance).item(), rel=5 * lam + 1e-3)


@pairwise(prior=PRIORS, components=("L", "LT"), scale=(1, 3000))
def test_posterior_respects_the_cap(prior: str, components: str, scale: float) -> None:
    """F at beta* is the read, or the posterior is refused."""
    layer, x = make_layer(prior, components), make_input(length=10)
    with torch.no_grad():
        layer.in_proj.weight[: layer.widths.fem_dim].mul_(scale)  # the values alone
    read: Any = layer.read(x)
    p, v, cap = dense(layer, x), values(layer, x), layer.config.value_logexp_cap
    assert ((read.beta * v).abs().max() > cap) == (scale > 1)
    try:
        star = layer.hidden_temperature(x)
    except UsageError as error:
        assert components == "LT" and scale > 1 and "beyond value_logexp_cap=40; scale down the inputs" in str(error)
        return
    tilting = tilting_values(p, v, read.beta, cap)
    f = torch.logsumexp(p.log() + star.clamp_min(1e-12).unsqueeze(2) * tilting, dim=2) / star.clamp_min(1e-12)
    several = ((p > 1e-6).sum(2) > 1).expand_as(star)
    assert ((f - read.f).abs() / (1 + v.abs().amax()))[several].max() < 1e-9
    assert (layer.posterior(x).sum(2) - 1).abs().max() < 1e-12


CAPPED = {  # values of equal weight and the inner gate; at beta_max = 20 the cap of 40 acts on |v| > 2
    "one far below the others, of which nothing is left": ([-9.0, 0.0, 1.0], 0.5, "answered"),
    "one at the cap": ([2.0, 0.0, 1.0], 0.5, "answered"),
    "one beyond it, read as the log-sum-exp alone": ([9.0, 0.0, 1.0], 1.0, "answered"),
    "one a little beyond it": ([2.2, 0.0, 1.0], 0.9, "answered"),
    "one beyond it, whose mean is above the capped free energy": ([9.0, 0.0, 1.0], 0.5, "refused"),
    "all below the cap": ([-9.0, -7.0, -8.0], 0.5, "refused"),
}


@pytest.mark.parametrize("column,lam,expected", CAPPED.values(), ids=list(CAPPED))
def test_capped_read_has_a_temperature_or_is_refused(column: list[float], lam: float, expected: str) -> None:
    v = torch.tensor(column, dtype=torch.float64).view(1, 3, 1, 1)
    p, beta = torch.full((1, 1, 3, 1, 1), 1 / 3, dtype=torch.float64), torch.full((1, 1), 20.0, dtype=torch.float64)
    gate = torch.full((1, 1, 1, 1), lam, dtype=torch.float64)
    if expected == "refused":
        with pytest.raises(UsageError, match=r"No inverse temperature gives the read where \|beta v\| reaches 180"):
            hidden_selection(p, v, beta, gate, 40.0)
        return
    q, star = hidden_selection(p, v, beta, gate, 40.0)
    f_max = (p * (beta * v).clamp(-40, 40).unsqueeze(1).exp()).sum(2).log() / beta
    read = (1 - lam) * v.mean() + lam * f_max
    tilting = tilting_values(p, v, beta, 40.0)
    torch.testing.assert_close(torch.logsumexp(p.log() + star * tilting, 2) / star, read, rtol=1e-9, atol=1e-9)
    assert q.sum().item() == pytest.approx(1)
