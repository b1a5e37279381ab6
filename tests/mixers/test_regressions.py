"""Known errors of the published layer code."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from combinations import in_turn
from mixer_cases import PRIORS, SCAN_PRIORS, dense, gradient_of, make_input, make_layer, values
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.ops.dense import path_sums


@in_turn(prior=PRIORS, causal=(True, False))
def test_dropout_does_not_affect_the_prior(prior: str, causal: bool) -> None:
    """A dropped row of p would make the free energy -inf."""
    layer = make_layer(prior, "CLTG", causal=causal, dropout=0.5, dtype=torch.float32)
    x = make_input(dtype=torch.float32)
    layer.train()
    assert torch.equal(layer.weights(x), copy.deepcopy(layer).eval().weights(x))
    assert torch.equal(layer.read(x).f, copy.deepcopy(layer).eval().read(x).f)
    for step in range(10):
        torch.manual_seed(step)
        layer.zero_grad()
        layer(x).square().mean().backward()
        assert all(bool(torch.isfinite(gradient_of(p)).all()) for p in layer.parameters()), step
    torch.manual_seed(0)
    one = layer(x)
    assert not torch.equal(one, layer(x)), "dropout is on in training"
    assert torch.equal(layer.eval()(x), layer(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_aft_maximum_is_over_the_prefix(dtype: torch.dtype) -> None:
    """A larger last key leaves earlier reads bit-identical."""
    layer, x = make_layer("rnn_softmax", "L", dtype=dtype), make_input(length=80, dtype=dtype)
    params = {"k": layer._project(x, None)["k"]}
    v = values(layer, x)
    before = layer.prior.bind(params, None).mix(v)
    for rise in (10.0, 100.0):
        k = params["k"].clone()
        k[:, -1] += rise
        after = layer.prior.bind({"k": k}, None).mix(v)
        assert torch.equal(after[:, :-1], before[:, :-1])
        assert (after[:, -1] - before[:, -1]).abs().max() > 1e-3


def test_aft_weights_have_no_floor() -> None:
    """`+eps` on each weight would give mass to old keys."""
    layer = make_layer("rnn_softmax", "L")
    k = torch.linspace(0, 60, 30, dtype=torch.float64)[None, :, None].expand(1, 30, layer.widths.fem_dim)
    p = layer.prior.bind({"k": k}, None).weights()
    expected = torch.softmax(k[0, :, 0], 0)
    torch.testing.assert_close(p[0, -1, :, 0], expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("prior", ["gla", "rnn_decay"])
def test_cumulative_decay_is_not_clipped(prior: str) -> None:
    """The summed decay passes 60 many times at T = 1024."""
    layer = make_layer(prior, "", dtype=torch.float64)
    prior_module: Any = layer.prior
    length = 1024
    x = make_input(1, length)
    with torch.no_grad():
        prior_module.decay_bias.zero_()  # decays of about 0.7 a step, 700 in all
    bound: Any = layer.bind(x)
    pre = layer._project(x, None)["decay"]
    g = F.logsigmoid(pre)
    assert g.sum(1).max() < -300
    tail = 24
    p = dense(layer, x)[:, -tail:, -tail:].flatten(3)
    log_p = path_sums(g[:, -tail:], causal=True)
    if prior == "gla":
        log_p = log_p + torch.einsum("bthd,bihd->btih", bound.q[:, -tail:], bound.k[:, -tail:]).log()
    expected = log_p.softmax(2)  # what lies further back has decayed to nothing for the last row
    torch.testing.assert_close(p[:, -1], expected[:, -1], rtol=1e-3, atol=1e-4)


def test_conditioner_works_on_long_sequences() -> None:
    """1e-12 in a denominator would freeze the envelope."""
    layer, x = make_layer("softmax", "CL"), make_input(1, 400)
    conditioner: Any = layer.conditioner
    s = F.softplus(conditioner.in_proj(conditioner.norm_in(x)).chunk(3, dim=-1)[0])
    assert (s.sum(1) > 100).all(), "the envelope must have fallen far below 1e-12"
    recent = x[:, -60:]
    alone, together = conditioner(recent)[:, -1], conditioner(x)[:, -1]
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-3)
    other = torch.cat([x[:, :-1], x[:, -1:].flip(-1)], dim=1)
    assert (conditioner(other)[:, -1] - together).abs().max() > 1e-2, "it still sees the present"


@pytest.mark.parametrize("prior", ["linear", "gla"])
def test_first_tokens_keep_full_mass(prior: str) -> None:
    """`+1e-5` in the denominator would lose half of the mass of small scores."""
    layer, x = make_layer(prior, "", dtype=torch.float64), make_input(2, 30)
    params = {name: part * 1e-4 for name, part in layer._project(x, None).items() if name in layer.prior.param_widths}
    p = layer.prior.bind(params, None).weights()
    assert (p.sum(-1) - 1).abs().max() < 1e-12


@pytest.mark.parametrize("prior", SCAN_PRIORS)
def test_long_inputs_use_linear_memory(prior: str) -> None:
    """(B, T, H, d, d) tensors would take 0.5 GiB and (T, T) tensors 0.27 GiB."""
    layer = make_layer(prior, "LTG", n_embd=64, n_head=1, dtype=torch.float32)
    x = make_input(1, 8192, 64, dtype=torch.float32)
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(x).sum()
    widths = sum(layer.split_sizes.values()) + 6 * layer.widths.fem_dim * (
        2 * layer.config.ssm_rank if prior == "mamba" else 1
    )
    assert sum(kept.values()) < 4 * 8192 * (8 * widths + 10 * 64)
