"""The Triton free-energy read, compared with torch."""

from __future__ import annotations

import pytest
import torch
from combinations import in_turn, pairwise
from kernel_cases import assert_near, with_gradients
from mixer_cases import PRIORS, make_input, make_layer
from torch import Tensor

from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer
from femts.mixers.kernels import recorded, using

READS = ("LT", "LG", "CLTG")


def both_kernels(
    layer: FreeEnergyMixer, x: Tensor, mask: Tensor | None, device: str, exact: FreeEnergyMixer | None = None
) -> tuple[list[Tensor], list[Tensor]]:
    """Output and gradients with Triton, and of the float64 layer `exact` with torch."""

    def run(layer: FreeEnergyMixer, x: Tensor, mask: Tensor | None, place: str) -> list[Tensor]:
        names = [name for name, _ in layer.named_parameters()]
        call = lambda x, *p: torch.func.functional_call(layer, dict(zip(names, p, strict=True)), (x, mask))  # noqa: E731
        return with_gradients(call, [x, *layer.parameters()], place)

    with using(read="torch", scan="torch"):
        expected = run(exact or layer, x.double(), mask, "cpu")
    with using(read="triton"), recorded() as ran:
        found = run(layer.to(device), x, None if mask is None else mask.to(device), device)
    assert ran["read"] == "triton"
    return found, expected


@pairwise(prior=PRIORS, masked=(False, True), components=READS)
def test_layers_agree_in_float64(prior: str, masked: bool, components: str, device: str) -> None:
    mask = None
    if masked:
        mask = torch.ones(2, 7, dtype=torch.bool)
        mask[0, :3], mask[1] = False, False  # a late start, and nothing at all
    found, expected = both_kernels(make_layer(prior, components), make_input(length=7), mask, device)
    assert_near(found, expected, 1e-11)


@in_turn(prior=PRIORS, dtype=(torch.float32, torch.bfloat16))
def test_low_precision_accuracy(prior: str, dtype: torch.dtype, device: str) -> None:
    tolerance = 1e-5 if dtype == torch.float32 else 0.1
    exact = make_layer(prior, "CLTG", dtype=dtype).double()
    found, expected = both_kernels(
        make_layer(prior, "CLTG", dtype=dtype), make_input(length=9).to(dtype), None, device, exact
    )
    assert_near(found, expected, tolerance)


@in_turn(prior=PRIORS[3:], components=("CLTG", "L"), shape=((0, 5), (2, 0), (0, 0)))
def test_empty_inputs_give_empty_outputs(prior: str, components: str, shape: tuple[int, int], device: str) -> None:
    layer, x = make_layer(prior, components).to(device), make_input(*shape).to(device).requires_grad_()
    with using(read="triton", scan="triton", selective_scan="triton"):
        y = layer(x)
        y.sum().backward()
    assert y.shape == x.shape


@pairwise(scale=(0.0, 1e-20, 1e4), components=("L", "CLTG"))
def test_extreme_inputs_are_finite(components: str, scale: float, device: str) -> None:
    layer, x = make_layer("softmax", components, dtype=torch.float32), scale * make_input(length=3).float()
    found, expected = both_kernels(
        layer, x, None, device, make_layer("softmax", components, dtype=torch.float32).double()
    )
    assert all(y.isfinite().all() for y in found)
    if scale < 1:
        assert_near(found[:1], expected[:1], 1e-5)


@pytest.mark.parametrize("pre", [-300.0, -9.0, 30.0])
def test_accuracy_of_extreme_gates(pre: float, device: str) -> None:
    from femts.mixers.kernels.read_triton import gated_read_triton
    from femts.mixers.read import outer_gate

    torch.manual_seed(0)
    beta, v = torch.full((1, 6), 1.5), torch.randn(1, 4, 1, 6)
    gate = pre + torch.randn(1, 4, 1, 6)
    plain = lambda gate: outer_gate(gate, 1e-6) * v.double()  # noqa: E731
    fast = lambda gate: gated_read_triton(lambda x: x, v.to(device), beta.to(device), None, gate, 40.0, 1e-6, None)  # noqa: E731
    assert_near(with_gradients(fast, [gate], device), with_gradients(plain, [gate.double()]), 1e-5)


def test_streaming_uses_the_same_kernels(device: str) -> None:
    layer, x = make_layer("rnn_decay", "CLTG").to(device), make_input(length=4).to(device)
    with using(read="triton"), recorded() as ran:
        state, steps = layer.init_state(x.shape[0]), []
        for t in range(4):
            y, state = layer.step(x[:, t], state)
            steps.append(y)
    assert ran["read"] == "triton"
    torch.testing.assert_close(torch.stack(steps, 1), layer(x), rtol=1e-9, atol=1e-9)


def test_float16_is_refused(device: str) -> None:
    layer = make_layer("rnn_decay", "L", dtype=torch.float16).to(device)
    with using(read="triton"), pytest.raises(UsageError, match="float16 cannot represent"):
        layer(make_input(length=2).half().to(device))
