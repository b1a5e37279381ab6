"""The seasonal naive forecast beside a model of a panel: against that model's own scores."""

from __future__ import annotations

import pytest
from femts.forecaster.panel_scoring import score_beside
from small_panels import panel_forecaster


def test_the_errors_are_those_of_the_model_of_that_name_and_mase_is_that_of_the_scores() -> None:
    ridge, naive = panel_forecaster("ridge"), panel_forecaster("seasonal_naive")
    beside, own = ridge.metrics["naive"], ridge.metrics["test"]
    assert beside["season"] == 7
    assert beside["mse"] == pytest.approx(naive.metrics["test"]["mse"], rel=1e-6)
    assert beside["mae"] == pytest.approx(naive.metrics["test"]["mae"], rel=1e-6)
    assert beside["skill"] == pytest.approx(1 - own["mse"] / beside["mse"])
    assert beside["mase"] == pytest.approx(ridge.scores(by=None)["mase"].item())
    assert naive.metrics["naive"]["skill"] == pytest.approx(0, abs=1e-6)


def test_several_horizons_have_their_own() -> None:
    ridge = panel_forecaster("ridge")
    scores, naive = score_beside(ridge, "test", (7, 5))
    assert scores == {steps: ridge.evaluate(pred_len=steps) for steps in (7, 5)}
    assert naive[7] == ridge.metrics["naive"] and naive[5] != naive[7]
