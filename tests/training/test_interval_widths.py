"""Interval widths by series, level and hour."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts

ROWS, FRESH, P = 900, 240, 24


@pytest.fixture(autouse=True)
def ignore_warnings() -> Iterator[None]:
    with warnings.catch_warnings(action="ignore"):  # fresh rows are far from those learned from
        yield


def table(y: np.ndarray, name: str | None = None) -> pd.DataFrame:
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=len(y), freq="h"), "y": y})
    return frame if name is None else frame.assign(unique_id=name)[["unique_id", "date", "y"]]


def noisy(kind: str, seed: int = 0) -> np.ndarray:
    """A daily wave with unit noise and a trend, jump or growth."""
    rng, t = np.random.default_rng(seed), np.arange(ROWS + FRESH)
    wave, noise = 3 * np.sin(2 * np.pi * t / 24), rng.normal(size=ROWS + FRESH)
    return {
        "trend": wave + noise + 0.05 * t,
        "jump": wave + noise + 100 * (t > 800),
        "growth": (wave + noise + 20) * np.exp(t / 300),
    }[kind]


def widths(forecast: pd.DataFrame) -> np.ndarray:
    return np.asarray(forecast["y-hi-80"] - forecast["y-lo-80"]) / 2


def coverage(forecaster: Any, frame: pd.DataFrame) -> float:
    """Coverage of new rows, from every P-th on."""
    inside = []
    for row in range(ROWS, ROWS + FRESH - P + 1, P):
        forecast, actual = forecaster.predict(frame.iloc[:row], level=[80]), frame["y"].to_numpy()[row : row + P]
        inside.append((forecast["y-lo-80"] <= actual) & (actual <= forecast["y-hi-80"]))
    return float(np.mean(inside))


@pytest.mark.parametrize(
    ("kind", "model", "settings"),
    [
        ("trend", "ridge", {}),
        ("trend", "dlinear", {"training.loss": "pinball"}),
        ("growth", "seasonal_naive", {}),
    ],
)
def test_refitted_intervals_cover_new_rows(model: str, settings: dict[str, Any], kind: str, tmp_path: Path) -> None:
    frame = table(noisy(kind))
    run = femts.train(frame.iloc[:ROWS], model, P, seq_len=96, refit=True, settings=settings, max_steps=200)
    covered = coverage(run, frame)
    assert 0.68 < covered < 0.92
    run = run.calibrate(dataset=frame.iloc[:ROWS])
    assert coverage(run, frame) == pytest.approx(covered)
    run.save(tmp_path / "run")
    assert coverage(femts.load(tmp_path / "run"), frame) == pytest.approx(covered)


def test_level_shift_does_not_widen_intervals() -> None:
    frame = table(noisy("jump"))
    run = femts.train(frame.iloc[:ROWS], "naive", P, refit=True)
    assert widths(run.predict(frame.iloc[:ROWS], level=[80])).mean() < 8


def test_panel_intervals_scale_with_each_series(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    wave = 3 * np.sin(2 * np.pi * np.arange(ROWS) / 24)
    noise = {f"s{k}": size for k, size in enumerate(np.geomspace(0.1, 2, 8))}
    frame = pd.concat([table(wave + size * rng.normal(size=ROWS), name) for name, size in noise.items()])
    run = femts.train(frame, "seasonal_naive", P)
    covered = run.scores(by="series", level=[80], dataset=frame).set_index("series")["coverage-80"]
    assert covered.between(0.65, 0.92).all()
    new = table(wave + 0.5 * rng.normal(size=ROWS), "new")
    run.save(tmp_path / "run")
    forecast = femts.load(tmp_path / "run").predict(pd.concat([frame, new]), level=[80])
    by_series = forecast.assign(width=widths(forecast)).groupby("unique_id")["width"].mean()
    assert 10 < by_series["s7"] / by_series["s0"] < 40
    assert by_series["s0"] < by_series["new"] < by_series["s7"], "a new one has the typical width"


def test_interval_widths_shrink_toward_other_series() -> None:
    rng = np.random.default_rng(2)
    frame = pd.concat([table(rng.normal(size=100), f"s{k}") for k in range(30)])
    run = femts.train(frame, "naive", 8)
    forecast = run.predict(frame, level=[80])
    width = forecast.assign(width=widths(forecast)).groupby("unique_id")["width"].mean()
    assert width.std() / width.mean() < 0.25


def test_interval_width_varies_by_hour() -> None:
    rng, t = np.random.default_rng(3), np.arange(ROWS)
    day = np.where(t % 24 < 12, 0.2, 2.0)
    frame = table(100 + day * rng.normal(size=ROWS))
    run = femts.train(frame, "ridge", P, seq_len=48)
    night, noon = (widths(run.predict(frame.iloc[:row], level=[80])) for row in (840, 852))
    assert night[12:].mean() > 3 * night[:12].mean(), "from midnight on"
    np.testing.assert_allclose(noon[:12].mean(), night[12:].mean(), rtol=0.3)
    assert noon[12:].mean() < noon[:12].mean() / 3


def test_target_missing_in_validation_has_no_interval() -> None:
    rng = np.random.default_rng(4)
    frame = table(rng.normal(size=600)).assign(other=rng.normal(size=600))
    frame.loc[420:479, "other"] = np.nan  # the validation rows
    run = femts.train(frame, "naive", 12)
    forecast = run.predict(frame, level=[80])
    assert np.isfinite(forecast[["y", "y-lo-80", "y-hi-80", "other"]].to_numpy()).all()
    assert forecast[["other-lo-80", "other-hi-80"]].isna().all(axis=None)
    assert run.metrics["intervals"]["missing"] == ["other"]
    own = run.scores(by="channel", level=[80], dataset=frame).set_index(["channel", "units"])["coverage-80"]
    assert run.metrics["intervals"]["test"]["80"]["coverage"] == pytest.approx(own["y", "scaled"])


def test_exact_forecast_has_an_interval_without_width() -> None:
    frame = table(np.arange(ROWS) % 24.0)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        run = femts.train(frame, "seasonal_naive", P)
        forecast = run.predict(frame, level=[80])
    np.testing.assert_allclose(forecast["y"], np.arange(ROWS, ROWS + P) % 24, atol=1e-6)
    np.testing.assert_allclose(widths(forecast), 0, atol=1e-6)
