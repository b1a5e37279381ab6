"""DLinear against a second way of writing the same sums."""

import numpy as np
import pytest
import torch

from femts.errors import UsageError
from femts.models.dlinear import DLinear, DLinearConfig, moving_average
from femts.models.registry import build_config, build_model


@pytest.mark.parametrize("kernel", [1, 2, 5, 25])
def test_moving_average_is_the_mean_over_the_padded_neighbourhood(kernel: int) -> None:
    series = np.random.default_rng(0).normal(size=40)
    before = (kernel - 1) // 2
    padded = np.concatenate([[series[0]] * before, series, [series[-1]] * (kernel - 1 - before)])
    expected = [padded[i : i + kernel].mean() for i in range(40)]
    found = moving_average(torch.from_numpy(series).view(1, 1, -1), kernel)
    np.testing.assert_allclose(found.flatten().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("individual", [False, True], ids=["shared", "individual"])
def test_forecast_is_two_linear_maps_of_trend_and_remainder(individual: bool) -> None:
    torch.manual_seed(0)
    model = DLinear(DLinearConfig(30, 4, 3, individual=individual)).double()
    x = torch.randn(2, 30, 3, dtype=torch.float64)
    forecast = model(x)
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


def test_shared_and_individual_differ_in_their_number_of_maps() -> None:
    def count(individual: bool) -> int:
        settings = {"individual": individual}
        config = build_config("dlinear", seq_len=20, pred_len=5, n_channels=4, settings=settings)
        return sum(p.numel() for p in build_model("dlinear", config).parameters())

    assert count(False) == 2 * (20 * 5 + 5)
    assert count(True) == 4 * count(False)


def test_initial_weights_have_the_bound_of_a_linear_layer_of_one_map() -> None:
    weight = DLinear(DLinearConfig(100, 50, 8, individual=True)).trend.weight
    assert 0.09 < weight.abs().max() <= 0.1


def test_a_kernel_of_no_width_is_refused() -> None:
    with pytest.raises(UsageError, match=r"model\.kernel_size.*not 0"):
        DLinearConfig(30, 4, 3, kernel_size=0)
