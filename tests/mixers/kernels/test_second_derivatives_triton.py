"""Second derivatives of Triton kernels."""

from __future__ import annotations

import pytest
import torch
from kernel_cases import assert_near
from mixer_cases import make_input, make_layer
from torch import Tensor

from femts.mixers import FreeEnergyMixer
from femts.mixers.kernels import recorded, using


def second(layer: FreeEnergyMixer, x: Tensor, device: str, **kernels: str) -> list[Tensor]:
    """Gradient of the squared gradient of the input and parameters, as float64 on the CPU."""
    layer, x = layer.to(device), x.to(device).requires_grad_()
    with using(**kernels), recorded() as ran:
        y = layer(x)
    assert {name: ran.get(name) for name in kernels} == kernels
    inputs = [x, *layer.parameters()]
    first = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
    found = torch.autograd.grad(
        torch.stack([g.square().sum() for g in first]).sum(), inputs, materialize_grads=True, allow_unused=True
    )
    return [g.detach().double().cpu() for g in found]


CASES = [
    ("rnn_decay", "CLTG", {"read": "triton", "scan": "triton"}),
    ("rnn_softmax", "LG", {"read": "triton", "scan": "triton"}),
    ("linear", "L", {"read": "triton"}),
    ("mamba", "CLTG", {"read": "triton", "selective_scan": "triton"}),
]


@pytest.mark.parametrize("prior,components,kernels", CASES, ids=[case[0] for case in CASES])
def test_second_derivatives(prior: str, components: str, kernels: dict[str, str], device: str) -> None:
    layer, x = make_layer(prior, components), make_input(length=7)
    expected = second(layer, x, "cpu", **dict.fromkeys(kernels, "torch"))
    assert_near(second(layer, x.detach(), device, **kernels), expected, 1e-9)
