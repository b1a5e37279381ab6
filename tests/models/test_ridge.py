"""Ridge regression, compared with scikit-learn, and its hybrids with a mixer."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as ReferenceRidge

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models import ridge_fit
from femts.models.fem import SegmentForecaster
from femts.models.parts.moments import Moments, window_moments
from femts.models.registry import build_config, build_model
from femts.models.ridge import LinearForecast
from femts.models.ridge_fit import KINDS, TrainingRows, choose, maps, stacked

SERIES = torch.randn(90, 2, generator=torch.Generator().manual_seed(0)).cumsum(0)


def make(name: str, seq_len: int = 20, pred_len: int = 6, quantiles: tuple[float, ...] = (), **settings: Any) -> Any:
    torch.manual_seed(0)
    settings = {"season": 4, "longest": 15, **settings}
    config = build_config(name, seq_len=seq_len, pred_len=pred_len, n_channels=2, settings=settings)
    return build_model(name, config, quantiles).eval()


def regression(past: np.ndarray, future: np.ndarray, penalty: float) -> np.ndarray:
    """Coefficients (L, H) of scikit-learn."""
    reference = ReferenceRidge(alpha=penalty * len(past), fit_intercept=False, solver="cholesky").fit(past, future)
    return np.atleast_2d(reference.coef_).T


def windows(level: int, rows: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """Look-backs of 20 and forecasts of 15 steps, minus the mean of the last `level` look-back steps."""
    found = np.lib.stride_tricks.sliding_window_view(SERIES.double().numpy()[rows], 35, axis=0).reshape(-1, 35)
    found = found - found[:, 20 - level : 20].mean(1, keepdims=True)
    return found[:, :20], found[:, 20:]


@pytest.mark.parametrize("season", [1, 3, 5])
def test_maps_match_sklearn(season: int) -> None:
    whole, short, seasonal = maps(TrainingRows(SERIES.double(), None, 20, 15).pooled(), season, 0.3).numpy()
    past, future = windows(1)
    np.testing.assert_allclose(whole, regression(past, future, 0.3), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(short[-7:], regression(past[:, -7:], future, 0.3), rtol=1e-9, atol=1e-9)
    assert not short[:-7].any()
    forecast = past @ seasonal  # less the last value; by hand less the mean of the last season
    mean = past[:, -season:].mean(1, keepdims=True)
    past, future = windows(season)
    phases = past[:, 20 % season :].reshape(len(past), -1, season).swapaxes(1, 2)  # of steps that are a season apart
    ahead = future.reshape(len(future), -1, season).swapaxes(1, 2)
    small = regression(phases.reshape(-1, 20 // season), ahead.reshape(-1, 15 // season), 0.3)
    wanted = (phases @ small).swapaxes(1, 2).reshape(len(past), 15) + mean
    np.testing.assert_allclose(forecast, wanted, rtol=1e-9, atol=1e-9)


def test_strided_maps_are_a_subset() -> None:
    moments = TrainingRows(SERIES.double(), None, 20, 15).moments(1)
    torch.testing.assert_close(maps(moments, 5, 0.3, 4), maps(moments, 5, 0.3)[..., ::4])


@pytest.mark.parametrize("gaps", [False, True])
def test_chunked_rows_give_the_same_moments(gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = torch.ones_like(SERIES, dtype=torch.bool)
    observed[30:33, 0] = not gaps
    rows = TrainingRows(SERIES.double(), observed, 8, 5, left_out=(40, 50))
    whole, count = rows.pooled(), rows.windows
    monkeypatch.setattr("femts.models.ridge_fit.ROWS_AT_ONCE", 7)
    assert rows.windows == count and len(rows.pieces) > 5
    for one, other in zip(astuple(rows.pooled()), astuple(whole), strict=True):
        torch.testing.assert_close(one, other)


def test_windows_exclude_held_out_rows() -> None:
    rows = TrainingRows(SERIES.double(), None, 20, 15, left_out=(40, 50))
    past, future = (
        np.concatenate(both) for both in zip(windows(1, slice(0, 40)), windows(1, slice(50, 90)), strict=True)
    )
    assert len(past) == 2 * rows.windows == 24
    np.testing.assert_allclose(
        maps(rows.pooled(), 1, 0.3)[0].numpy(), regression(past, future, 0.3), rtol=1e-9, atol=1e-9
    )
    assert TrainingRows(SERIES.double(), None, 20, 15, left_out=(34, 56)).windows == 0


def test_stacking_weights_minimize_mse() -> None:
    errors = torch.randn(3, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    grid = torch.tensor([(a, b, 100 - a - b) for a in range(101) for b in range(101 - a)]).double() / 100
    for mixed in (
        errors,
        errors + 2 * errors[:1],
        errors * torch.tensor([[1.0], [5.0], [2.0]]),
        errors + errors.mean(0),
    ):
        weights = stacked(mixed @ mixed.T / 50)
        assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
        lowest = grid[(grid @ mixed).square().mean(1).argmin()]
        assert (weights @ mixed).square().mean() <= (lowest @ mixed).square().mean() + 1e-9
        torch.testing.assert_close(weights, lowest, rtol=0, atol=0.011)


def test_identical_maps_share_their_weight() -> None:
    errors = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]).double()
    torch.testing.assert_close(stacked(errors @ errors.T), torch.tensor([0.5, 0.25, 0.25]).double(), rtol=0, atol=1e-6)
    third = torch.full((3,), 1 / 3).double()
    torch.testing.assert_close(stacked(torch.ones(3, 3).double()), third, rtol=0, atol=1e-6)
    torch.testing.assert_close(stacked(errors @ errors.T, even=1e6), third, rtol=0, atol=1e-5)


def random_channels(coefficients: tuple[float, ...], rows: int) -> torch.Tensor:
    """Integrated AR(1) channels."""
    steps = torch.randn(rows, len(coefficients), generator=torch.Generator().manual_seed(0))
    for row in range(1, rows):
        steps[row] += torch.tensor(coefficients) * steps[row - 1]
    return steps.cumsum(0).double()


def test_shared_maps_win_for_similar_channels() -> None:
    alike, unlike = (
        TrainingRows(random_channels(laws, 400), None, 20, 4) for laws in ((0.8, 0.8, 0.8), (0.8, -0.8, 0.0))
    )
    assert choose(alike, 1, 1e-3, by_channel=True)[:, KINDS:].sum(1).min() > 0.6
    assert choose(unlike, 1, 1e-3, by_channel=True)[:, :KINDS].sum(1).min() > 0.9
    assert choose(unlike, 1, 1e-3, by_channel=False).shape == (1, KINDS)


def test_shared_maps_are_even_without_holdout() -> None:
    rows = TrainingRows(random_channels((0.8, 0.8), 40), None, 20, 4)
    even = torch.full((KINDS,), 1 / KINDS, dtype=torch.float64)
    torch.testing.assert_close(choose(rows, 1, 1e-3, by_channel=True), torch.cat([0 * even, even]).expand(2, -1))
    torch.testing.assert_close(choose(rows, 1, 1e-3, by_channel=False), even[None])


@pytest.mark.parametrize(("channels", "count"), [(1, 1), (32, 32), (33, 1)])
def test_map_is_the_weighted_mean_of_maps(channels: int, count: int) -> None:
    model = LinearForecast(12, 8, 4, channels)
    series = random_channels((0.5,) * channels, 200).float()
    model.fit(series, 0.3)
    rows = TrainingRows(series.double(), None, 12, 8)
    weights, common = choose(rows, 4, 0.3, by_channel=count > 1), maps(rows.pooled(), 4, 0.3)
    assert len(model.dense) == len(weights) == count
    x = series[None, :12]
    last = x[0, -1:]
    for channel in {0, channels - 1}:
        both = torch.cat([maps(rows.moments(channel), 4, 0.3), common]) if count > 1 else common
        dense = sum(weight * one for weight, one in zip(weights[channel % count], both, strict=True))
        wanted = (x[0, :, channel] - last[:, channel]).double() @ dense + last[:, channel]
        torch.testing.assert_close(model(x, 8)[0, :, channel].double(), wanted, rtol=0, atol=1e-5)
        torch.testing.assert_close(model(x, 5)[0, :, channel].double(), wanted[:5], rtol=0, atol=1e-5)


def test_periodic_series_are_continued() -> None:
    season = torch.tensor([0.0, 1.0, 3.0, -2.0])
    series = season.repeat(30)[:, None] * torch.tensor([1.0, 2.0]) + torch.tensor([0.0, 5.0])
    model = make("ridge", ridge=1e-6)
    model.prepare(series)
    for steps in (1, 6, 15, 16, 40):
        torch.testing.assert_close(
            model.forecast(Batch(series[None, :20]), steps)[0], series[20 : 20 + steps], rtol=0, atol=1e-3
        )


def test_shift_equivariance() -> None:
    model = make("ridge")
    model.prepare(SERIES)
    x = SERIES[None, -20:]
    torch.testing.assert_close(model(Batch(x + 100)), model(Batch(x)) + 100, rtol=0, atol=1e-4)


def test_hybrid_averages_and_feeds_back() -> None:
    for steps in [3, 6, 7, 15, 16, 33]:
        model = make("fem_sm_ridge", d_model=8, n_heads=2)
        model.prepare(SERIES)
        start = SERIES[None, -20:]
        wanted: list[torch.Tensor] = []
        x = start
        while (
            sum(piece.shape[1] for piece in wanted) < steps
        ):  # a look-back of its own for each 15 steps of the ridge regression
            line = model.linear(x, min(15, steps - sum(piece.shape[1] for piece in wanted)))
            for first in range(0, line.shape[1], 6):
                own = SegmentForecaster.forward(model, Batch(x))[:, : line.shape[1] - first]
                piece = (own + line[:, first : first + 6]) / 2
                wanted.append(piece)
                x = torch.cat([x, piece], dim=1)[:, -20:]
        with torch.no_grad():
            torch.testing.assert_close(model.forecast(Batch(start), steps), torch.cat(wanted, dim=1))


def test_hybrid_moves_quantiles_with_the_median() -> None:
    model = make("fem_sm_ridge", quantiles=(0.1, 0.5, 0.9), d_model=8, n_heads=2)
    model.prepare(SERIES)
    batch = Batch(SERIES[None, -20:])
    with torch.no_grad():
        own = SegmentForecaster.forward(model, batch).unflatten(1, (6, 3)).sort(dim=2).values
        made = model.forecasts(batch, 16)
        wanted = own + ((model.linear(batch.past, 6) - own[:, :, 1]) / 2)[:, :, None]
        torch.testing.assert_close(model(batch).unflatten(1, (6, 3)), wanted)
    assert made.quantiles is not None and made.quantiles.shape == (1, 16, 3, 2)
    assert torch.equal(made.quantiles[:, :, 1], made.points)
    torch.testing.assert_close(made.quantiles[:, :6], wanted)
    assert bool((made.quantiles.diff(dim=2) >= 0).all())


def test_hybrid_mixer_reads_known_inputs_of_later_steps() -> None:
    model = make("fem_sm_ridge", d_model=8, n_heads=2, n_known=3)
    model.prepare(SERIES)
    with torch.no_grad():
        for weight in model.known_in.parameters():
            weight.add_(torch.randn_like(weight))
        known = torch.randn(1, 35, 3)
        x = SERIES[None, -20:]
        line, wanted = model.linear(x, 15), x
        for first in (0, 6, 12):
            batch = Batch(wanted[:, first:], known=known[:, first:])
            own = SegmentForecaster.forward(model, batch)[:, : 15 - first]
            wanted = torch.cat([wanted, (own + line[:, first : first + 6]) / 2], dim=1)
        torch.testing.assert_close(model.forecast(Batch(x, known=known), 15), wanted[:, 20:])
        without = model.forecast(Batch(x, known=torch.zeros_like(known)), 15)
        assert not torch.allclose(wanted[:, 20:], without, rtol=0, atol=1e-3)


def test_hybrid_mixer_trains_as_alone() -> None:
    alone = build_model(
        "fem_sm",
        build_config(
            "fem_sm", seq_len=20, pred_len=6, n_channels=2, settings={"d_model": 8, "n_heads": 2, "window_std": 0.5}
        ),
    )
    both = make("fem_sm_ridge", d_model=8, n_heads=2)
    both.prepare(SERIES)
    both.load_state_dict(alone.state_dict(), strict=False)
    batch = Batch(torch.randn(3, 20, 2), future=torch.randn(3, 6, 2))
    assert torch.equal(both.loss(batch), alone.eval().loss(batch))
    assert {name for name, _ in both.named_parameters()} == {name for name, _ in alone.named_parameters()}


def test_invalid_settings_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ridge": "0"}, r"'model\.ridge' takes a number above 0, not 0"),
        ({"season": "21"}, r"season of 21 steps .* look-back of 20.*model\.season"),
        ({"longest": "5"}, r"'model\.longest' takes at least the 6 steps of a forecast, not 5"),
    ]
    for settings, sentence in cases:
        for name in ("ridge", "fem_sm_ridge"):
            with pytest.raises(UsageError, match=sentence):
                make(name, **settings)


@pytest.mark.parametrize("gaps", [0.0, 0.02, 0.5])
def test_pieces_that_held_out_fits_share_are_summed_once(gaps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    series, calls = random_channels((0.8,), 4000), list[int]()
    observed = torch.rand(4000, 1, generator=torch.Generator().manual_seed(1)) >= gaps
    monkeypatch.setattr(ridge_fit, "ROWS_AT_ONCE", 300)
    monkeypatch.setattr(ridge_fit, "MOST_WINDOWS", 2000)

    def counted(rows: torch.Tensor, *further: Any) -> Moments:
        calls.append(len(rows))
        return window_moments(rows, *further)

    monkeypatch.setattr(ridge_fit, "window_moments", counted)
    made = LinearForecast(12, 8, 4, 1)
    made.fit(series, 0.3, observed)
    shared = len(calls)
    monkeypatch.setattr(ridge_fit.TrainingRows, "kept", property(lambda _: {}, lambda *_: None), raising=False)
    alone = LinearForecast(12, 8, 4, 1)
    alone.fit(series, 0.3, observed)
    assert torch.equal(made.dense, alone.dense)
    assert shared == len(calls) - shared if gaps == 0.5 else shared < 0.8 * (len(calls) - shared)
