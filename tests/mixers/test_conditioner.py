"""The time-decay conditioner C (eq. 33, appendix I)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from combinations import in_turn
from mixer_cases import PRIORS, gradient_of, make_input, make_layer
from torch.nn import functional as F

from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
from femts.mixers.conditioner import TimeDecayConditioner
from femts.mixers.reference import conditioner as by_definition


def make_conditioner(causal: bool = True, norm_first: bool = True, hidden: int = 5) -> TimeDecayConditioner:
    torch.manual_seed(0)
    tdc = TimeDecayConditioner(16, hidden, 7, norm_first=norm_first, causal=causal).double()
    with torch.no_grad():
        for parameter in tdc.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return tdc


@in_turn(prior=PRIORS, causal=(True, False), length=(9, 70, 70, 9))
def test_conditioner_matches_the_double_sum(prior: str, causal: bool, length: int) -> None:
    """The pre-activations of the layer minus its own projection are W_c h of eq. 33."""
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(1, length)
    keep = torch.ones(1, length, dtype=torch.bool)
    modulation = by_definition(layer, x, keep).split(list(layer.split_sizes.values()), dim=-1)
    plain = dict(zip(layer.split_sizes, layer.in_proj(x).split(list(layer.split_sizes.values()), dim=-1), strict=True))
    for (name, got), shift in zip(layer._project(x, None).items(), modulation, strict=True):
        want = plain[name] * (1 + shift) if name == "v" else plain[name] + shift  # eq. 34b, 34a
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-11, msg=name)


@pytest.mark.parametrize("norm_first", [True, False])
def test_conditioner_features_match_the_paper(norm_first: bool) -> None:
    tdc: Any = make_conditioner(norm_first=norm_first)
    x = make_input(1, 12)
    inner = F.layer_norm(x, (16,), tdc.norm_in.weight, tdc.norm_in.bias) if norm_first else x
    w_f, w_x, w_s = tdc.in_proj.weight.chunk(3)
    s, u, a = F.softplus(inner @ w_f.T), inner @ w_x.T, F.softplus(inner @ w_s.T)
    past = [[torch.exp(-s[:, i + 1 : t + 1].sum(1)) * u[:, i] for i in range(t + 1)] for t in range(12)]
    h = torch.stack([torch.stack(terms).sum(0) for terms in past], dim=1)
    features = F.silu(a / a.norm(dim=-1, keepdim=True)) * F.layer_norm(
        h, (5,), tdc.norm_hidden.weight, tdc.norm_hidden.bias
    )
    torch.testing.assert_close(tdc(x), features, rtol=1e-11, atol=1e-12)


def test_conditioner_streaming_matches_parallel() -> None:
    tdc, x = make_conditioner(), make_input(2, 30)
    state, outputs = tdc.init_state(2), []
    for t in range(30):
        features, state = tdc.step(x[:, t], state)
        outputs.append(features)
        assert state.shape == (2, 5)
    torch.testing.assert_close(torch.stack(outputs, dim=1), tdc(x), rtol=1e-11, atol=1e-12)


def test_conditioner_is_causal() -> None:
    tdc, x = make_conditioner(), make_input(2, 100)
    changed = torch.cat([x[:, :60], 100 * x[:, 60:]], dim=1)
    assert torch.equal(tdc(changed)[:, :60], tdc(x)[:, :60])


def test_bidirectional_conditioner_is_symmetric() -> None:
    """With equal decays, reversing the sequence reverses the features."""
    tdc, x = make_conditioner(causal=False), make_input(2, 20)
    with torch.no_grad():
        tdc.in_proj.weight[:5] = 0
    torch.testing.assert_close(tdc(x.flip(1)).flip(1), tdc(x), rtol=1e-10, atol=1e-12)
    causal = make_conditioner(causal=True)
    with torch.no_grad():
        causal.in_proj.weight[:5] = 0
    assert (causal(x.flip(1)).flip(1) - causal(x)).abs().max() > 1e-2


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_conditioner_is_zero_at_initialization(prior: str) -> None:
    torch.manual_seed(0)
    layer, x = FreeEnergyMixer(FreeEnergyMixerConfig(32, 2, prior)).double(), make_input(2, 11, 32)
    torch.testing.assert_close(layer._parts(x, None), layer._project(x, None), rtol=1e-12, atol=1e-14)
    layer(x).square().sum().backward()
    assert layer.conditioner is not None
    assert gradient_of(layer.conditioner.out_proj.weight).abs().max() > 0, "but it learns from the first step on"


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_inner_gate_stays_in_the_unit_interval(prior: str) -> None:
    layer, x = make_layer(prior, "CLTG"), make_input(length=15)
    assert layer.conditioner is not None
    with torch.no_grad():
        layer.conditioner.out_proj.weight.mul_(30)
    read: Any = layer.read(x)
    assert (read.lam >= 0).all() and (read.lam <= 1).all() and (read.gate >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_conditioner_still_works_after_thousands_of_tokens(dtype: torch.dtype) -> None:
    """Equal tokens late in a long sequence give equal features."""
    tdc = make_conditioner().to(dtype)
    block = make_input(1, 64, dtype=dtype)
    with torch.no_grad():
        features = tdc(block.repeat(1, 40, 1))
    torch.testing.assert_close(features[:, -64:], features[:, 64:128], rtol=1e-3, atol=1e-3)
    assert features[:, -64:].abs().max() > 0.1
