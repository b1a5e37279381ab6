"""Float32 accuracy, and finite outputs and gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from combinations import in_turn, pairwise
from mixer_cases import PRIORS, make_as_made, make_input, make_layer, over_priors
from torch import Tensor
from torch.nn import functional as F

from femts.mixers import FreeEnergyMixer
from femts.mixers.read import free_energy_read

DECAYING = ("gla", "rnn_decay", "mamba")
DECAYS = {
    "no decay": lambda shape, g: torch.zeros(shape),
    "decay 0 to 5": lambda shape, g: 5 * torch.rand(shape, generator=g),
    "half none, half 5": lambda shape, g: 5.0 * (torch.rand(shape, generator=g) > 0.5),
}


def prior_parameters(prior: str, layer: FreeEnergyMixer, length: int, decay: str) -> dict[str, torch.Tensor]:
    """Float32 parameters of a prior with chosen decays per step (natural logarithms, 0 to 5)."""
    generator = torch.Generator().manual_seed(2)
    prior_module: Any = layer.prior
    params = {n: torch.randn(1, length, w, generator=generator) for n, w in layer.prior.param_widths.items()}
    if "k" in params and prior == "rnn_softmax":
        params["k"] = 3 * params["k"] + torch.linspace(0, 30, length)[None, :, None]
    if "decay" in params:
        rate = DECAYS[decay](params["decay"].shape, generator).clamp_min(1e-9)
        bias = prior_module.decay_bias.detach().float()
        params["decay"] = (-torch.log(torch.expm1(rate))).clamp(-30, 30) - bias
    if "dt" in params:
        delta = (
            DECAYS[decay](params["dt"].shape, generator).clamp_min(1e-9) / 3
        )  # the fastest of three states has A = 3
        params["dt"] = torch.log(torch.expm1(delta)).clamp_min(-30)
        with torch.no_grad():
            prior_module.dt_proj.weight.fill_(1.0)
            prior_module.dt_proj.bias.zero_()
            prior_module.A_log.copy_(torch.arange(1.0, 4.0).log().expand_as(prior_module.A_log))
    return params


# The causal form at a large length, without decay and with it where a prior has one; the full form at a middle one.
ACCURACY_CASES = [
    *((prior, True, 4096, "no decay") for prior in PRIORS if prior != "mamba"),
    ("mamba", True, 700, "no decay"),
    *((prior, True, 700, "decay 0 to 5") for prior in DECAYING),
    *((prior, False, 700, "half none, half 5") for prior in PRIORS),
]


@pytest.mark.parametrize(
    "prior,causal,length,decay",
    ACCURACY_CASES,
    ids=[f"{prior}-{'causal' if causal else 'full'}-T{t}-{decay}" for prior, causal, t, decay in ACCURACY_CASES],
)
def test_float32_read_matches_float64(prior: str, causal: bool, length: int, decay: str) -> None:
    """Values up to |beta v| = 80, decays from 0 to 5 per step; errors against the scale of each part."""
    layer = make_layer(prior, "L", causal=causal, fem_dim=8, n_head=1, dtype=torch.float32)
    params = prior_parameters(prior, layer, length, decay)
    heads = layer.config.heads
    v = 40 * (2 * torch.rand(1, length, heads, 8 // heads, generator=torch.Generator().manual_seed(3)) - 1)
    reads = []
    for model, kind in ((layer, torch.float32), (copy.deepcopy(layer).double(), torch.float64)):
        bound = model.prior.bind({name: p.to(kind) for name, p in params.items()}, None)
        beta = torch.full(v.shape[2:], 2.0, dtype=kind)
        with torch.no_grad():
            reads.append(free_energy_read(bound.mix, v.to(kind), beta, None, None, 40.0, None))
            assert (bound.mix(torch.ones_like(v, dtype=kind)) - 1).abs().max() < (
                1e-5 if kind == torch.float32 else 1e-12
            )
    for name in ("mu", "f_max"):
        got, want = getattr(reads[0], name).double(), getattr(reads[1], name)
        assert (got - want).abs().max() <= 1e-5 * want.abs().max(), name


@in_turn(prior=PRIORS, length=(300, 2048))
def test_float32_layer_matches_float64(prior: str, length: int) -> None:
    layer = make_layer(prior, "CLTG", dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name in ("in_proj.weight", "conditioner.out_proj.weight"):
                parameter.mul_(0.2)  # scores and keys of the order of 1
        x = make_input(1, length, dtype=torch.float32)
        got, want = layer(x).double(), copy.deepcopy(layer).double()(x.double())
    assert (got - want).abs().max() <= 1e-5 * want.abs().max()


MODERATE = {
    "normal": lambda x: x,
    "constant": lambda x: torch.full_like(x, 3.0),
    "zero": torch.zeros_like,
    "tiny": lambda x: 1e-20 * x,
}
HUGE = {
    "huge": lambda x: 1e4 * x,
    "huge constant": lambda x: torch.full_like(x, -1e4),
    "one huge token": lambda x: torch.cat([x[:, :-1], 1e4 * x[:, -1:]], dim=1),
}


def assert_finite(layer: FreeEnergyMixer, x: Tensor, mask: Tensor | None, kind: str) -> None:
    x = x.requires_grad_()
    y = layer(x, mask)
    assert bool(torch.isfinite(y).all()), f"output for {kind} inputs, T={x.shape[1]}"
    y.float().square().mean().backward()
    tensors = [("x", x), *layer.named_parameters()]
    bad = [name for name, tensor in tensors if tensor.grad is not None and not bool(torch.isfinite(tensor.grad).all())]
    assert not bad, f"gradients for {kind} inputs, T={x.shape[1]}"


def some_mask(length: int) -> Tensor:
    mask = torch.rand(2, length, generator=torch.Generator().manual_seed(1)) > 0.5
    mask[0], mask[1, : length // 3] = False, False
    return mask


@pairwise(prior=PRIORS, causal=(True, False), dtype=(torch.float32, torch.bfloat16), length=(1, 140))
def test_outputs_and_gradients_are_finite(prior: str, causal: bool, dtype: torch.dtype, length: int) -> None:
    for kind, make in MODERATE.items():
        for mask in (None, some_mask(length)):
            layer = make_layer(prior, "CLTG", causal=causal, dtype=dtype)
            assert_finite(layer, make(make_input(length=length, dtype=dtype)), mask, kind)


@pairwise(prior=PRIORS, causal=(True, False), dtype=(torch.float32, torch.bfloat16), components=("LT", "CLTG"))
def test_huge_inputs_are_finite(prior: str, causal: bool, dtype: torch.dtype, components: str) -> None:
    """Inputs of 1e4 into a newly initialized layer."""
    for kind, make in HUGE.items():
        for length in (2, 67, 140) if dtype == torch.float32 else (67,):
            layer = make_as_made(prior, components, causal=causal, dtype=dtype)
            for mask in (None, some_mask(length)):
                assert_finite(layer, make(make_input(length=length, width=64, dtype=dtype)), mask, kind)


@in_turn(prior=PRIORS, dtype=(torch.float32, torch.bfloat16))
def test_4096_tokens_are_finite(prior: str, dtype: torch.dtype) -> None:
    layer = make_layer(prior, "CLTG", dtype=dtype, fem_dim=8)
    assert_finite(layer, make_input(1, 4096, dtype=dtype), torch.arange(4096)[None] >= 100, "normal")


@over_priors
def test_bfloat16_stays_near_float32(prior: str) -> None:
    """Sums accumulate in float32, so the error does not grow with the length."""
    layer = make_layer(prior, "LTG", dtype=torch.float32)
    x = make_input(1, 2000, dtype=torch.float32).bfloat16().float()
    low = copy.deepcopy(layer).bfloat16()
    with torch.no_grad():
        for target, source in zip(layer.parameters(), low.parameters(), strict=True):
            target.copy_(source)
        want, got = layer(x), low(x.bfloat16()).float()
    error = (got - want).square().mean(-1).sqrt() / want.square().mean().sqrt()
    assert error[:, :50].mean() < 0.05
    assert error[:, -200:].mean() < 0.05


@in_turn(prior=PRIORS, causal=(True, False))
def test_autocast_keeps_the_prior_normalised(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "LT", causal=causal, dtype=torch.float32), make_input(1, 150, dtype=torch.float32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        bound = layer.bind(x)
        ones = torch.ones(1, 150, layer.config.heads, 2 * layer.widths.fem_dim // layer.config.heads)
        threes = bound.mix(3 * ones)
        assert (threes.float() - 3).abs().max() <= 3 * 2**-7
        y = layer(x)
    assert torch.isfinite(y).all()
    with torch.no_grad():
        exact = layer(x)
    assert (y.float() - exact).square().mean().sqrt() <= 0.05 * exact.square().mean().sqrt()


def test_gradcheck() -> None:
    for prior in PRIORS:
        layer, x = make_layer(prior, "CLTG", n_embd=4, ssm_rank=2), make_input(1, 5, 4).requires_grad_()
        assert torch.autograd.gradcheck(layer, (x,), atol=1e-6), prior


def test_tiny_temperature_stays_positive() -> None:
    """The read tends to the mean."""
    layer, x = make_layer("softmax", "L"), make_input()
    with torch.no_grad():
        layer.beta_raw.fill_(-12.0)
    read: Any = layer.read(x)
    assert (read.beta > 0).all()
    torch.testing.assert_close(read.f_max, read.mu, rtol=0, atol=1e-3)
    assert F.softplus(torch.tensor(-12.0 + 1.8)) == pytest.approx(read.beta.max().item(), rel=1e-6)
