"""Causality of outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from combinations import pairwise
from mixer_cases import PRIORS, SCAN_PRIORS, make_input, make_layer, over_layers, values

FUTURES = {
    "other tokens": lambda x, t: torch.cat([x[:, :t], -3 * x[:, t:].flip(1) + 1], dim=1),
    "last token 100 x larger": lambda x, t: torch.cat([x[:, :-1], 100 * x[:, -1:]], dim=1),
}


@pairwise(prior=PRIORS, future=list(FUTURES), dtype=(torch.float64, torch.float32), at=((12, 5), (90, 64), (200, 130)))
def test_outputs_are_causal(prior: str, future: str, dtype: torch.dtype, at: tuple[int, int]) -> None:
    length, cut = at
    layer, x = make_layer(prior, "CLTG", dtype=dtype), make_input(length=length, dtype=dtype)
    changed = FUTURES[future](x, cut)
    with torch.no_grad():
        before, after = layer(x)[:, :cut], layer(changed)[:, :cut]
        assert (layer(changed)[:, cut:] - layer(x)[:, cut:]).abs().max() > 0, "the future itself must have changed"
    if prior == "softmax" and dtype == torch.float32:
        assert ((after - before).norm() / before.norm()) < 1e-6
    else:
        assert torch.equal(after, before)


@over_layers
def test_gradients_are_causal(prior: str, components: str) -> None:
    layer, x = make_layer(prior, components), make_input(length=10).requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x)[:, :6].square().sum(), x)
    assert (gradient[:, 6:] == 0).all()
    assert (gradient[:, :6] != 0).any(dim=-1).all()


@pytest.mark.parametrize("prior", SCAN_PRIORS)
def test_scans_are_bitwise_causal_at_the_cap(prior: str) -> None:
    """exp(40) at a later token must not round earlier sums."""
    layer, x = make_layer(prior, "L", dtype=torch.float32), make_input(length=140, dtype=torch.float32)
    bound, v = layer.bind(x), values(layer, x)
    huge = v.clone()
    huge[:, 100:] = torch.exp(torch.tensor(40.0))
    with torch.no_grad():
        assert torch.equal(bound.mix(huge)[:, :100], bound.mix(v)[:, :100])
