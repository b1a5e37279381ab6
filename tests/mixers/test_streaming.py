"""Streaming equals the parallel form (section 2.3.4)."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch
from mixer_cases import SCAN_PRIORS, make_input, make_layer, over_layers, over_priors
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from femts.mixers import FreeEnergyMixer, MixerState


def stream(layer: FreeEnergyMixer, x: Tensor) -> tuple[Tensor, list[int], MixerState]:
    """Outputs of all steps, the state size after each, and the last state."""
    state, outputs, sizes = layer.init_state(x.shape[0]), [], []
    for t in range(x.shape[1]):
        y, state = layer.step(x[:, t], state)
        outputs.append(y)
        sizes.append(sum(leaf.numel() for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor)))
    return torch.stack(outputs, dim=1), sizes, state


@over_layers
def test_streaming_matches_parallel(prior: str, components: str) -> None:
    layer, x = make_layer(prior, components), make_input(length=14)
    torch.testing.assert_close(stream(layer, x)[0], layer(x), rtol=1e-10, atol=1e-12)


@over_priors
def test_streaming_matches_parallel_in_float32(prior: str) -> None:
    layer, x = make_layer(prior, "CLTG", dtype=torch.float32), make_input(1, 200, dtype=torch.float32)
    with torch.no_grad():
        steps, parallel = stream(layer, x)[0], layer(x)
    torch.testing.assert_close(steps, parallel, rtol=0, atol=1e-5 * parallel.abs().max().item())


@pytest.mark.parametrize("prior", SCAN_PRIORS)
def test_scan_state_has_constant_size(prior: str) -> None:
    layer, x = make_layer(prior, "CLTG"), make_input(length=20)
    empty = sum(leaf.numel() for leaf in tree_leaves(layer.init_state(2)) if isinstance(leaf, torch.Tensor))
    assert set(stream(layer, x)[1]) == {empty}


def test_softmax_cache_grows_by_one_token() -> None:
    layer, x = make_layer("softmax", "LT"), make_input(length=6)
    _, sizes, _ = stream(layer, x)
    growth = {later - earlier for earlier, later in itertools.pairwise(sizes)}
    assert growth == {2 * (layer.widths.qk_dim + 2 * layer.widths.fem_dim)}


@over_priors
def test_streams_are_independent_and_state_is_reusable(prior: str) -> None:
    layer, x = make_layer(prior, "CLTG"), make_input(batch=3, length=8)
    _, _, state = stream(layer, x[:, :7])
    one, _ = layer.step(x[:, 7], state)
    again, _ = layer.step(x[:, 7], state)
    assert torch.equal(one, again), "a step must leave the state that it was given as it was"
    alone, _, _ = stream(layer, x[1:2])
    torch.testing.assert_close(alone[0, 7], one[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("prior", ["linear", "rnn_softmax"])
def test_long_constant_stream_is_finite(prior: str) -> None:
    layer = make_layer(prior, "CLTG", dtype=torch.float32)
    x = torch.full((1, 300, 16), 2.0)
    with torch.no_grad():
        y, _, _ = stream(layer, x)
        assert torch.isfinite(y).all()
        torch.testing.assert_close(y, layer(x), rtol=1e-4, atol=1e-4)


def test_conditioner_streaming_in_bfloat16() -> None:
    """A decay of .9975 rounds to 1 in bfloat16."""
    layer, x = make_layer("rnn_decay", "C", dtype=torch.float32), make_input(1, 1000, dtype=torch.float32)
    conditioner: Any = layer.conditioner
    with torch.no_grad():
        conditioner.norm_in.weight.fill_(0.1)
        conditioner.norm_in.bias.fill_(1.0)
        conditioner.in_proj.weight[: conditioner.hidden] = -6 / 16
        low = layer.bfloat16()
        steps, parallel = stream(low, x.bfloat16())[0], low(x.bfloat16())
    torch.testing.assert_close(steps[:, -100:], parallel[:, -100:], rtol=0, atol=0.02 * parallel.abs().max().item())


@pytest.mark.parametrize("prior", ["linear", "gla", "mamba"])
def test_streaming_under_autocast_is_finite(prior: str) -> None:
    """Sums exceed the range of float16."""
    layer, x = make_layer(prior, "", dtype=torch.float32, ssm_rank=8), make_input(1, 200, dtype=torch.float32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        state: Any = layer.init_state(1)
        state = state._replace(prior=tree_map_only(torch.Tensor, lambda s: s + 1e5, state.prior))
        y, _ = layer.step(x[:, 0], state)
    assert torch.isfinite(y).all()


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_wrong_shape_or_dtype_is_refused(prior: str) -> None:
    layer = make_layer(prior, "", dtype=torch.float32)
    shapes: list[tuple[int, ...]] = [(2, 16), (1, 1, 1, 16), (9, 2, 1, 16), (2, 9, 15), ()]
    for shape in shapes:
        says = re.escape(f"x has shape {shape}; it must be (B, T, D) with D = 16.")
        with pytest.raises(ValueError, match=says):
            layer(torch.zeros(shape))
    shapes = [(16,), (2, 1, 16), (2, 15)]
    for shape in shapes:
        says = re.escape(f"x has shape {shape}; it must be (B, D) with D = 16.")
        with pytest.raises(ValueError, match=says):
            layer.step(torch.zeros(shape), layer.init_state(2))
    for kind in (torch.float64, torch.int64):
        with pytest.raises(ValueError, match=rf"x has dtype {kind}, but the layer has torch.float32; pass x.to\("):
            layer(torch.zeros(2, 9, 16, dtype=kind))


@pytest.mark.parametrize("prior", ["softmax", "mamba"])
def test_streaming_needs_a_causal_layer(prior: str) -> None:
    layer = make_layer(prior, "LTG", causal=False)
    with pytest.raises(ValueError, match="causal"):
        layer.step(make_input()[:, 0], layer.init_state(2))
