"""Ridge regression against scikit-learn's, and its mean with a mixer against the same written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as ReferenceRidge

from femts.errors import UsageError
from femts.models.registry import build_config, build_model
from femts.models.ridge import PhaseMap
from femts.models.segments import SegmentForecaster

SERIES = torch.randn(90, 2, generator=torch.Generator().manual_seed(0)).cumsum(0)


def make(name: str, seq_len: int = 20, pred_len: int = 6, **settings):
    torch.manual_seed(0)
    settings = {"season": 4, "longest": 15, **settings}
    return build_model(name, build_config(name, seq_len=seq_len, pred_len=pred_len, n_channels=2, settings=settings)).eval()


@pytest.mark.parametrize(("period", "season"), [(1, 4), (4, 4), (3, 5)])
def test_a_map_is_the_ridge_regression_over_every_window(period: int, season: int) -> None:
    before, after, penalty = 20 // period, -(-15 // period), 0.3
    past, future = [], []
    for channel in SERIES.double().numpy().T:
        for first in range(len(channel) - (before + after) * period + 1):
            window = channel[first : first + (before + after) * period]
            phases = (window - window[: before * period][-season:].mean()).reshape(before + after, period).T
            past.append(phases[:, :before])
            future.append(phases[:, before:])
    x, y = np.concatenate(past), np.concatenate(future)
    reference = ReferenceRidge(alpha=penalty * len(x), fit_intercept=False, solver="cholesky").fit(x, y)
    fitted = PhaseMap(20, 15, period)
    fitted.fit(SERIES, season, penalty)
    np.testing.assert_allclose(fitted.weight.numpy(), reference.coef_.T, rtol=1e-5, atol=1e-6)


def test_of_very_many_windows_those_drawn_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each channel has its own law.
    values = torch.randn(6000, 2, generator=torch.Generator().manual_seed(1))
    series = torch.stack([values[2:, 0] + values[:-2, 0], values[2:, 1] - values[:-2, 1]], dim=1)
    some, all_of_them = PhaseMap(3, 2, 1), PhaseMap(3, 2, 1)
    all_of_them.fit(series, 3, 0.1)
    monkeypatch.setattr("femts.models.ridge.MOST_WINDOWS", 4000)
    some.fit(series, 3, 0.1)
    assert not torch.equal(some.weight, all_of_them.weight)
    torch.testing.assert_close(some.weight, all_of_them.weight, rtol=0, atol=0.05)


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
