"""A backtest of a panel: cutoffs from the end of each series, each forecast as `predict` makes it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_panels import P, panel_forecaster, panel_table

import femts
from femts.data.loading import load_dataset
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster

TABLE, DAY = panel_table(), pd.Timedelta(days=1)


@pytest.fixture(scope="module")
def ridge() -> Forecaster:
    return panel_forecaster("ridge")


@pytest.mark.parametrize("horizon", [3, P, 10])
def test_each_forecast_is_what_predict_makes_of_the_rows_before(ridge: Forecaster, horizon: int) -> None:
    said = list[str]()
    cutoffs = femts.Cutoffs(windows=2, step=5, horizon=horizon)
    frame = femts.backtest(ridge, TABLE, cutoffs, say=said.append)
    assert list(frame) == ["window", "series", "cutoff", "date", "forecast", "seasonal_naive", "actual"]
    for (window, name), rows in frame.groupby(["window", "series"]):
        before = horizon + (2 - int(str(window))) * 5
        own = TABLE[TABLE["unique_id"] == name]
        past, after = own.iloc[:-before], own.iloc[len(own) - before :].head(horizon)
        expected = ridge.predict(past, horizon)
        np.testing.assert_allclose(rows["forecast"], expected["y"], rtol=1e-5)
        assert list(rows["date"]) == list(expected["ds"]) and set(rows["cutoff"]) == {past["ds"].max()}
        np.testing.assert_array_equal(rows["actual"], after["y"])
        season = past["y"].ffill().to_numpy()[-7:]
        np.testing.assert_allclose(rows["seasonal_naive"], season[np.arange(horizon) % 7])
    assert "tiny" not in set(frame["series"])
    assert "series, the first 'tiny', are left out at cutoffs that have less than a season of 7 rows" in said[0]


def test_the_last_windows_of_all_series_have_the_scores_of_the_evaluator(ridge: Forecaster) -> None:
    panel, errors = ridge.training_data(), []
    assert ridge.preprocess_of["long"].scaler.scale[0] > 0
    frame = femts.backtest(ridge, panel, femts.Cutoffs(windows=1, step=1))
    for name, rows in frame.groupby("series"):
        one = ridge.preprocess_of[str(name)]
        pair = (one.rescale(rows[[column]].to_numpy()) for column in ("forecast", "actual"))
        errors.append(np.square(np.subtract(*pair)))
    scores = femts.backtest_scores(frame, ridge)
    overall = scores.query("window == 'all' and model == 'forecast'")
    assert overall["mse_scaled"].item() == pytest.approx(np.nanmean(np.concatenate(errors)))
    assert list(scores) == ["window", "model", "mse_scaled", "mae_scaled"]
    by_series = femts.backtest_scores(frame, ridge, by="series")
    assert list(by_series["series"].unique()) == ["long", "short", "young", "all"]
    long = frame.query("series == 'long'")
    row = by_series.query("series == 'long' and model == 'forecast'")
    assert row["mae_raw"].item() == pytest.approx((long["forecast"] - long["actual"]).abs().mean())


def test_rows_after_a_cutoff_do_not_matter(ridge: Forecaster) -> None:
    other = TABLE.copy()
    late = other.groupby("unique_id").cumcount(ascending=False) < P
    other.loc[late, "y"] = 1e6
    frames = [femts.backtest(ridge, each, femts.Cutoffs(windows=1, step=1)) for each in (TABLE, other)]
    np.testing.assert_array_equal(frames[0]["forecast"], frames[1]["forecast"])


def test_series_that_are_new_are_forecast_and_have_raw_errors(ridge: Forecaster) -> None:
    new = TABLE.query("unique_id == 'long'").assign(unique_id="stranger")
    with pytest.warns(femts.GapWarning, match="1 of 1 series are new"):
        frame = femts.backtest(ridge, new, femts.Cutoffs(windows=1, step=1))
    scores = femts.backtest_scores(frame, ridge, by="series").query("series == 'stranger'")
    assert scores["mae_raw"].notna().all() and scores["mae_scaled"].isna().all()


def test_rows_that_the_model_knows_are_said_to_be_known_in_a_grown_table(ridge: Forecaster, tmp_path: Path) -> None:
    days = TABLE.groupby("unique_id")["ds"].transform("max")
    grown = pd.concat([TABLE, TABLE[TABLE["ds"] > days - pd.Timedelta(days=P)].assign(ds=lambda x: x["ds"] + P * DAY)])
    final = panel_forecaster("ridge", final=True)
    final.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    for forecaster, table, windows, noted in (
        (final, TABLE, 1, 3),
        (final, grown, 1, 0),  # `short` and `young` end before the last row learned from, that of `long`
        (final, grown, 2, 3),
        (loaded, grown, 2, 3),
        (loaded, grown.assign(unique_id="other " + grown["unique_id"]), 2, 0),
        (ridge, TABLE, 1, 0),
        (ridge, grown, 2, 0),
        (ridge, grown, 3, 1),  # of `young` one week is for the test, of the others two or more
    ):
        said = list[str]()
        with warnings.catch_warnings(action="ignore", category=femts.GapWarning):
            femts.backtest(forecaster, table, femts.Cutoffs(windows=windows, step=P), say=said.append)
        notes = [int(text.split()[2]) for text in said if "flatter" in text]
        assert notes == [noted] * (noted > 0), (said, windows)


def test_what_cannot_be_had_is_a_sentence(ridge: Forecaster) -> None:
    one = femts.Cutoffs(windows=1, step=1)
    with pytest.raises(UsageError, match="No series of 'frame' has a season of 7 rows before a forecast of 400"):
        femts.backtest(ridge, TABLE, femts.Cutoffs(windows=1, step=1, horizon=400))
    with pytest.raises(UsageError, match="takes a whole number of at least 1 for its windows, not 0"):
        femts.backtest(ridge, TABLE, femts.Cutoffs(windows=0, step=1))
    weekly = TABLE.assign(ds=pd.to_datetime("2020-01-01") + 7 * (TABLE["ds"] - pd.Timestamp("2020-01-01")))
    with pytest.raises(UsageError, match="has other columns, or another step, than the training data"):
        femts.backtest(ridge, weekly, one)
    wide = femts.train(
        TABLE.query("unique_id == 'long'")[["ds", "y"]].rename(columns={"ds": "date"}), "naive", P, seq_len=14
    )
    with pytest.raises(UsageError, match="The data are a Dataset, and this model was trained on a single table"):
        femts.backtest(wide, load_dataset(TABLE, panel=True), one)
    with pytest.raises(UsageError, match="A backtest is not grouped by 'series'"):
        femts.backtest_scores(femts.backtest(ridge, TABLE, one).assign(column="y"), wide, by="series")
