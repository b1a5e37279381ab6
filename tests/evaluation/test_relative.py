"""WAPE and bias, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from every_window import every_window

import femts
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.data.schema import Schema
from femts.data.splits import Split
from femts.data.windows import part_windows
from femts.evaluation.evaluator import evaluate
from femts.evaluation.metrics.relative import WAPE, Bias
from femts.evaluation.score_sums import ScoreSums
from femts.evaluation.values import Viewer
from femts.models.base import Forecasts
from femts.models.dlinear import DLinear, DLinearConfig

L, P, C = 12, 5, 2
STEPS = 6
SHOPS = {"large": 1000.0, "small": 3.0, "closed": 20.0}


@pytest.mark.parametrize("transform", [None, "log1p"])
def test_wape_and_bias_with_gaps_and_transform(transform: str | None) -> None:
    rng = np.random.default_rng(0)
    raw = rng.gamma(4.0, [1.0, 30.0], (120, C))
    raw[rng.random(raw.shape) < 0.2] = np.nan
    split = Split.of((0, 60), (60, 80), (80, 120))
    data = Dataset.of_one("raw", raw, None, ("a", "b"), season=5, split=split, schema=Schema.of(transform=transform))
    preprocess = Preprocess.fit(data)
    windows = part_windows(data, preprocess, "test", L, P)
    torch.manual_seed(0)
    model = DLinear(DLinearConfig(L, P, C))
    metrics = WAPE(), Bias()
    sums, details = (ScoreSums(metrics, Viewer(preprocess, 5), by) for by in ("series", "step"))
    evaluate(model, windows, 8, also=[sums, details])
    with torch.no_grad():
        forecast = preprocess.inverse(model(every_window(windows)[0]).double().numpy())
    actual = np.stack([raw[80 + start : 80 + start + P] for start in range(len(windows))])
    error, size = forecast - actual, np.abs(actual)
    wape = np.nansum(np.abs(error), (0, 1)) / np.nansum(size, (0, 1))
    bias = np.nansum(error, (0, 1)) / np.nansum(size, (0, 1))
    assert [sums.overall(each) for each in metrics] == pytest.approx([wape.mean(), bias.mean()], rel=1e-4)
    frames = {by: details.frame(data.columns, by) for by in ((), ("channel",), ("step",))}
    raw_rows = {by: frame[frame["units"] == "raw"] for by, frame in frames.items()}
    assert all(
        frame.loc[frame["units"] == "scaled", ["wape", "bias"]].isna().all(axis=None) for frame in frames.values()
    )
    np.testing.assert_allclose(raw_rows[()]["wape"], wape.mean(), rtol=1e-4)
    np.testing.assert_allclose(raw_rows["channel",]["wape"], wape, rtol=1e-4)
    np.testing.assert_allclose(raw_rows["channel",]["bias"], bias, rtol=1e-3)
    by_step = (np.nansum(np.abs(error), 0) / np.nansum(size, 0)).mean(1)
    np.testing.assert_allclose(raw_rows["step",]["wape"], by_step, rtol=1e-4)


def test_high_forecast_has_positive_bias() -> None:
    metrics = WAPE(), Bias()
    sums = ScoreSums(metrics, Viewer(Preprocess(("a", "b"), ("",), Scaler.even(2))), "series", ("raw",))
    actual = torch.tensor([[[4.0, 0.0], [-6.0, 0.0]]])
    forecast = torch.tensor([[[6.0, 0.5], [-7.0, 0.0]]])
    sums.update(Forecasts(forecast, None), Batch(torch.zeros(1, 3, 2), future=actual))
    assert [sums.overall(each, "raw") for each in metrics] == pytest.approx([0.3, 0.1]), "no share of a target of 0"
    for metric in metrics:
        assert np.isnan(sums.scores(metric, "raw", targets=True)).tolist() == [[False, True]]


@pytest.fixture(scope="module")
def shops() -> pd.DataFrame:
    """Three shops, one of which has no sales in the last rows."""
    rng, tables = np.random.default_rng(1), []
    for name, level in SHOPS.items():
        sales = level * (2 + rng.random(80))
        sales[74:] = 0.0 if name == "closed" else sales[74:]
        dates = pd.date_range("2019-01-01", periods=80, freq="MS")
        tables.append(pd.DataFrame({"unique_id": name, "ds": dates, "y": sales}))
    return pd.concat(tables, ignore_index=True)


def test_panel_wape_is_weighted_by_size(shops: pd.DataFrame, tmp_path: Path) -> None:
    shops.to_csv(tmp_path / "shops.csv", index=False)
    data = femts.load_dataset(tmp_path / "shops.csv", panel=True, val_rows=STEPS, test_rows=STEPS)
    made = femts.train(data, "seasonal_naive", STEPS, device="cpu", refit=False, out=tmp_path / "run")
    values = shops["y"].to_numpy().reshape(3, -1)
    actual, error = values[:, -STEPS:], values[:, -STEPS - 12 : -12] - values[:, -STEPS:]
    scores = made.evaluate()
    assert scores["wape"] == pytest.approx(np.abs(error).sum() / actual.sum(), rel=1e-5)
    assert scores["bias"] == pytest.approx(error.sum() / actual.sum(), rel=1e-4)
    assert made.metrics["test"] == scores and made.evaluate(pred_len=[STEPS]) == {STEPS: scores}
    assert made.scores()[["wape", "bias"]].iloc[0].to_dict() == pytest.approx(
        {name: scores[name] for name in ("wape", "bias")}
    )
    each = made.scores(by="series").set_index("series")
    for number, name in enumerate(("large", "small")):
        assert each.loc[name, "wape"] == pytest.approx(np.abs(error[number]).sum() / actual[number].sum(), rel=1e-5)
        assert each.loc[name, "bias"] == pytest.approx(error[number].sum() / actual[number].sum(), rel=1e-4)
    assert np.isnan(each.loc["closed", "wape"]) and np.isnan(each.loc["closed", "bias"])
    assert each.loc["closed", "mae"] > 0
    page = femts.report(tmp_path / "run", tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<dt>WAPE</dt><dd>{100 * scores['wape']:.1f} %" in page
    assert f"{100 * each.loc['small', 'wape']:.1f} %" in page and "no WAPE and no bias" in page
