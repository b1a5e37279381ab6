"""Scores, calibration and choice of a forecaster with a domain: of what `predict` returns."""

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
from femts.data.loading import load_dataset
from femts.data.power import PowerTransform
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.errors import AgeWarning
from femts.forecaster.forecaster import Forecaster
from femts.training.choice.rule import error_of
from femts.training.choice.trial import Tried

STEPS, LEVELS = 6, (50.0, 80.0)
QUICK: dict[str, Any] = {"pred_len": STEPS, "seq_len": 24, "device": "cpu", "max_steps": 30}
LOUD: dict[str, Any] = {"training.loss": "pinball"}


def sun(rows: int = 500, height: float = 10.0) -> pd.DataFrame:
    """Power of the sun, hourly: zeros at night, and forecasts below them for a model that does not know."""
    wave = height * np.sin(np.arange(rows) * np.pi / 12) + np.random.default_rng(0).normal(0, height / 10, rows)
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=rows, freq="h"), "y": np.maximum(0, wave)})


def by_predict(run: Forecaster, table: pd.DataFrame, first: int, windows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """What `predict` says of all windows from row `first` on, and what happened."""
    with warnings.catch_warnings(action="ignore", category=AgeWarning):
        said = [run.predict(table.iloc[: first + i], level=LEVELS) for i in range(windows)]
    truth = np.concatenate([table["y"].to_numpy()[first + i : first + i + STEPS] for i in range(windows)])
    return pd.concat(said, ignore_index=True), truth


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
def test_scores_and_coverage_are_of_what_predict_returns(
    model: str, wish: dict[str, Any], settings: dict[str, Any]
) -> None:
    table = sun().assign(y=lambda f: f["y"] + (wish.get("transform") == "boxcox"))
    data = femts.load_dataset(table, **wish)
    run = femts.train(data, model, **QUICK, settings=settings)
    said, truth = by_predict(run, table, data.split.test[0, 0], int(run.metrics["test"]["windows"]))
    domain = run.preprocess.domain
    assert {domain.low, domain.high} & set(said["y"]), "some forecasts end at the bounds"
    assert all((said[f"y-lo-{k:g}"] <= said["y"]).all() for k in LEVELS), "exactly, so the bound is no less"
    assert all((said["y"] <= said[f"y-hi-{k:g}"]).all() for k in LEVELS)
    scaled = run.preprocess.rescale(np.stack([said["y"], truth])[..., None])
    error = scaled[0] - scaled[1]
    assert run.metrics["test"]["mse"] == pytest.approx((error**2).mean(), rel=1e-4)
    assert run.metrics["test"]["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    raw = run.scores(dataset=data, level=LEVELS).set_index("units").loc["raw"]
    assert raw["mse"] == pytest.approx(((said["y"] - truth) ** 2).mean(), rel=1e-4)
    cells = run.coverage(level=LEVELS, dataset=data).groupby("level")[["coverage", "width"]].mean()
    for level in LEVELS:
        low, high = said[f"y-lo-{level:g}"].to_numpy(), said[f"y-hi-{level:g}"].to_numpy()
        near = 1e-6  # what scaled values in float32 do not tell from an end
        covered = float(((low - near <= truth) & (truth <= high + near)).mean())
        assert cells.loc[level, "coverage"] == pytest.approx(covered, abs=2 / len(truth))
        assert raw[f"coverage-{level:g}"] == pytest.approx(covered, abs=2 / len(truth))
        assert cells.loc[level, "width"] == pytest.approx((high - low).mean(), rel=1e-4), "raw, as it says"
        ends = run.preprocess.rescale(np.stack([low, high])[..., None])
        if np.isfinite(ends).all():
            scores = run.scores(dataset=data, level=LEVELS).set_index("units").loc["scaled"]
            assert scores[f"width-{level:g}"] == pytest.approx((ends[1] - ends[0]).mean(), rel=1e-4)
            assert scores[f"pinball-{level:g}"] == pytest.approx(pinball(ends, scaled[1], level), rel=1e-4)


def pinball(ends: np.ndarray, truth: np.ndarray, level: float) -> float:
    """Mean pinball loss of both ends of an interval."""
    tail = (1 - level / 100) / 2
    losses = [
        np.maximum(q * (truth - end), (q - 1) * (truth - end)) for q, end in zip((tail, 1 - tail), ends, strict=True)
    ]
    return float(np.mean(losses))


def test_validation_and_calibration_are_of_bounded_forecasts() -> None:
    table = sun(1500)
    data = femts.load_dataset(table, max=1)
    run = femts.train(data, "ridge", **QUICK)
    windows = int(run.metrics["val"]["windows"])
    said, truth = by_predict(run, table, data.split.val[0, 0], windows)
    scale = run.preprocess.scaler.scale[0]
    error = np.abs(said["y"].to_numpy() - truth) / scale
    assert run.metrics["val"]["mae"] == pytest.approx(error.mean(), rel=1e-4)
    inside = (said["y-lo-80"] <= truth) & (truth <= said["y-hi-80"])
    reached = truth <= 1  # the interval ends at the bound
    assert inside[reached].mean() >= 0.79


def test_a_run_with_bounds_passes_its_audit() -> None:
    data = femts.load_dataset(sun(), min=0, max=5)
    assert not femts.audit(femts.train(data, "ridge", **QUICK), dataset=data).failed


def panel() -> pd.DataFrame:
    """Two suns, one a hundred times as strong."""
    series = [("a", 300, 10.0), ("b", 300, 1000.0)]
    return pd.concat(
        [sun(rows, height).rename(columns={"date": "ds"}).assign(unique_id=name) for name, rows, height in series]
    )


@pytest.mark.parametrize("calendar", [False, True])
def test_a_panel_is_scored_as_it_is_forecast(calendar: bool) -> None:
    table = panel()
    data = load_dataset(table, min=0, calendar=calendar, panel=True)
    run = femts.train(data, "ridge", **QUICK)
    windows = int(run.metrics["test"]["windows"]) // 2
    rows, errors, insides, ends = data["a"].for_horizon(STEPS).split.test[0, 0], list[Any](), list[Any](), list[Any]()
    for i in range(windows):
        with warnings.catch_warnings(action="ignore", category=AgeWarning):
            said = run.predict(table.groupby("unique_id").head(rows + i), level=[80])
        truth = table.groupby("unique_id").apply(lambda f, i=i: f["y"].iloc[rows + i : rows + i + STEPS]).to_numpy()
        said = said.assign(truth=truth.ravel())
        scale = said["unique_id"].map(dict(zip(run.series, run.preprocess.scaler.scale[:, 0], strict=True)))
        errors.append((said["y"] - said["truth"]) / scale)
        near = 1e-6 * scale
        inside = (said["y-lo-80"] - near <= said["truth"]) & (said["truth"] <= said["y-hi-80"] + near)
        insides.append(inside.groupby(said["unique_id"]).mean())
        ends.append((said["y-hi-80"] - said["y-lo-80"]).groupby(said["unique_id"]).mean())
        assert (said["y-lo-80"] <= said["y"]).all()
    error = np.concatenate(errors)
    assert run.metrics["test"]["mse"] == pytest.approx((error**2).mean(), rel=1e-4)
    assert run.metrics["test"]["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    covered, width = pd.concat(insides, axis=1).mean(axis=1), pd.concat(ends, axis=1).mean(axis=1)
    few = 2 / (windows * STEPS)
    assert run.metrics["intervals"]["test"]["80"]["coverage"] == pytest.approx(covered.mean(), abs=few)
    by_series = run.scores(by="series", level=[80], dataset=data).set_index("series")
    np.testing.assert_allclose(by_series["coverage-80"], covered, atol=few)
    np.testing.assert_allclose(by_series["width-80"], width, rtol=1e-4)
    assert run.coverage(level=[80], dataset=data)["coverage"].mean() == pytest.approx(covered.mean(), abs=few)


def test_a_mean_that_is_chosen_ends_at_the_bounds_and_not_its_members() -> None:
    limits = (Limits(torch.zeros(1, 1, 1), torch.full((1, 1, 1), torch.inf)),)
    truth = np.zeros((2, 3, 1))
    low, high = (Tried("x", forecasts=(truth + by,), targets=(truth,), limits=limits) for by in (-3.0, 2.0))
    assert (low.error, high.error, error_of([low, high])) == (0.0, 2.0, 0.0)


def test_nothing_limits_values_without_a_domain() -> None:
    plain = Preprocess(("y",), ("",), Scaler.even(1))
    log = replace(plain, power=PowerTransform(1.0, np.zeros((1, 1))))
    assert Limits.of(plain, 1) is None
    assert Limits.of(log, 1) is None
    assert Limits.of(replace(log, domain=Domain(high=-2.0)), 1) is None, "below all that the transform takes"
    low, high = log.limits(1)
    assert (low.item(), high.item()) == (-np.inf, np.inf)


def test_a_transform_that_ends_limits_by_itself() -> None:
    power = PowerTransform(0.0, np.array([[0.5, -0.5]]))
    low, high = Preprocess(("a", "b"), ("",), Scaler.even(2), power=power).limits(2)
    assert (low.tolist(), high.tolist()) == ([[-2.0, -np.inf]], [[np.inf, 2.0]])


def test_what_is_not_finite_is_not_hidden() -> None:
    limits = Limits(torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    clipped = limits.clip(torch.tensor([[[-1.0], [0.5], [torch.inf], [torch.nan]]])).flatten().tolist()
    assert clipped[:3] == [0.0, 0.5, np.inf] and np.isnan(clipped[3])
