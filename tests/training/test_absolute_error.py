"""Training with `training.loss=mae`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from small_runs import essence, small_run

import femts
from femts.models.base import mean_error

MAE = {"training.loss": "mae"}


@pytest.mark.parametrize(("absolute", "power"), [(True, 1), (False, 2)], ids=["absolute", "squared"])
def test_loss_is_over_observed_values(absolute: bool, power: int) -> None:
    forecast, target = torch.randn(2, 5, 7, 3, dtype=torch.float64)
    observed = torch.rand(5, 7, 3) < 0.6
    errors = np.abs(forecast - target).numpy() ** power
    assert_allclose(mean_error(forecast, target, None, absolute), errors.mean())
    assert_allclose(mean_error(forecast, target, observed, absolute), errors[observed.numpy()].mean())
    assert mean_error(forecast, target, torch.zeros_like(observed), absolute) == 0


def test_mae_learns_the_median() -> None:
    """The mean is 2 and the median 0."""
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
def test_mae_changes_training(model: str) -> None:
    assert essence(small_run(model, settings=MAE)) != essence(small_run(model))


def test_mae_does_not_change_closed_forms() -> None:
    assert essence(small_run("ridge", settings=MAE))["weights"] == essence(small_run("ridge"))["weights"]
