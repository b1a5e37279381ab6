"""PatchTST."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.patchtst import PatchTST, PatchTSTConfig

CONFIG = PatchTSTConfig(40, 6, 3, patch_len=8, stride=4, d_model=8, d_ff=16, n_heads=2, n_layers=2)


@pytest.fixture
def model() -> PatchTST:
    torch.manual_seed(0)
    model = PatchTST(CONFIG).double()
    with torch.no_grad():
        for _ in range(3):  # batch norm has seen something
            model(Batch(torch.randn(16, 40, 3, dtype=torch.float64)))
    return model.eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_number_of_patches() -> None:
    assert PatchTSTConfig(336, 96, 7).n_patches == 42
    assert PatchTSTConfig(512, 96, 7).n_patches == 64


def test_shape_and_scale_equivariance(model: PatchTST, x: torch.Tensor) -> None:
    assert model(Batch(x)).shape == (2, 6, 3)
    torch.testing.assert_close(model(Batch(5 + 100 * x)), 5 + 100 * model(Batch(x)), rtol=1e-3, atol=1e-3)


def test_channels_are_independent(model: PatchTST, x: torch.Tensor) -> None:
    other = x.clone()
    other[..., 1:] = 9 * torch.randn(2, 40, 2, dtype=torch.float64)
    torch.testing.assert_close(model(Batch(other))[..., 0], model(Batch(x))[..., 0])


def test_forecast_matches_the_paper(model: PatchTST, x: torch.Tensor) -> None:
    series = x[0, :, 0]
    mean, deviation = series.mean(), (series.var(correction=0) + 1e-5).sqrt()
    normal = torch.cat([(series - mean) / deviation, ((series[-1] - mean) / deviation).repeat(4)])
    tokens = torch.stack([model.embed(normal[4 * i : 4 * i + 8]) for i in range(10)]) + model.position
    before = torch.zeros(2, 10, 10, dtype=torch.float64)
    block: Any
    for block in model.blocks:
        q, k, v = (tokens @ block.qkv.weight.T + block.qkv.bias).chunk(3, -1)
        scores = torch.stack([q[:, 4 * h : 4 * h + 4] @ k[:, 4 * h : 4 * h + 4].T / 2 + before[h] for h in range(2)])
        mixed = torch.cat([scores[h].softmax(-1) @ v[:, 4 * h : 4 * h + 4] for h in range(2)], -1)
        tokens = block.norms[0](tokens + block.out(mixed))
        tokens = block.norms[1](tokens + block.feed_forward(tokens))
        before = scores
    expected = model.head(tokens.flatten()) * deviation + mean
    torch.testing.assert_close(model(Batch(x))[0, :, 0], expected)


def test_invalid_settings_are_refused() -> None:
    for settings, message in [
        ({"d_model": 6, "n_heads": 4}, r"model\.d_model' \(6\) takes a multiple"),
        ({"patch_len": 41}, r"model\.patch_len' \(41\).*look-back of 40 steps"),
        ({"stride": 0}, r"model\.stride' \(0\)"),
    ]:
        with pytest.raises(UsageError, match=message):
            PatchTSTConfig(40, 6, 3, **settings)
