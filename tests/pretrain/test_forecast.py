"""Forecasts of any series with a network, and their scores on tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from femts.experiments.tasks import Task
from scripts.pretrain.forecast import forecast
from scripts.pretrain.network import Network, NetworkConfig
from scripts.pretrain.tasks import score_task


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(0)
    return Network(NetworkConfig(width=32, layers=1, heads=2))


def wave(rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(2 * np.pi * np.arange(rows) / 24) + 0.1 * rng.standard_normal(rows)


def test_quantiles_are_in_the_units_of_the_series_and_in_order(network: Network) -> None:
    plain, large = (forecast(network, [f * wave(300) + 7 * f], 24, 30) for f in (1.0, 1e9))
    assert plain.shape == (1, 30, 9) and (np.diff(plain) >= 0).all()
    np.testing.assert_allclose(large / 1e9, plain, atol=1e-3)
    np.testing.assert_allclose(plain[0, :, 4], 7 + np.sin(2 * np.pi * np.arange(300, 330) / 24), atol=0.5)


def test_series_forecast_together_are_those_forecast_alone(network: Network) -> None:
    series = [wave(400), wave(300, 1), wave(2500, 2), wave(30, 3), wave(2100, 4)]
    together = forecast(network, series, 24, 24)
    for i, history in enumerate(series):
        np.testing.assert_allclose(forecast(network, [history], 24, 24)[0], together[i], atol=1e-5)


def test_odd_histories_have_finite_forecasts(network: Network) -> None:
    gaps = wave(200)
    gaps[::3] = np.nan
    odd = [gaps, wave(8), np.full(50, 3.0), np.array([1.0]), np.full(20, np.nan), 1e-9 * wave(60)]
    got = forecast(network, odd, 24, 192)
    assert np.isfinite(got[[0, 1, 2, 3, 5]]).all() and np.isnan(got[4]).all()
    np.testing.assert_allclose(got[2], 3.0, atol=2.0)
    assert np.abs(got[5]).max() < 1e-8


def test_long_histories_are_read_in_two_lengths(network: Network) -> None:
    history = wave(2300)
    changed = history.copy()
    changed[:200] += 5
    assert not np.allclose(forecast(network, [changed], 24, 24), forecast(network, [history], 24, 24))


def test_a_horizon_beyond_the_longest_is_refused(network: Network) -> None:
    with pytest.raises(ValueError, match="193 steps is beyond 192"):
        forecast(network, [wave(500)], 24, 193)


def test_tasks_are_scored_as_their_table_does(network: Network, tmp_path: Path) -> None:
    stamps = pd.date_range("2024-01-01", periods=300, freq="h")
    frame = pd.DataFrame({"date": stamps, "a": wave(300), "b": 5 + wave(300, 1)})
    frame.to_csv(tmp_path / "two.csv", index=False)
    task = Task(name="two", data=("two.csv",), horizon=24, windows=2, season=24)
    scores = score_task(network, task, [str(tmp_path / "two.csv")])
    errors = []
    for number in range(2):
        stop = 300 - (2 - number) * 24
        for column in ("a", "b"):
            past, future = frame[column][:stop].to_numpy(), frame[column][stop : stop + 24].to_numpy()
            scale = np.abs(past[24:] - past[:-24]).mean()
            median = forecast(network, [past], 24, 24)[0, :, 4]
            errors.append(np.abs(future - median).mean() / scale)
    assert scores["mase"] == pytest.approx(np.mean(errors), rel=1e-4)
    assert 0 < scores["sql"] < scores["mase"] * 1.2
