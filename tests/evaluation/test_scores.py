"""Scores by step and channel, compared with scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from combinations import in_turn
from even_intervals import even_intervals
from every_window import every_window
from sklearn.metrics import mean_absolute_error, mean_squared_error

from femts.data.batch import Batch
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.data.windows import Windows
from femts.evaluation.coverage import Bounds
from femts.evaluation.evaluator import evaluate
from femts.evaluation.metrics.intervals import CRPS, interval_metrics
from femts.evaluation.metrics.point import MAE, MSE, RMSE, SMAPE
from femts.evaluation.metrics.relative import MASE, WAPE, Bias, Skill
from femts.evaluation.scale import SeasonalScale, seasonal_changes
from femts.evaluation.score_sums import ScoreSums
from femts.evaluation.values import Viewer
from femts.models.base import Forecasts
from femts.models.dlinear import DLinear, DLinearConfig
from femts.models.naive import SeasonalNaive, SeasonalNaiveConfig

L, P, C, SEASON, TRAIN = 12, 7, 3, 5, 60
ROW = np.zeros(1, dtype=np.int64)  # the first
COLUMNS = ("a", "b", "c")
RAW = np.random.default_rng(0).normal([5.0, -200.0, 0.3], [1.0, 30.0, 0.2], (150, C))


def scaled(raw: np.ndarray) -> tuple[Preprocess, Windows]:
    """Preprocessing of the training rows, and windows of the others."""
    train = raw[:TRAIN]
    preprocess = Preprocess(COLUMNS, ("",), Scaler(train.mean(0)[None], train.std(0)[None], np.ones((1, C), bool)))
    return preprocess, Windows(torch.from_numpy(preprocess.transform(raw)).float()[TRAIN:], L, P)


PREPROCESS, WINDOWS = scaled(RAW)
SCALE = PREPROCESS.scaler.scale[0]


@pytest.fixture(scope="module")
def model() -> DLinear:
    torch.manual_seed(0)
    return DLinear(DLinearConfig(L, P, C))


def sums_of(
    preprocess: Preprocess,
    train: np.ndarray,
    season: int = SEASON,
    bounds: Bounds | None = None,
    levels: tuple[float, ...] = (),
) -> ScoreSums:
    absolute = seasonal_changes(train, season, ROW, ROW + len(train))[0]
    viewer = Viewer(preprocess, season, SeasonalScale(absolute, absolute), bounds)
    points = [MSE(), MAE(), RMSE(), SMAPE(), MASE(), WAPE(), Bias(), Skill()]
    crps = [] if bounds is None else [CRPS(bounds.intervals.standard)]
    return ScoreSums([*points, *crps, *interval_metrics(levels)], viewer, "step")


def frame_of(
    model: torch.nn.Module, batch_size: int, by: tuple[str, ...] = (), levels: tuple[float, ...] = ()
) -> pd.DataFrame:
    bounds = None
    if levels:
        made = even_intervals(levels, np.full((len(levels), P, C), 0.7))
        bounds = Bounds(made, WINDOWS, (), levels)
    sums = sums_of(PREPROCESS, RAW[:TRAIN], bounds=bounds, levels=levels)
    evaluate(model, WINDOWS, batch_size, also=[sums])  # type: ignore[arg-type]
    return sums.frame(COLUMNS, by)


def forecasts(model: DLinear) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts, targets and seasonal naive forecasts in scaled units, (n, P, C)."""
    batch, y = every_window(WINDOWS)
    with torch.no_grad():
        forecast, x = model(batch), batch.past
    naive = np.stack([x[:, L - SEASON + step % SEASON] for step in range(P)], axis=1)
    return forecast.double().numpy(), y.double().numpy(), naive.astype(np.float64)


@in_turn(by=((), ("step",), ("channel",), ("step", "channel")), units=("scaled", "raw", "raw", "scaled"))
def test_scores_match_sklearn(model: DLinear, by: tuple[str, ...], units: str) -> None:
    table = frame_of(model, 4, by)
    table = table[table["units"] == units].reset_index(drop=True)
    steps = [[p] for p in range(P)] if "step" in by else [list(range(P))]
    channels = [[c] for c in range(C)] if "channel" in by else [list(range(C))]
    groups = list(itertools.product(steps, channels))
    assert len(table) == len(groups)
    forecast, target, naive = forecasts(model)
    mase_base = np.array(
        [np.mean([abs(RAW[t, c] - RAW[t - SEASON, c]) for t in range(SEASON, TRAIN)]) for c in range(C)]
    )
    absolute = np.abs(forecast - target) * SCALE / mase_base
    if units == "raw":
        forecast, target, naive = (PREPROCESS.inverse(values) for values in (forecast, target, naive))
    for (_, row), (p, c) in zip(table.iterrows(), groups, strict=True):
        f, y, s = (values[:, p][:, :, c].reshape(len(WINDOWS), -1) for values in (forecast, target, naive))
        mse = mean_squared_error(y, f)
        assert row["windows"] == len(WINDOWS)
        assert row["mse"] == pytest.approx(mse, rel=1e-6)
        assert row["mae"] == pytest.approx(mean_absolute_error(y, f), rel=1e-6)
        assert row["rmse"] == pytest.approx(np.sqrt(mse), rel=1e-6)
        smape = np.mean(200 * np.abs(y - f) / (np.abs(y) + np.abs(f))) if units == "raw" else np.nan
        assert row["smape"] == pytest.approx(smape, rel=1e-5, nan_ok=True)
        assert row["mase"] == pytest.approx(absolute[:, p][:, :, c].mean(), rel=1e-6)
        assert row["skill"] == pytest.approx(1 - mse / mean_squared_error(y, s), rel=1e-5)
        if "step" in by:
            assert row["step"] == p[0] + 1
        if "channel" in by:
            assert row["channel"] == COLUMNS[c[0]]


@pytest.mark.parametrize("by", [(), ("step", "channel")], ids=str)
def test_streaming_equals_one_batch(model: DLinear, by: tuple[str, ...]) -> None:
    one_by_one, at_once = (frame_of(model, size, by, (80.0,)) for size in (1, 1000))
    pd.testing.assert_frame_equal(one_by_one, at_once, rtol=1e-6)


def test_score_columns_and_units(model: DLinear) -> None:
    table = frame_of(model, 8, ("channel",), (80.0, 97.5))
    scores = ["mse", "mae", "rmse", "smape", "mase", "wape", "bias", "skill"]
    bounds = [f"{name}-{level}" for level in ("80", "97.5") for name in ("coverage", "width", "pinball")]
    assert list(table) == ["channel", "units", "windows", *scores, "crps", *bounds]
    assert table["units"].tolist() == ["scaled"] * C + ["raw"] * C
    np.testing.assert_allclose(table["width-80"], [1.4] * C + list(1.4 * SCALE), rtol=1e-6)
    np.testing.assert_allclose(table["pinball-80"][C:] / table["pinball-80"][:C].to_numpy(), SCALE)


def test_seasonal_naive_has_no_skill_over_itself() -> None:
    table = frame_of(SeasonalNaive(SeasonalNaiveConfig(L, P, C, SEASON)), 8, ("step", "channel"))
    np.testing.assert_allclose(table["skill"], 0, atol=1e-12)


def test_short_look_back_has_no_skill(model: DLinear) -> None:
    sums = sums_of(PREPROCESS, RAW[:TRAIN], L + 1)
    evaluate(model, WINDOWS, also=[sums])
    table = sums.frame(COLUMNS)
    assert table["skill"].isna().all() and table["mase"].notna().all()


def test_smape_of_zeros_is_zero() -> None:
    y, f = torch.tensor([[[0.0], [2.0], [4.0]]]), torch.tensor([[[0.0], [1.0], [4.0]]])
    sums = sums_of(Preprocess(("a",), ("",), Scaler.even(1)), np.arange(9.0)[:, None], 1)
    sums.update(Forecasts(f, None), Batch(torch.ones(1, 4, 1), future=y))
    table = sums.frame(("a",)).set_index("units")
    assert table.loc["raw", "smape"] == pytest.approx(200 / 3 / 3)


def test_zero_denominators_are_nan() -> None:
    """Channel `b` repeats its season and is 0 in raw units; `a` is unaffected."""
    raw = RAW.copy()
    raw[:, 1] = np.where(np.arange(len(raw)) < 2, 7.0, 0.0)  # its mean is not 0, so that scaled zeros are not zeros
    preprocess, windows = scaled(raw)
    sums = sums_of(preprocess, raw[10:TRAIN])
    evaluate(SeasonalNaive(SeasonalNaiveConfig(L, P, C, SEASON)), windows, also=[sums])
    table = sums.frame(COLUMNS, ("channel",)).set_index(["units", "channel"])
    assert table.loc["raw", "b"][["mase", "skill"]].isna().all()
    assert table.loc["raw", "b"]["smape"] == 0, "a forecast of 0 for a 0 is no error"
    assert np.isfinite(table.loc["raw", "b"][["mse", "mae", "rmse"]].astype(float)).all()
    assert table.loc["scaled"]["smape"].isna().all()
    assert table.loc["raw", "a"].notna().all()
    each = table.loc["raw", "mase"]
    assert sums.frame(COLUMNS)["mase"].to_numpy() == pytest.approx(each.mean()), "a mean of those that have a scale"
    np.testing.assert_allclose(
        seasonal_changes(raw, SEASON, ROW, ROW + SEASON)[0][0],
        np.abs(np.diff(raw[:SEASON], axis=0)).mean(0),
        err_msg="no season, a step",
    )
    assert np.isnan(seasonal_changes(raw, SEASON, ROW, ROW + SEASON, or_step=False)).all(), "as in fev"
    assert np.isnan(seasonal_changes(raw, SEASON, ROW, ROW + 1)).all()
    assert np.isnan(seasonal_changes(raw * np.nan, SEASON, ROW, ROW + len(raw))).all()
