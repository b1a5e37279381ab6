"""Attention masks and padding."""

from __future__ import annotations

import itertools

import pytest
import torch
from combinations import in_turn, pairwise
from hypothesis import given, settings
from hypothesis import strategies as st
from mixer_cases import PRIORS, dense, gradient_of, make_input, make_layer, over_directions, over_priors
from torch import Tensor

from femts.mixers.reference import reference

MASKS = {
    name: torch.tensor(mask).bool()
    for name, mask in {
        "right padding": [[1, 1, 1, 1, 1, 1, 0, 0, 0], [1] * 9],
        "left padding": [[0, 0, 0, 1, 1, 1, 1, 1, 1], [0] * 8 + [1]],
        "holes": [[1, 0, 1, 1, 0, 0, 1, 0, 1], [0, 1, 0, 1, 1, 1, 0, 0, 1]],
        "one sample without any token": [[0] * 9, [1, 1, 0, 1, 1, 1, 1, 1, 1]],
    }.items()
}


def rows_with_support(mask: Tensor, causal: bool) -> Tensor:
    """(B, T), True for each row that sees a token."""
    return mask.cumsum(1) > 0 if causal else mask.any(1, keepdim=True).expand_as(mask)


@over_priors
def test_masked_layer_equals_the_dense_reference(prior: str) -> None:
    for causal in (True, False):
        layer, x = make_layer(prior, "CLTG", causal=causal), make_input()
        for mask in MASKS.values():
            expected, read = reference(layer, x, mask), layer.read(x, mask)
            torch.testing.assert_close(layer(x, mask), expected.y, rtol=1e-11, atol=1e-12)
            torch.testing.assert_close(read.f, expected.f, rtol=1e-11, atol=1e-12)
            p = dense(layer, x, mask)
            torch.testing.assert_close(p.flatten(3), expected.p, rtol=1e-11, atol=1e-13)
            assert (p.masked_select(~mask[:, None, :, None, None]) == 0).all()
            support, total = rows_with_support(mask, causal), p.sum(2)
            assert (total[support] - 1).abs().max() < 1e-12 and (total[~support] == 0).all()


@over_priors
def test_fully_masked_rows_are_zero(prior: str) -> None:
    for causal in (True, False):
        for components, mask in itertools.product(("", "CLTG"), MASKS.values()):
            layer, x = make_layer(prior, components, causal=causal), make_input().requires_grad_()
            y = layer(x, mask)
            assert (y[~rows_with_support(mask, causal)] == 0).all() and torch.isfinite(y).all()
            y.square().sum().backward()
            tensors = [("x", x), *layer.named_parameters()]
            assert not [name for name, tensor in tensors if not bool(torch.isfinite(gradient_of(tensor)).all())]


@in_turn(prior=PRIORS, causal=(True, False))
def test_all_padding_is_zero_in_bfloat16(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "CLTG", causal=causal).bfloat16(), make_input(dtype=torch.bfloat16).requires_grad_()
    y = layer(x, torch.zeros(2, 9))
    assert (y == 0).all()
    y.sum().backward()
    assert torch.isfinite(gradient_of(x)).all()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters() if p.grad is not None)


@pairwise(prior=PRIORS, causal=(True, False), side=("left", "right"), padding=(3, 130))
def test_padding_does_not_change_the_output(prior: str, causal: bool, side: str, padding: int) -> None:
    """Padding may be on either side and beside masked tokens."""
    layer, x = make_layer(prior, "CLTG", causal=causal), make_input(length=7).requires_grad_()
    pad = 5 * make_input(length=padding, seed=9)
    keep, skip = torch.tensor([[1] * 7, [1, 1, 0, 1, 1, 1, 1]]).bool(), torch.zeros(2, padding, dtype=torch.bool)
    order = [0, 1] if side == "left" else [1, 0]
    padded = torch.cat([[pad, x][i] for i in order], dim=1)
    mask = torch.cat([[skip, keep][i] for i in order], dim=1)
    got, expected = layer(padded, mask)[mask], layer(x, keep)[keep]
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)
    gradients = (torch.autograd.grad(y.square().sum(), [x, *layer.parameters()]) for y in (got, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@over_directions
@given(prior=st.sampled_from(PRIORS), bits=st.integers(1, 2**10 - 1), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_masked_tokens_equal_removed_tokens(causal: bool, prior: str, bits: int, seed: int) -> None:
    """Without positions, masking tokens equals leaving them out."""
    layer, x = make_layer(prior, "CLTG", causal=causal, use_rope=False), make_input(1, 10, seed=seed)
    mask = torch.tensor([bits >> i & 1 for i in range(10)]).bool()[None]
    torch.testing.assert_close(layer(x, mask)[:, mask[0]], layer(x[:, mask[0]]), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("prior", ["softmax", "gla"])
def test_all_ones_mask_equals_no_mask(prior: str) -> None:
    layer, x = make_layer(prior, "CLTG"), make_input()
    holes = MASKS["holes"]
    torch.testing.assert_close(layer(x, torch.ones(2, 9)), layer(x), rtol=1e-11, atol=1e-13)
    for kind in (torch.int64, torch.float32, torch.uint8):
        assert torch.equal(layer(x, holes.to(kind)), layer(x, holes))


def test_wrong_mask_shape_is_refused() -> None:
    layer, x = make_layer("gla", "L"), make_input()
    for shape in ((9,), (2, 8), (2, 9, 9)):
        with pytest.raises(ValueError, match=r"attention_mask.*\(2, 9\)"):
            layer(x, torch.ones(shape))


def test_additive_mask_is_refused() -> None:
    """As a boolean it would mean the opposite."""
    layer, x = make_layer("gla", "L"), make_input()
    for outside in (-1e9, -torch.inf, torch.nan, 0.5):
        added = torch.zeros(2, 9).masked_fill(~MASKS["holes"], outside)
        with pytest.raises(ValueError, match=r"attention_mask has values other than 0 and 1; .*mask == 0"):
            layer(x, added)


@pytest.mark.parametrize("prior", ["softmax", "gla", "mamba"])
def test_float_mask_under_vmap(prior: str) -> None:
    layer, x, mask = make_layer(prior), make_input(), MASKS["holes"].double()
    each = torch.func.vmap(lambda sample, its: layer(sample[None], its[None])[0])(x, mask)
    torch.testing.assert_close(each, layer(x, mask), rtol=1e-11, atol=1e-12)


@in_turn(prior=PRIORS, causal=(True, False))
def test_mask_in_float16(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "CG", causal=causal, dtype=torch.float16), make_input(dtype=torch.float16)
    mask = MASKS["holes"]
    for filler in (0.0, torch.nan, torch.inf, -6e4):
        filled = x.masked_fill(~mask.unsqueeze(-1), filler).requires_grad_()
        y = layer(filled, mask)
        y[mask].float().sum().backward()
        assert torch.equal(y[mask], layer(x, mask)[mask]) and gradient_of(filled).isfinite().all()


@in_turn(prior=PRIORS, causal=(True, False))
def test_diagnostics_accept_a_mask(prior: str, causal: bool) -> None:
    layer, x = make_layer(prior, "LT", causal=causal), make_input()
    mask = MASKS["one sample without any token"]
    q, beta = layer.posterior(x, mask), layer.hidden_temperature(x, mask)
    assert torch.isfinite(q).all() and torch.isfinite(beta).all()
    assert (q[0] == 0).all() and (q[1, :, 2] == 0).all()
    assert (q[1].sum(1) - 1).abs().max() < 1e-12
