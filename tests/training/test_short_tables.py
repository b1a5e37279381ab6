"""Tables that are too short for whole horizons in validation and test."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster
from femts.training.select import candidates as listed

HORIZON = 12


def months(rows: int, columns: int = 2, freq: str = "MS", season: int = 12) -> pd.DataFrame:
    """Columns with a season and a little noise."""
    rng, steps = np.random.default_rng(0), np.arange(rows)
    wave = 20 * np.sin(2 * np.pi * steps / season)
    values = {f"y{k}": 100.0 + 10 * k + wave + rng.normal(size=rows) for k in range(columns)}
    return pd.DataFrame({"date": pd.date_range("2022-01-01", periods=rows, freq=freq), **values})


@pytest.fixture(scope="module")
def board() -> Dataset:
    return load_dataset(months(24))


@pytest.fixture(scope="module")
def run(board: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    folder = tmp_path_factory.mktemp("short") / "run"
    made = femts.train(board, "seasonal_naive", HORIZON, out=folder, refit=True)
    again = femts.load(folder)
    assert made.scored is not None and again.scored is not None
    return replace(again, _dataset=made._dataset, scored=replace(again.scored, _dataset=made.scored._dataset))


def test_two_years_are_forecast_a_year_ahead(run: Forecaster, board: Dataset) -> None:
    assert (run.config.seq_len, run.config.model_config.season) == (12, 12)  # type: ignore[attr-defined]
    forecast = run.predict(board, level=[80])
    last = board.frame().tail(12)
    np.testing.assert_allclose(forecast["y0"], last["y0"], rtol=1e-5)
    assert (forecast["y0-lo-80"] < forecast["y0"]).all() and (forecast["y0"] < forecast["y0-hi-80"]).all()


def test_short_tests_score_the_first_steps(run: Forecaster, board: Dataset) -> None:
    scores = run.evaluate("test")
    assert scores["windows"] == 5 and scores["mae"] == run.metrics["test"]["mae"]
    values = board.frame()["y0"].to_numpy()
    errors = np.abs(values[-5:] - values[-17:-12])
    by_step = run.scores("test", by=["step", "channel"]).query("units == 'raw' and channel == 'y0'")["mae"].to_numpy()
    expected = [errors[step:].mean() for step in range(5)]  # windows that begin later have fewer steps
    np.testing.assert_allclose(by_step[:5], expected, rtol=1e-5)
    assert np.isnan(by_step[5:]).all()


@pytest.mark.parametrize(("refit", "step"), [(True, 10), (False, 5)])
def test_notes_say_what_scores_cover(board: Dataset, caplog: pytest.LogCaptureFixture, refit: bool, step: int) -> None:
    with caplog.at_level(logging.INFO, "femts"):
        femts.train(board, "naive", HORIZON, refit=refit)
    said = [line for line in caplog.messages if "too few to test" in line]
    assert said == [
        "24 rows are too few to test whole forecasts of 12 steps, so scores are of their first 5 steps at most, and "
        f"calibrated intervals after step {step} are extrapolated"
    ]


def test_intervals_of_longer_horizons_widen_with_the_square_root(run: Forecaster, board: Dataset) -> None:
    made = run.calibrate(4 * HORIZON)
    assert made.intervals is not None
    widths = made.intervals.half_width(80, 4 * HORIZON)
    assert (np.diff(widths, axis=0) >= 0).all() and (widths > 0).all()
    np.testing.assert_allclose(
        widths[10:] / widths[9], np.sqrt(np.arange(11, 49) / 10)[:, None].repeat(2, 1), rtol=1e-5
    )
    assert made.predict(board, 4 * HORIZON, level=[80]).notna().all(axis=None)


def test_intervals_beyond_the_validation_split_of_a_longer_table() -> None:
    data = load_dataset(months(60, 1))
    made = femts.train(data, "seasonal_naive", HORIZON, refit=False)
    intervals = made.calibrate(30).intervals
    assert intervals is not None
    widths = intervals.half_width(95, 30)[:, 0]
    np.testing.assert_allclose(widths[12:] / widths[11], np.sqrt(np.arange(13, 31) / 12), rtol=1e-5)


def test_longer_scores_are_refused_with_a_remedy_that_works(run: Forecaster) -> None:
    with pytest.raises(UsageError, match=r"24 steps does not fit the 5 test rows of 'frame'; .* fits is 5\.$"):
        run.evaluate("test", 24)
    assert run.evaluate("test", 5)["windows"] == 1


def test_backtest_report_and_audit_of_short_runs(run: Forecaster, board: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="refit before each forecast with refit=True"):
        femts.backtest(run, board)
    with pytest.raises(UsageError, match=r"require 25, 13 of them .*; use a horizon of at most 11, or provide more"):
        femts.backtest(run, board, refit=True)
    assert femts.backtest(run, board, refit=True, horizon=11)["forecast"].notna().all()
    femts.report(run, tmp_path / "report.html")
    assert all(check.passed is not False for check in femts.audit(run).checks)


@pytest.mark.parametrize(
    ("rows", "freq", "season", "steps"),
    [(8, "MS", 12, 12), (13, "MS", 12, 12), (36, "MS", 12, 12), (30, "D", 7, 14), (12, "QS", 4, 4), (5, "YS", 3, 3)],
)
def test_any_short_table_gets_a_forecast_with_intervals(rows: int, freq: str, season: int, steps: int) -> None:
    data = load_dataset(months(rows, 1, freq, season))
    made = femts.train(data, "seasonal_naive", steps, refit=True)
    assert (made.config.seq_len % data.season == 0) == (rows > data.season)
    forecast = made.predict(data, level=[80, 95])
    assert len(forecast) == steps and forecast.notna().all(axis=None)
    assert 1 <= made.evaluate("test")["windows"] < steps


def test_least_number_of_rows_is_the_one_that_is_named() -> None:
    with pytest.raises(UsageError, match=r"has 3 rows, but .* provide at least 4 rows"):
        femts.train(months(3), "naive", 2)
    assert len(femts.train(months(4), "naive", 2, refit=True).predict(months(4))) == 2


def test_panel_of_short_series() -> None:
    parts = [months(rows, 1).assign(shop=f"shop {rows}") for rows in (24, 24, 20, 3)]
    data = load_dataset(pd.concat(parts, ignore_index=True), target="y0", panel=True, columns={"series": "shop"})
    made = femts.train(data, "seasonal_naive", HORIZON, refit=True)
    assert made.predict(data, level=[80]).groupby("shop").size().eq(HORIZON).all()
    assert made.evaluate("test")["windows"] == made.metrics["test"]["windows"] > 0


def test_gaps_in_a_short_table() -> None:
    table = months(24, 1)
    table.loc[[3, 9, 15, 20, 23], "y0"] = np.nan
    forecast = femts.train(table, "seasonal_naive", HORIZON, refit=True).predict(table, level=[80])
    assert forecast.notna().all(axis=None)


def test_auto_on_two_years(monkeypatch: pytest.MonkeyPatch, board: Dataset) -> None:
    chosen = listed.shortlist

    def fast(*arguments: Any) -> tuple[listed.Candidate, ...]:
        return tuple(each for each in chosen(*arguments) if each.model in ("seasonal_naive", "naive", "ridge"))

    monkeypatch.setattr("femts.training.select.run.shortlist", fast)
    made = femts.train(board, pred_len=HORIZON, refit=True)
    auto = made.metrics["auto"]
    assert (auto["origins"], auto["windows"]) == (1, 5) and "seasonal_naive" in auto["taken"]
    forecast, last = made.predict(board), board.frame().tail(12)
    assert np.corrcoef(forecast["y0"], last["y0"])[0, 1] > 0.9


@pytest.mark.parametrize("rows", [13, 14, 23])
def test_auto_compares_few_models_on_few_rows(rows: int) -> None:
    table = months(rows, 1)
    made = femts.train(table, pred_len=HORIZON, refit=True, device="cpu")
    tried = {each["model"] for each in made.metrics["auto"]["tried"] if "error" in each}
    assert tried == {"seasonal_naive", "fem_zero"}
    forecast = made.predict(table, level=[80])
    assert np.corrcoef(forecast["y0"], table["y0"].tail(HORIZON))[0, 1] > 0.9
    assert (forecast["y0-lo-80"] < forecast["y0-hi-80"]).all()


@pytest.mark.parametrize(("rows", "test"), [(13, 1), (14, 1), (15, 1), (18, 2), (23, 5)])
def test_a_single_season_is_repeated(rows: int, test: int) -> None:
    table = months(rows, 1)
    made = femts.train(table, "seasonal_naive", HORIZON, refit=True, device="cpu")
    forecast = made.predict(table, level=[80])
    np.testing.assert_allclose(forecast["y0"], table["y0"].tail(HORIZON), rtol=1e-5)
    assert forecast.notna().all(axis=None) and made.metrics["test"]["windows"] == test
    assert femts.train(table, "ridge", HORIZON, refit=True, device="cpu").config.seq_len == (3 if rows == 13 else 4)
