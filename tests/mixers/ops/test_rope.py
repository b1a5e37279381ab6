"""Rotary position embeddings."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mixer_cases import make_input, make_layer
from torch import Tensor

from femts.mixers.ops.dense import rotated
from femts.mixers.ops.rope import rotate


def heads(length: int = 12, width: int = 8, seed: int = 0) -> Tensor:
    return torch.randn(2, length, 3, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("width", [2, 4, 8, 64])
def test_rotation_keeps_norms_and_equals_complex_multiplication(width: int) -> None:
    x = heads(width=width)
    torch.testing.assert_close(rotate(x, 1e4).norm(dim=-1), x.norm(dim=-1), rtol=1e-12, atol=0)
    torch.testing.assert_close(rotate(x, 1e4), rotated(x, 1e4), rtol=1e-11, atol=1e-12)
    assert torch.equal(rotate(x, 1e4)[:, 0], x[:, 0]), "position 0 is not turned"


def test_each_channel_pair_has_its_own_angle() -> None:
    """One-hot vectors stay in the plane of their pair."""
    width = 8
    for channel in range(width):
        x = torch.zeros(1, 5, 1, width, dtype=torch.float64)
        x[..., channel] = 1
        plane = {channel % 4, channel % 4 + 4}
        turned = rotate(x, 1e4)
        outside = [c for c in range(width) if c not in plane]
        assert (turned[..., outside] == 0).all()
        angle = torch.arange(5, dtype=torch.float64) * 1e4 ** (-(channel % 4) / 4)
        torch.testing.assert_close(turned[0, :, 0, channel], angle.cos(), rtol=0, atol=1e-12)


@given(shift=st.integers(1, 500), q_at=st.integers(0, 50), k_at=st.integers(0, 50), seed=st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_scores_depend_on_relative_position(shift: int, q_at: int, k_at: int, seed: int) -> None:
    q, k = heads(1, seed=seed), heads(1, seed=seed + 1)

    def score(offset: int) -> Tensor:
        return (rotate(q, 1e4, start=q_at + offset) * rotate(k, 1e4, start=k_at + offset)).sum(-1)

    torch.testing.assert_close(score(shift), score(0), rtol=1e-9, atol=1e-10)


def test_start_continues_a_sequence() -> None:
    x = heads(20)
    torch.testing.assert_close(rotate(x[:, 7:], 1e4, start=7), rotate(x, 1e4)[:, 7:], rtol=1e-13, atol=1e-14)


def test_angles_are_computed_in_float32() -> None:
    x = heads(3000).bfloat16()
    exact = rotate(x.double(), 1e4)
    error = (rotate(x, 1e4).double() - exact).abs().amax(dim=(0, 2, 3))
    assert error[-100:].max() < 4 * error[:100].max() + 1e-3


def test_float32_angles_stay_accurate_at_4096() -> None:
    x = heads(4096, width=16).float()
    assert (rotate(x, 1e4).double() - rotate(x.double(), 1e4)).abs().max() < 1e-5 * x.abs().max()


@pytest.mark.parametrize("prior", ["rnn_softmax", "rnn_decay", "mamba"])
def test_priors_without_queries_ignore_rope(prior: str) -> None:
    x = make_input()
    assert torch.equal(make_layer(prior, "L", use_rope=True)(x), make_layer(prior, "L", use_rope=False)(x))
