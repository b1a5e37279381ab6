"""Ridge regression against scikit-learn's, and its mean with a mixer against the same written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as ReferenceRidge

from femts.errors import UsageError
from femts.models.registry import build_config, build_model
from femts.models.ridge import LinearForecast
from femts.models.ridge_fit import APART, SHARED, TrainingRows, choose, dense_map, departure, seasonal_map
from femts.models.segments import SegmentForecaster

SERIES = torch.randn(90, 2, generator=torch.Generator().manual_seed(0)).cumsum(0)


def make(name: str, seq_len: int = 20, pred_len: int = 6, **settings):
    torch.manual_seed(0)
    settings = {"season": 4, "longest": 15, **settings}
    return build_model(name, build_config(name, seq_len=seq_len, pred_len=pred_len, n_channels=2, settings=settings)).eval()


def regression(past: np.ndarray, future: np.ndarray, penalty: float) -> np.ndarray:
    """What scikit-learn fits to windows: (L, H)."""
    reference = ReferenceRidge(alpha=penalty * len(past), fit_intercept=False, solver="cholesky").fit(past, future)
    return np.atleast_2d(reference.coef_).T  # type: ignore[no-any-return]


def windows(season: int, channels: tuple[int, ...] = (0, 1)) -> tuple[np.ndarray, np.ndarray]:
    """Look-backs of 20 steps and forecasts of 15 of `SERIES`, less their level."""
    found = np.lib.stride_tricks.sliding_window_view(SERIES.double().numpy()[:, list(channels)], 35, axis=0).reshape(-1, 35)
    found = found - found[:, 20 - season : 20].mean(1, keepdims=True)
    return found[:, :20], found[:, 20:]


@pytest.mark.parametrize("season", [1, 3, 5])
def test_maps_are_the_ridge_regressions_over_every_window(season: int) -> None:
    pooled = TrainingRows(SERIES.double(), None, 20, 15, season).pooled()
    past, future = windows(season)
    np.testing.assert_allclose(dense_map(pooled, 0.3).numpy(), regression(past, future, 0.3), rtol=1e-9, atol=1e-9)
    whole = past[:, 20 % season :]  # of steps that are a season apart, one for each phase of a window
    past, future = (x.reshape(len(x), -1, season).swapaxes(1, 2).reshape(-1, x.shape[1] // season) for x in (whole, future))
    np.testing.assert_allclose(seasonal_map(pooled, season, 0.3).numpy(), regression(past, future, 0.3), rtol=1e-9, atol=1e-9)


def test_a_departure_is_the_ridge_regression_of_what_the_shared_map_leaves_over() -> None:
    all_windows = TrainingRows(SERIES.double(), None, 20, 15, 4)
    shared, own = dense_map(all_windows.pooled(), 0.3), all_windows.moments(1)
    past, future = windows(4, (1,))
    wanted = regression(past, future - past @ shared.numpy(), 2.0)
    np.testing.assert_allclose(departure(own, shared, 2.0).numpy(), wanted, rtol=1e-9, atol=1e-9)
    assert departure(own, shared, float("inf")).abs().max() == 0


def law(coefficients: tuple[float, ...], rows: int) -> torch.Tensor:
    """Channels that each go on as a share of their last change, and noise."""
    steps = torch.randn(rows, len(coefficients), generator=torch.Generator().manual_seed(0))
    for row in range(1, rows):
        steps[row] += torch.tensor(coefficients) * steps[row - 1]
    return steps.cumsum(0).double()


def test_channels_are_drawn_together_where_they_follow_one_law_and_not_where_each_has_its_own() -> None:
    alike, unlike = (TrainingRows(law(laws, 400), None, 20, 4, 1) for laws in ((0.8, 0.8, 0.8), (0.8, -0.8, 0.0)))
    assert choose(alike, 1e-3, APART).penalty >= 10
    assert choose(unlike, 1e-3, APART).penalty <= 0.1
    assert choose(alike.part(0, 40), 1e-3, APART) == SHARED  # no room to hold rows out


@pytest.mark.parametrize(("channels", "maps"), [(1, 1), (32, 32), (33, 1)])
def test_very_many_channels_share_a_map(channels: int, maps: int) -> None:
    model = LinearForecast(12, 8, 4, channels)
    series = law((0.5,) * channels, 200).float()
    model.fit(series, 0.3)
    assert len(model.dense) == maps and model.dense.abs().amax((1, 2)).min() > 0.01
    x = series[None, :12]
    level = x[:, -4:].mean(1, keepdim=True)
    past = (x - level)[0].T
    dense = torch.stack([past[c] @ model.dense[c % maps] for c in range(channels)])
    seasonal = (past.reshape(channels, 3, 4).mT @ model.seasonal).mT.reshape(channels, -1)
    wanted = ((1 - model.share) * dense + model.share * seasonal).T + level[0]
    torch.testing.assert_close(model(x, 8)[0], wanted)
    torch.testing.assert_close(model(x, 5)[0], wanted[:5])


def test_what_repeats_is_forecast_at_any_horizon() -> None:
    season = torch.tensor([0.0, 1.0, 3.0, -2.0])
    series = season.repeat(30)[:, None] * torch.tensor([1.0, 2.0]) + torch.tensor([0.0, 5.0])
    model = make("ridge", ridge=1e-6)
    model.prepare(series)
    for steps in (1, 6, 15, 16, 40):
        torch.testing.assert_close(model.forecast(series[None, :20], steps)[0], series[20 : 20 + steps], rtol=0, atol=1e-3)


def test_a_shift_passes_through() -> None:
    model = make("ridge")
    model.prepare(SERIES)
    x = SERIES[None, -20:]
    torch.testing.assert_close(model(x + 100), model(x) + 100, rtol=0, atol=1e-4)


@pytest.mark.parametrize("steps", [3, 6, 7, 15, 16, 33])
def test_partners_are_averaged_step_by_step_and_the_mean_is_fed_back(steps: int) -> None:
    model = make("fem_sm_ridge", d_model=8, n_heads=2)
    model.prepare(SERIES)
    start, wanted = SERIES[None, -20:], []
    x = start
    while sum(piece.shape[1] for piece in wanted) < steps:  # a look-back of its own for each 15 steps of the ridge regression
        line = model.linear(x, min(15, steps - sum(piece.shape[1] for piece in wanted)))
        for first in range(0, line.shape[1], 6):
            own = SegmentForecaster.forward(model, x)[:, : line.shape[1] - first]
            piece = (own + line[:, first : first + 6]) / 2
            wanted.append(piece)
            x = torch.cat([x, piece], dim=1)[:, -20:]
    with torch.no_grad():
        torch.testing.assert_close(model.forecast(start, steps), torch.cat(wanted, dim=1))


def test_the_mixer_learns_as_it_would_alone() -> None:
    alone = build_model(
        "fem_sm", build_config("fem_sm", seq_len=20, pred_len=6, n_channels=2, settings={"d_model": 8, "n_heads": 2})
    )
    both = make("fem_sm_ridge", d_model=8, n_heads=2)
    both.prepare(SERIES)
    both.load_state_dict(alone.state_dict(), strict=False)
    x, y = torch.randn(3, 20, 2), torch.randn(3, 6, 2)
    assert torch.equal(both.loss(x, y), alone.eval().loss(x, y))
    assert {name for name, _ in both.named_parameters()} == {name for name, _ in alone.named_parameters()}


@pytest.mark.parametrize("name", ["ridge", "fem_sm_ridge"])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ridge": "0"}, r"'model\.ridge' takes a number above 0, not 0"),
        ({"season": "21"}, r"season of 21 steps .* look-back of 20.*model\.season"),
        ({"longest": "5"}, r"'model\.longest' takes at least the 6 steps of a forecast, not 5"),
    ],
)
def test_settings_that_cannot_be_built_are_refused(name: str, settings: dict, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make(name, **settings)
