"""The plain reference form equals the fast layer, gradients included."""

from __future__ import annotations

import pytest
import torch
from mixer_cases import make_input, make_layer, over_layers, over_priors
from torch import Tensor

from femts.mixers import FreeEnergyMixer
from femts.mixers.reference import plain_forward

MASK = torch.tensor([[0, 0, 1, 1, 0, 1, 1, 0, 1], [1] * 9])  # the first rows of a causal layer see nothing


def assert_forms_agree(layer: FreeEnergyMixer, x: Tensor, mask: Tensor | None) -> None:
    x = x.requires_grad_()
    wanted = [x, *layer.parameters()]
    fast, plain = layer(x, mask), plain_forward(layer, x, mask)
    torch.testing.assert_close(plain, fast, rtol=1e-11, atol=1e-13)
    upstream = make_input(seed=7)
    for one, other in zip(*(torch.autograd.grad(y, wanted, upstream) for y in (plain, fast)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@over_layers
def test_plain_and_fast_forms_agree(prior: str, components: str) -> None:
    assert_forms_agree(make_layer(prior, components), make_input(), None)


@over_priors
def test_plain_and_fast_forms_agree_with_a_mask(prior: str) -> None:
    for causal in (True, False):
        assert_forms_agree(make_layer(prior, "CLTG", causal=causal), make_input(), MASK)


@pytest.mark.parametrize("cap", [0.5, 40.0])
def test_plain_form_applies_the_cap(cap: float) -> None:
    assert_forms_agree(make_layer("softmax", value_logexp_cap=cap), 3 * make_input(), None)
