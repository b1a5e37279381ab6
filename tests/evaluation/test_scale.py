"""The denominators of MASE and RMSSE, compared with utilsforecast."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.evaluation.constants import FLOOR
from femts.evaluation.scale import SeasonalScale, seasonal_changes

HOURS = np.arange(600)
ROW = np.zeros(1, dtype=np.int64)  # the first
DAY = np.sin(2 * np.pi * HOURS / 24)


def table(**columns: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=len(HOURS), freq="h"), **columns})


@pytest.mark.filterwarnings("ignore::femts.AgeWarning")
def test_scores_by_series_equal_those_of_utilsforecast() -> None:
    losses = pytest.importorskip("utilsforecast.losses", reason="needs utilsforecast")
    rng = np.random.default_rng(0)
    wide = table(a=10 + DAY + rng.normal(size=600), b=500 + 40 * DAY + 9 * rng.normal(size=600))
    long = wide.melt("date", var_name="series", value_name="y")
    made = femts.train(long, "ridge", 24, panel=True, refit=False)
    data = made.training_data()
    scores = made.scores(by="series").set_index("series")
    forecasts, training = list[pd.DataFrame](), list[pd.DataFrame]()
    for number, name in enumerate(data.series):
        first, stop = data.part("test")[number].tolist()
        for start in range(first, stop - 24 + 1):
            past = slice(start - made.config.seq_len, start)
            ahead = _forecast(made, data, past, name)
            actual = data.values[start : start + 24, 0]
            forecasts.append(pd.DataFrame({"unique_id": name, "y": actual, "model": ahead}))
        rows = slice(*data.part("train")[number].tolist())
        training.append(pd.DataFrame({"unique_id": name, "y": data.values[rows, 0]}))
    every, before = pd.concat(forecasts), pd.concat(training)
    for score, loss in (("mase", losses.mase), ("rmsse", losses.rmsse)):
        expected = loss(every, ["model"], 24, before).set_index("unique_id")["model"]
        assert scores[score].to_dict() == pytest.approx(expected.to_dict(), rel=1e-4)


def _forecast(made: femts.Forecaster, data: Dataset, past: slice, name: str) -> np.ndarray:
    assert data.stamps is not None
    history = pd.DataFrame({"date": data.stamps[past], "series": name, "y": data.values[past, 0]})
    return made.predict(history)["y"].to_numpy()


def test_a_column_that_repeats_has_no_mase() -> None:
    noise = np.random.default_rng(0).normal(size=600)
    made = femts.train(table(x=DAY), "dlinear", 24, settings={"training.max_steps": 20}, refit=False)
    scores = made.evaluate("test", dataset=table(x=DAY))
    assert np.isnan(scores["mase"]) and scores["verdict"] is not None
    assert scores["verdict"].startswith(
        "worse than the seasonal naive forecast, which repeats the last 24 steps, which"
    )
    with_noise = table(x=DAY, y=DAY + noise)
    two = femts.train(with_noise, "dlinear", 24, settings={"training.max_steps": 20}, refit=False)
    rows = two.scores(by="channel", dataset=with_noise).set_index(["units", "channel"])["mase"]
    assert np.isnan(rows["raw", "x"])
    assert two.evaluate(dataset=with_noise)["mase"] == pytest.approx(rows["raw", "y"], rel=1e-5), (
        "a mean of what is defined"
    )


@pytest.mark.parametrize("level", [0.0, 1e9])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_floor_is_relative_to_the_deviation(size: float, level: float) -> None:
    noise = np.random.default_rng(0).normal(size=600)
    for factor, defined in ((FLOOR / 100, False), (FLOOR * 100, True)):
        values = (level * size + size * (DAY + factor * noise))[:, None]
        if (level and not defined) or not level:
            assert np.isfinite(seasonal_changes(values, 24, ROW, ROW + len(values))[0])[0, 0] == defined


def test_a_constant_series_has_no_scale() -> None:
    data = load_dataset(table(x=np.full(600, 3.0), y=DAY + np.arange(600)), target=["x", "y"])
    assert np.isnan(SeasonalScale.of(data).absolute[0, 0]) and np.isfinite(SeasonalScale.of(data).absolute[0, 1])
