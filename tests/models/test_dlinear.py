"""DLinear, compared with explicit sums."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.dlinear import DLinear, DLinearConfig, moving_average
from femts.models.registry import build_config, build_model


def test_moving_average_matches_numpy() -> None:
    for kernel in [1, 2, 5, 25]:
        series = np.random.default_rng(0).normal(size=40)
        before = (kernel - 1) // 2
        padded = np.concatenate([[series[0]] * before, series, [series[-1]] * (kernel - 1 - before)])
        expected = [padded[i : i + kernel].mean() for i in range(40)]
        found = moving_average(torch.from_numpy(series).view(1, 1, -1), kernel)
        np.testing.assert_allclose(found.flatten().numpy(), expected, atol=1e-12)


def plain_average(series: Tensor, kernel: int) -> Tensor:
    """Moving average by pooling."""
    before = (kernel - 1) // 2
    return F.avg_pool1d(F.pad(series, (before, kernel - 1 - before), mode="replicate"), kernel, stride=1)


def test_moving_average_and_gradient_match_pooling() -> None:
    for kernel in [1, 2, 25, 64]:
        series, found = torch.randn(2, 3, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), []
        for average in (moving_average, plain_average):
            leaf = series.clone().requires_grad_()
            y = average(leaf, kernel)
            (y * torch.linspace(-1, 2, 64, dtype=torch.float64)).sum().backward()
            found.append((y.detach(), leaf.grad))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_moving_average_is_accurate_in_float32() -> None:
    for shape in ["noise", "trend", "walk", "far from 0"]:
        noise = torch.randn(4, 2, 8192, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        trend = torch.linspace(-3, 3, 8192, dtype=torch.float64).expand_as(noise)
        series = {"noise": noise, "trend": trend, "walk": noise.cumsum(-1) / 50, "far from 0": noise + 100}[shape]
        error = moving_average(series.float(), 25).double() - plain_average(series, 25)
        assert error.abs().max() < 2e-5 * max(1.0, float(series.abs().max()))


@pytest.mark.parametrize("individual", [False, True], ids=["shared", "individual"])
def test_forecast_is_linear_in_trend_and_remainder(individual: bool) -> None:
    torch.manual_seed(0)
    model = DLinear(DLinearConfig(30, 4, 3, individual=individual)).double()
    x = torch.randn(2, 30, 3, dtype=torch.float64)
    forecast = model(Batch(x))
    assert forecast.shape == (2, 4, 3)
    for channel in range(3):
        which = channel if individual else 0
        series = x[:, :, channel]
        trend = moving_average(series[:, None], 25)[:, 0]
        expected = (
            trend @ model.trend.weight[which].T
            + model.trend.bias[which]
            + (series - trend) @ model.remainder.weight[which].T
            + model.remainder.bias[which]
        )
        torch.testing.assert_close(forecast[:, :, channel], expected)


def test_individual_maps_per_channel() -> None:
    def count(individual: bool) -> int:
        settings = {"individual": individual}
        config = build_config("dlinear", seq_len=20, pred_len=5, n_channels=4, settings=settings)
        return sum(p.numel() for p in build_model("dlinear", config).parameters())

    assert count(False) == 2 * (20 * 5 + 5)
    assert count(True) == 4 * count(False)


def test_initial_weight_bound() -> None:
    weight = DLinear(DLinearConfig(100, 50, 8, individual=True)).trend.weight
    assert 0.09 < weight.abs().max() <= 0.1


def test_zero_kernel_size_is_refused() -> None:
    with pytest.raises(UsageError, match=r"model\.kernel_size.*not 0"):
        DLinearConfig(30, 4, 3, kernel_size=0)
