"""Scores and calibration of bounded forecasts."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data.domain import Domain
from femts.data.limits import Limits
from femts.data.power import PowerTransform
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.errors import AgeWarning
from femts.forecaster.forecaster import Forecaster
from femts.training.select.trial import CandidateResult

STEPS, LEVELS, NEAR = 6, (50.0, 80.0), 1e-6  # what scaled values in float32 do not tell from an end
QUICK: dict[str, Any] = {"pred_len": STEPS, "seq_len": 24, "device": "cpu", "max_steps": 30}
LOUD: dict[str, Any] = {"training.loss": "pinball"}


def solar_power(rows: int = 300, height: float = 10.0) -> pd.DataFrame:
    """Hourly solar power with zeros at night."""
    wave = height * np.sin(np.arange(rows) * np.pi / 12) + np.random.default_rng(0).normal(0, height / 10, rows)
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=rows, freq="h"), "y": np.maximum(0, wave)})


def two_plants() -> pd.DataFrame:
    """Two series whose sizes differ by a factor of 100."""
    parts = [solar_power(300, height).assign(unique_id=name) for name, height in (("a", 10.0), ("b", 1000.0))]
    return pd.concat(parts).rename(columns={"date": "ds"})


def by_predict(run: Forecaster, table: pd.DataFrame, first: int, windows: int) -> pd.DataFrame:
    """Forecasts of `predict` for each window from row `first` on, with the `truth`."""
    series = table["unique_id"] if "unique_id" in table else pd.Series("", index=table.index)
    place, said = table.groupby(series.to_numpy()).cumcount().to_numpy() - first, list[pd.DataFrame]()
    with warnings.catch_warnings(action="ignore", category=AgeWarning):
        for i in range(windows):
            truth = table.loc[(place >= i) & (place < i + STEPS), "y"].to_numpy()
            said.append(run.predict(table[place < i], level=LEVELS).assign(truth=truth))
    return pd.concat(said, ignore_index=True)


@pytest.mark.parametrize(
    ("model", "wish", "settings"),
    [
        ("ridge", {"min": 0}, {}),
        ("ridge", {"max": 1}, {}),
        ("ridge", {"min": 0, "transform": "log1p"}, {}),
        ("ridge", {"min": 0, "max": 9, "calendar": True}, {}),
        ("ridge", {"min": 1.5, "transform": "boxcox"}, {}),
        ("dlinear", {"min": 0, "max": 3}, LOUD),
    ],
)
def test_bounded_scores_match_predict(model: str, wish: dict[str, Any], settings: dict[str, Any]) -> None:
    table = solar_power().assign(y=lambda f: f["y"] + (wish.get("transform") == "boxcox"))
    data = femts.load_dataset(table, **wish)
    run = femts.train(data, model, **QUICK, settings=settings)
    said = by_predict(run, table, data.split.test[0, 0], int(run.metrics["test"]["windows"]))
    truth, domain = said["truth"].to_numpy(), run.preprocess.domain
    assert {domain.low, domain.high} & set(said["y"]), "some forecasts end at the bounds"
    scaled = run.preprocess.rescale(np.stack([said["y"], truth])[..., None])
    error = scaled[0] - scaled[1]
    assert run.metrics["test"]["mse"] == pytest.approx((error**2).mean(), rel=1e-4)
    assert run.metrics["test"]["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    scores = run.scores(dataset=data, level=LEVELS).set_index("units")
    raw = scores.loc["raw"]
    assert raw["mse"] == pytest.approx(((said["y"] - truth) ** 2).mean(), rel=1e-4)
    cells = run.coverage(level=LEVELS, dataset=data).groupby("level")[["coverage", "width"]].mean()
    for level in LEVELS:
        low, high = said[f"y-lo-{level:g}"].to_numpy(), said[f"y-hi-{level:g}"].to_numpy()
        assert ((low <= said["y"]) & (said["y"] <= high)).all(), "exactly, so the bound is no less"
        covered = float(((low - NEAR <= truth) & (truth <= high + NEAR)).mean())
        assert cells.loc[level, "coverage"] == pytest.approx(covered, abs=2 / len(truth))
        assert raw[f"coverage-{level:g}"] == pytest.approx(covered, abs=2 / len(truth))
        assert cells.loc[level, "width"] == pytest.approx((high - low).mean(), rel=1e-4), "raw, as it says"
        ends = run.preprocess.rescale(np.stack([low, high])[..., None])
        if np.isfinite(ends).all():
            tails = (0.5 - level / 200, 0.5 + level / 200)
            losses = [
                np.maximum(q * (scaled[1] - e), (q - 1) * (scaled[1] - e)) for q, e in zip(tails, ends, strict=True)
            ]
            assert scores.loc["scaled", f"width-{level:g}"] == pytest.approx((ends[1] - ends[0]).mean(), rel=1e-4)
            assert scores.loc["scaled", f"pinball-{level:g}"] == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.parametrize("calendar", [False, True])
def test_bounded_panel_scores_match_predict(calendar: bool) -> None:
    table = two_plants()
    data = femts.load_dataset(table, min=0, calendar=calendar, panel=True)
    run = femts.train(data, "ridge", **QUICK)
    windows = int(run.metrics["test"]["windows"]) // 2
    said = by_predict(run, table, data["a"].for_horizon(STEPS).split.test[0, 0], windows)
    scale = said["unique_id"].map(dict(zip(run.series, run.preprocess.scaler.scale[:, 0], strict=True)))
    error, low, high = (said["y"] - said["truth"]) / scale, said["y-lo-80"], said["y-hi-80"]
    assert (low <= said["y"]).all()
    assert run.metrics["test"]["mse"] == pytest.approx((error**2).mean(), rel=1e-4)
    assert run.metrics["test"]["mae"] == pytest.approx(error.abs().mean(), rel=1e-4)
    inside = (low - NEAR * scale <= said["truth"]) & (said["truth"] <= high + NEAR * scale)
    few, by_series = 2 / (windows * STEPS), run.scores(by="series", level=[80], dataset=data).set_index("series")
    np.testing.assert_allclose(by_series["coverage-80"], inside.groupby(said["unique_id"]).mean(), atol=few)
    np.testing.assert_allclose(by_series["width-80"], (high - low).groupby(said["unique_id"]).mean(), rtol=1e-4)
    assert run.metrics["intervals"]["test"]["80"]["coverage"] == pytest.approx(inside.mean(), abs=few)
    assert run.coverage(level=[80], dataset=data)["coverage"].mean() == pytest.approx(inside.mean(), abs=few)


def test_validation_and_calibration_use_bounded_forecasts() -> None:
    table = solar_power(900)
    data = femts.load_dataset(table, max=1)
    run = femts.train(data, "ridge", **QUICK)
    said = by_predict(run, table, data.split.val[0, 0], int(run.metrics["val"]["windows"]))
    error = (said["y"] - said["truth"]).abs() / run.preprocess.scaler.scale.item()
    assert run.metrics["val"]["mae"] == pytest.approx(error.mean(), rel=1e-4)
    inside = said["truth"].between(said["y-lo-80"], said["y-hi-80"])
    assert inside[said["truth"] <= 1].mean() >= 0.79, "the interval ends at the bound"


def test_bounded_run_passes_the_audit() -> None:
    data = femts.load_dataset(solar_power(), min=0, max=5)
    assert not femts.audit(femts.train(data, "ridge", **QUICK), dataset=data).failed


def test_bounds_apply_to_the_mean_not_its_members() -> None:
    limits = (Limits(torch.zeros(1, 1, 1), torch.full((1, 1, 1), torch.inf)),)
    truth = np.zeros((2, 3, 1))
    low, high = (CandidateResult("x", forecasts=(truth + by,), targets=(truth,), limits=limits) for by in (-3.0, 2.0))
    assert (low.error, high.error) == (0.0, 2.0)
    assert low.error_of([truth - 0.5]) == 0.0


def test_limits_follow_domain_and_transform() -> None:
    plain = Preprocess(("y",), ("",), Scaler.even(1))
    log = replace(plain, power=PowerTransform(1.0, np.zeros((1, 1))))
    for each in (plain, log, replace(log, domain=Domain(high=-2.0))):  # the last is below all that the transform takes
        assert Limits.of(each, 1) is None
    power = PowerTransform(0.0, np.array([[0.5, -0.5]]))
    low, high = Preprocess(("a", "b"), ("",), Scaler.even(2), power=power).limits(2)
    assert (low.tolist(), high.tolist()) == ([[-2.0, -np.inf]], [[np.inf, 2.0]])


def test_clip_keeps_non_finite_values() -> None:
    limits = Limits(torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    clipped = limits.clip(torch.tensor([[[-1.0], [0.5], [torch.inf], [torch.nan]]])).flatten().tolist()
    assert clipped[:3] == [0.0, 0.5, np.inf] and np.isnan(clipped[3])
