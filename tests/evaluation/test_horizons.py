"""Scores at several horizons from one roll-out are those of a roll-out for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.windows import ScaledSeries, Windows
from femts.evaluation.evaluator import evaluate, evaluate_horizons
from femts.models.base import ForecastModel
from femts.models.naive import Naive
from femts.models.registry import build_config, build_model, model_names

L, P, C, ROWS, START = 24, 6, 3, 80, 10
HORIZONS = (6, 25, 4, 12, 19)  # in no order; below, at and beyond P, and what no whole number of forecasts fills


def make(name: str, quantiles: Sequence[float] = ()) -> ForecastModel:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"season": 5} if "ridge" in name or name == "seasonal_naive" else {}
    settings |= {"longest": 13} if "ridge" in name else {}
    settings |= {"patch_len": 8, "stride": 4} if name == "patchtst" else {}
    config = build_config(name, seq_len=L, pred_len=P, n_channels=C, settings=settings)
    model = build_model(name, config, quantiles).eval()
    model.prepare(series(seed=1))
    return model


def series(seed: int = 0) -> Tensor:
    return torch.randn(ROWS, C, generator=torch.Generator().manual_seed(seed))


def windows(steps: int, **more: Any) -> Windows:
    return Windows(ScaledSeries(series(), **more), L, steps, START, ROWS)


def compare(model: ForecastModel, batch_size: int = 16, **more: Any) -> None:
    found = evaluate_horizons(model, [windows(steps, **more) for steps in HORIZONS], batch_size)
    assert tuple(found) == HORIZONS
    for steps, scores in found.items():
        alone = evaluate(model, windows(steps, **more), batch_size)
        assert scores["windows"] == alone["windows"] == ROWS - START - L - steps + 1
        assert scores == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("name", model_names())
def test_a_short_forecast_begins_a_long_one_and_scores_are_the_same(name: str) -> None:
    model = make(name)
    x = series(2)[None, :L]
    long = model.forecast(x, max(HORIZONS))
    for steps in HORIZONS:
        torch.testing.assert_close(model.forecast(x, steps), long[:, :steps], rtol=1e-5, atol=1e-5)
    compare(model)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
@pytest.mark.parametrize("quantiles", [(), (0.1, 0.5, 0.9)])
def test_gaps_known_effects_and_targets_count_as_they_do_alone(batch_size: int, quantiles: tuple[float, ...]) -> None:
    observed = torch.rand(ROWS, C, generator=torch.Generator().manual_seed(3)) > 0.2
    compare(make("dlinear", quantiles), batch_size, observed=observed, offsets=series(4), targets=2)


def test_a_window_is_forecast_once() -> None:
    forecasts = 0

    class Count(Naive):
        def forward(self, x: Tensor) -> Tensor:
            nonlocal forecasts
            forecasts += len(x)
            return super().forward(x)

    evaluate_horizons(Count(ModelConfig(L, P, C)), [windows(steps) for steps in (P, 2 * P, 4 * P)])
    most = len(windows(P))
    assert forecasts == most + len(windows(2 * P)) + 2 * len(windows(4 * P))


def test_some_windows_are_those_of_the_longest_horizon_at_even_distances() -> None:
    model, lengths = make("dlinear"), (6, 12, 25)
    found = evaluate_horizons(model, [windows(steps) for steps in lengths], most=4)
    begins = torch.linspace(0, len(windows(25)) - 1, 4).round().long()
    for steps, scores in found.items():
        x, y = windows(steps).gather(begins)
        expected = (model.forecast(x, steps) - y).square().mean()
        assert scores["windows"] == 4 and scores["mse"] == pytest.approx(float(expected.detach()), rel=1e-5)
    assert evaluate_horizons(model, [windows(25)], most=1000) == evaluate_horizons(model, [windows(25)])
