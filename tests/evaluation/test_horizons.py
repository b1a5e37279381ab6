"""Joint scoring of several horizons."""

from __future__ import annotations

import pytest
import torch
from model_cases import ROWS, C, L, P, check_horizons, compare_horizons, make_prepared, of_each_class, series, windows
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.evaluation.evaluator import evaluate_horizons
from femts.models.naive import Naive
from femts.models.registry import model_card, model_names


@pytest.mark.parametrize("name", of_each_class(n for n in model_names() if not model_card(n).model_class.supports.raw))
def test_joint_scoring_equals_separate_scoring(name: str) -> None:
    check_horizons(name)


@pytest.mark.parametrize(("batch_size", "quantiles"), [(1, ()), (7, (0.1, 0.5, 0.9)), (1000, ())])
def test_joint_scoring_with_gaps_offsets_and_targets(batch_size: int, quantiles: tuple[float, ...]) -> None:
    observed = torch.rand(ROWS, C, generator=torch.Generator().manual_seed(3)) > 0.2
    compare_horizons(make_prepared("dlinear", quantiles), batch_size, observed=observed, offsets=series(4), targets=2)


def test_each_window_is_forecast_once() -> None:
    forecasts = 0

    class Count(Naive):
        def forward(self, batch: Batch) -> Tensor:
            nonlocal forecasts
            forecasts += len(batch.past)
            return super().forward(batch)

    evaluate_horizons(Count(ModelConfig(L, P, C)), [windows(steps) for steps in (P, 2 * P, 4 * P)])
    most = len(windows(P))
    assert forecasts == most + len(windows(2 * P)) + 2 * len(windows(4 * P))


def test_subsample_follows_the_longest_horizon() -> None:
    model, lengths = make_prepared("dlinear"), (6, 12, 25)
    found = evaluate_horizons(model, [windows(steps) for steps in lengths], most=4)
    begins = torch.linspace(0, len(windows(25)) - 1, 4).round().long()
    for steps, scores in found.items():
        batch = windows(steps).batch(begins)
        expected = (model.forecast(batch, steps) - batch.target).square().mean()
        assert scores["windows"] == 4 and scores["mse"] == pytest.approx(float(expected.detach()), rel=1e-5)
    assert evaluate_horizons(model, [windows(25)], most=1000) == evaluate_horizons(model, [windows(25)])
