"""Training by the mean absolute error, `training.loss=mae`."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from small_runs import DATA, essence, signal_at, small_run

import femts
from femts.models.base import ForecastModel, mean_error
from femts.training.stopping import Interrupted

MAE = {"training.loss": "mae"}


@pytest.mark.parametrize(("absolute", "power"), [(True, 1), (False, 2)], ids=["absolute", "squared"])
def test_error_is_over_observed_values(absolute: bool, power: int) -> None:
    forecast, target = torch.randn(2, 5, 7, 3, dtype=torch.float64)
    observed = torch.rand(5, 7, 3) < 0.6
    errors = np.abs(forecast - target).numpy() ** power
    assert_allclose(mean_error(forecast, target, None, absolute), errors.mean())
    assert_allclose(mean_error(forecast, target, observed, absolute), errors[observed.numpy()].mean())
    assert mean_error(forecast, target, torch.zeros_like(observed), absolute) == 0


def test_a_median_is_learned() -> None:
    """Of values that are 0 four times of five and else 10, the mean is 2 and the median 0."""
    values = np.where(np.random.default_rng(0).random((800, 1)) < 0.2, 10.0, 0.0)
    table = pd.DataFrame(values, columns=["load"])
    table.insert(0, "date", pd.date_range("2024", periods=len(table), freq="h"))
    settings = {"training.max_steps": 400, "training.lr": 1e-2}
    means = {}
    for loss in ("mse", "mae"):
        run = femts.train(table, "dlinear", 4, seq_len=12, settings={**settings, "training.loss": loss})
        means[loss] = run.predict(table)["load"].mean()
    assert means["mse"] == pytest.approx(2, abs=1) and means["mae"] == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize("model", ["dlinear", "fem_sm", "fem_sm_ridge"])
def test_a_training_is_by_this_error_and_is_resumed_to_the_bit(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small_run(model, settings=MAE)
    assert essence(whole) != essence(small_run(model))
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        signal_at(patch, 7, signal.SIGTERM)
        small_run(model, settings=MAE, out=tmp_path / "run")
    assert essence(small_run(model, settings=MAE, out=tmp_path / "run", resume=True)) == essence(whole)


def test_a_closed_form_has_nothing_that_it_changes() -> None:
    assert essence(small_run("ridge", settings=MAE))["weights"] == essence(small_run("ridge"))["weights"]


def test_model_has_an_absolute_or_squared_error() -> None:
    model: ForecastModel = small_run().model
    outputs, target = torch.ones(1, 4, len(DATA.columns)), torch.zeros(1, 4, len(DATA.columns))
    assert model.error(3 * outputs, target) == 9
    model.absolute = True
    assert model.error(3 * outputs, target) == 3
