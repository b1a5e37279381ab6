"""Gradients of huge inputs are finite."""

from __future__ import annotations

import pytest
import torch
from combinations import in_turn
from mixer_cases import PRIORS, over_priors

from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.mixers.ops.selective_scan import LONG
from femts.mixers.priors.linear import DENSE_UP_TO

LARGEST_CAP = 40.0  # that a configuration takes
HUGE = 1e3  # times a normal

# Short sequences for the dense forms; one token beyond each length at which a form cuts into chunks; many chunks.
CASES = [  # length, how far weights are moved, seeds
    *((length, spread, 6) for length in (7, 33) for spread in (0.0, 0.3)),
    *((length, spread, 1) for length in (DENSE_UP_TO + 1, LONG + 1) for spread in (0.0, 0.3)),
    (1200, 0.3, 1),
]


@over_priors
def test_gradients_are_finite(prior: str) -> None:
    cases = [(part, t, spread, seed) for t, spread, seeds in CASES for part in ("LT", "CLTG") for seed in range(seeds)]
    assert [case for case in cases if not finite(prior, *case)] == []


@pytest.mark.parametrize(
    ("prior", "length", "spread", "seed"),
    [("gla", 7, 0.3, 7), ("gla", 33, 0.3, 4), ("gla", 128, 0.0, 35), ("gla", 140, 0.0, 19), ("mamba", 257, 0.0, 0)],
)
def test_gradients_are_finite_on_former_failures(prior: str, length: int, spread: float, seed: int) -> None:
    assert finite(prior, "LT", length, spread, seed, 1e3)
    assert finite(prior, "LT", length, spread, seed, 1e4)


@in_turn(prior=PRIORS, causal=(True, False))
def test_gradients_are_finite_at_the_largest_cap(prior: str, causal: bool) -> None:
    """Gradients pass through exp(2 cap)."""
    torch.manual_seed(0)
    layer = FreeEnergyMixer(FreeEnergyMixerConfig(32, 4, prior, causal=causal, value_logexp_cap=LARGEST_CAP))
    with torch.no_grad():
        layer.in_proj.weight.mul_(20)
    for sign in (1.0, -1.0):
        side = torch.ones(200)
        side[100:] = -1
        x = (torch.randn(2, 200, 32) + 60 * sign * side[:, None] * torch.randn(32)).requires_grad_()
        y = layer(x)
        y.square().sum().backward()
        assert all(
            bool(t.isfinite().all()) for t in (y, *(p.grad for p in (x, *layer.parameters()) if p.grad is not None))
        )


def finite(
    prior: str, components: str, length: int, spread: float, seed: int, scale: float = HUGE, causal: bool = True
) -> bool:
    torch.manual_seed(seed)
    config = FreeEnergyMixerConfig(64, 4, prior, causal=causal, ssm_rank=8, **component_flags(components))
    layer = FreeEnergyMixer(config)
    with torch.no_grad():
        if layer.conditioner is not None:
            torch.nn.init.normal_(layer.conditioner.out_proj.weight, std=0.02)
        for parameter in layer.parameters() if spread else ():
            parameter.add_(spread * torch.randn_like(parameter))
    x = (scale * torch.randn(2, length, 64)).requires_grad_()
    y = layer(x)
    y.square().mean().backward()
    tensors = [y, *(t.grad for t in (x, *layer.parameters()) if t.grad is not None)]
    return all(bool(t.isfinite().all()) for t in tensors)
