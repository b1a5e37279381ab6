"""iTransformer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.itransformer import ITransformer, ITransformerConfig

CONFIG = ITransformerConfig(24, 6, 4, d_model=16, d_ff=8, n_heads=2)


@pytest.fixture
def model() -> ITransformer:
    torch.manual_seed(0)
    return ITransformer(CONFIG).double().eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, 24, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_shape_and_scale_equivariance(model: ITransformer, x: torch.Tensor) -> None:
    forecast = model(Batch(x))
    assert forecast.shape == (3, 6, 4)
    torch.testing.assert_close(
        model(Batch(5 + 100 * x)), 5 + 100 * forecast, rtol=1e-3, atol=1e-3
    )  # 1e-5 is added to variances


def test_channel_permutation_equivariance(model: ITransformer, x: torch.Tensor) -> None:
    order = [2, 0, 3, 1]
    torch.testing.assert_close(model(Batch(x[..., order])), model(Batch(x))[..., order])


def test_channels_interact(model: ITransformer, x: torch.Tensor) -> None:
    other = x.clone()
    other[..., 3] = torch.randn(3, 24, dtype=torch.float64)
    assert (model(Batch(other)) - model(Batch(x)))[..., 0].abs().max() > 1e-6


def test_blocks_match_the_paper(model: ITransformer, x: torch.Tensor) -> None:
    mean, deviation = x.mean(1, keepdim=True), (x.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    tokens = model.embed(((x - mean) / deviation).transpose(1, 2))
    block: Any
    for block in model.blocks:
        attention: Any = block.self_attn
        q, k, v = (tokens @ attention.in_proj_weight.T + attention.in_proj_bias).unflatten(-1, (3, 2, 8)).unbind(2)
        p = torch.einsum("bihd,bjhd->bhij", q, k).div(8**0.5).softmax(-1)
        mixed = torch.einsum("bhij,bjhd->bihd", p, v).flatten(2) @ attention.out_proj.weight.T + attention.out_proj.bias
        tokens = block.norm1(tokens + mixed)
        tokens = block.norm2(tokens + block.linear2(torch.nn.functional.gelu(block.linear1(tokens))))
    expected = model.head(model.norm(tokens)).transpose(1, 2) * deviation + mean
    torch.testing.assert_close(model(Batch(x)), expected)


def test_indivisible_heads_are_refused() -> None:
    with pytest.raises(UsageError, match=r"model\.d_model' \(16\) takes a multiple of 'model\.n_heads' \(3\)"):
        ITransformerConfig(24, 6, 4, d_model=16, n_heads=3)


@pytest.fixture
def model_with_calendar() -> ITransformer:
    torch.manual_seed(0)
    return ITransformer(replace(CONFIG, n_known=3)).double().eval()


def test_calendar_features_are_extra_tokens(model_with_calendar: ITransformer, x: torch.Tensor) -> None:
    marks = torch.randn(3, 24 + 6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    past = marks[:, :24]
    marks[:, :24] = (past - past.mean(1, keepdim=True)) / past.std(1, keepdim=True, correction=0)
    wide = ITransformer(replace(CONFIG, n_channels=4 + 3)).double().eval()
    wide.load_state_dict(model_with_calendar.state_dict())
    forecast = model_with_calendar(Batch(x, known=marks))
    assert forecast.shape == (3, 6, 4)
    beside = wide(Batch(torch.cat([x, marks[:, :24]], dim=-1)))[..., :4]
    torch.testing.assert_close(forecast, beside, rtol=1e-4, atol=1e-4)  # 1e-5 is added to variances
    torch.testing.assert_close(model_with_calendar(Batch(x, known=marks[..., [2, 0, 1]])), forecast)


def test_only_look_back_calendar_features_matter(model_with_calendar: ITransformer, x: torch.Tensor) -> None:
    marks = torch.randn(3, 24 + 6, 3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(model_with_calendar(Batch(x, known=marks)).square().sum(), marks)
    assert slope[:, :24].abs().min() > 0 and not slope[:, 24:].any()
