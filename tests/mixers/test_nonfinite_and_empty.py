"""Non-finite masked tokens and empty inputs."""

from __future__ import annotations

import copy

import pytest
import torch
from combinations import in_turn, pairwise
from mixer_cases import PRIORS, make_input, make_layer


@pairwise(prior=PRIORS, causal=(True, False), value=(torch.nan, torch.inf, 3e38), length=(9, 140))
def test_masked_tokens_affect_neither_reads_nor_gradients(prior: str, causal: bool, value: float, length: int) -> None:
    layer, mask = make_layer(prior, causal=causal, dtype=torch.float32), torch.ones(2, length, dtype=torch.bool)
    mask[0, :3], mask[0, 5], mask[1, -2:] = False, False, False
    results = []
    for filler in (0.0, value):
        x = make_input(length=length, dtype=torch.float32).masked_fill(~mask.unsqueeze(-1), filler).requires_grad_()
        y = layer(x, mask)[mask]
        results.append((y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])))
    assert torch.equal(results[0][0], results[1][0])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5 * one.abs().max().item())


@in_turn(prior=PRIORS, causal=(True, False))
def test_priors_ignore_masked_values(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, causal=causal), make_input()
    mask = torch.tensor([[0, 1, 1, 0, 1, 1, 1, 1, 0], [1] * 9]).bool()
    bound = layer.bind(x, mask)
    values = make_input(width=layer.widths.fem_dim).unflatten(-1, (layer.config.heads, -1))
    bad = values.masked_fill(~mask[:, :, None, None], torch.nan)
    assert torch.equal(bound.mix(bad), bound.mix(values))


@pytest.mark.parametrize("prior", ["rnn_softmax", "rnn_decay", "mamba"])
def test_nan_does_not_propagate_backwards(prior: str) -> None:
    layer = make_layer(prior, dtype=torch.float32)
    for length, cut in ((2, 1), (12, 5), (90, 64), (300, 270), (600, 257)):
        x = make_input(length=length, dtype=torch.float32)
        for value in (torch.nan, torch.inf, -torch.inf):
            later = x.clone()
            later[:, cut:] = value
            assert torch.equal(layer(later)[:, :cut], layer(x)[:, :cut])


@in_turn(prior=PRIORS, causal=(True, False))
def test_empty_inputs_give_empty_outputs(prior: str, causal: bool) -> None:
    layer = make_layer(prior, causal=causal)
    for shape in ((2, 0), (0, 5), (0, 150), (0, 1100), (0, 0)):
        for mask in (None, torch.ones(shape)):
            x = torch.zeros(*shape, 16, dtype=torch.float64).requires_grad_()
            layer.zero_grad()
            y = layer(x, mask)
            assert y.shape == x.shape
            y.sum().backward()
            assert all((p.grad == 0).all() for p in layer.parameters() if p.grad is not None)
            assert layer.weights(x, mask).numel() == layer.posterior(x, mask).numel() == 0


@in_turn(prior=PRIORS, causal=(True, False), length=(300,))
def test_meta_device_shapes(prior: str, causal: bool, length: int) -> None:
    layer = copy.deepcopy(make_layer(prior, causal=causal, dtype=torch.float32)).to("meta")
    x = torch.zeros(2, length, 16, device="meta").requires_grad_()
    for mask in (None, torch.ones(2, length, device="meta")):
        y = layer(x, mask)
        assert (y.shape, y.device.type) == (x.shape, "meta")
        y.sum().backward()
