"""Classical models, compared with statsforecast."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forks import Forked
from scipy.stats import norm

import femts
from femts.data.loading import load_dataset
from femts.data.roles import Roles
from femts.data.schema import Schema
from femts.errors import GapWarning, UsageError
from femts.models.classics import AutoARIMA
from femts.models.parts.classic_fit import Fit
from femts.models.registry import check_library
from femts.training.train import train

LIBRARY = {
    "auto_ets": "AutoETS",
    "auto_ces": "AutoCES",
    "auto_theta": "AutoTheta",
    "dotm": "DynamicOptimizedTheta",
    "mstl": "MSTL",
    "auto_arima": "AutoARIMA",
}
NAMES = (*LIBRARY, "croston_sba")
MEMBERS = ("auto_ets", "auto_ces", "auto_arima", "dotm")  # of stat_ensemble
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("statsforecast") is None, reason="needs statsforecast: pip install '.[stats]'"
)


def monthly(rows: int = 72, seed: int = 0) -> pd.DataFrame:
    """Seasonal growth, and intermittent demand."""
    rng, t = np.random.default_rng(seed), np.arange(rows)
    sales = np.exp(4 + 0.01 * t + 0.3 * np.sin(2 * np.pi * t / 12) + rng.normal(0, 0.05, rows))
    spare = (rng.random(rows) < 0.3) * rng.integers(1, 9, rows) * 1.0
    return pd.DataFrame({"date": pd.date_range("2015-01-01", periods=rows, freq="MS"), "sales": sales, "spare": spare})


def library(name: str, values: np.ndarray, steps: int) -> Any:
    """The library's own forecast."""
    from statsforecast import models

    if name == "croston_sba":
        return models.CrostonSBA().forecast(y=values, h=steps)
    return getattr(models, LIBRARY[name])(season_length=12).forecast(y=values, h=steps, level=[80])


def quick(name: str) -> dict[str, int]:
    return {} if name == "croston_sba" else {"model.windows": 1}


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_forecasts_match_statsforecast(name: str, tmp_path: Path) -> None:
    table = monthly(40 if name == "auto_arima" else 72)  # its search takes seconds on more
    forecaster = train(load_dataset(table, min="none"), name, 6, settings=quick(name), device="cpu")
    forecast = forecaster.predict(table, level=[80])
    for column in ("sales", "spare"):
        own = library(name, table[column].to_numpy(), 6)
        np.testing.assert_allclose(forecast[column], own["mean"], rtol=1e-9, atol=1e-9)
        if name != "croston_sba":
            for side in ("lo", "hi"):
                np.testing.assert_allclose(forecast[f"{column}-{side}-80"], own[f"{side}-80"], rtol=1e-6, atol=1e-6)
    assert (forecast["sales-lo-80"] <= forecast["sales"]).all()
    forecaster.save(tmp_path / "run")
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(table, level=[80]), forecast)
    long = forecaster.predict(table, 20)
    np.testing.assert_allclose(long["sales"], library(name, table["sales"].to_numpy(), 20)["mean"], rtol=1e-9)


@needs_library
def test_ensemble_is_the_median_of_its_members(tmp_path: Path) -> None:
    few = {name: {"model.windows": 1} for name in (*MEMBERS, "stat_ensemble")}
    table = monthly(40)
    each = {name: train(table, name, 6, settings=few[name], device="cpu") for name in few}
    ensemble = each.pop("stat_ensemble")
    for rows, level in ((40, [80, 85]), (33, [95])):
        made = ensemble.predict(table[:rows], level=level)
        members = [fc.predict(table[:rows], level=level).drop(columns="date") for fc in each.values()]
        if level == [95]:  # one of the levels that members have; others are interpolated between them
            np.testing.assert_allclose(made.drop(columns="date"), np.median(members, axis=0), rtol=1e-9)
        np.testing.assert_allclose(made["sales"], np.median([one["sales"] for one in members], axis=0), rtol=1e-9)
        assert (made["sales-lo-80" if rows == 40 else "sales-lo-95"] <= made["sales"]).all()
    ensemble.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(table, level=[80]), ensemble.predict(table, level=[80]))
    pd.testing.assert_frame_equal(loaded.predict(table, 9), ensemble.predict(table, 9))
    past = femts.backtest(loaded, table, n_windows=1)
    expected = [fc.predict(table[:34])["sales"] for fc in each.values()]
    np.testing.assert_allclose(past.loc[past["column"] == "sales", "forecast"], np.median(expected, axis=0), rtol=1e-9)
    assert femts.audit(ensemble, ensemble.training_data()).failed == ()
    assert np.isfinite(ensemble.evaluate()["mse"])  # type: ignore[call-overload]


@needs_library
def test_ensemble_of_chosen_members() -> None:
    table = monthly(30)[["date", "sales"]]
    few = {"model.windows": 1}
    made = [train(table, name, 3, settings=few, device="cpu").predict(table)["sales"] for name in ("auto_ets", "dotm")]
    both = train(table, "stat_ensemble", 3, settings={**few, "model.members": "auto_ets,dotm"}, device="cpu")
    np.testing.assert_allclose(both.predict(table)["sales"], np.mean(made, axis=0), rtol=1e-9)
    for members in ((), ("dotm", "dotm"), ("ridge",)):
        with pytest.raises(UsageError, match=r"model\.members"):
            train(table, "stat_ensemble", 3, settings={"model.members": members}, device="cpu")


@needs_library
def test_members_read_as_many_rows_in_an_ensemble_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AutoARIMA, "most_rows", 24)
    table = monthly(60)[["date", "sales"]]
    few: dict[str, Any] = {"model.windows": 1, "model.season": 1}
    both = train(table, "stat_ensemble", 3, settings={**few, "model.members": "auto_arima"}, device="cpu")
    made = [
        train(rows, "auto_arima", 3, settings=few, device="cpu").predict(rows)["sales"] for rows in (table, table[-24:])
    ]
    np.testing.assert_allclose(made[0], made[1], rtol=1e-9)
    np.testing.assert_allclose(both.predict(table)["sales"], made[0], rtol=1e-9)


@needs_library
def test_mstl_uses_several_seasons() -> None:
    from statsforecast import models

    rng, t = np.random.default_rng(0), np.arange(24 * 7 * 3)
    load = 50 + 9 * np.sin(np.pi * t / 12) + 20 * (t // 24 % 7 > 4) + rng.normal(0, 1, len(t))
    table = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=len(t), freq="h"), "load": load})
    forecaster = train(table, "mstl", 24, settings={"model.windows": 1}, device="cpu")
    for rows, seasons in ((len(t), [24, 168]), (300, [24])):
        own = models.MSTL(season_length=seasons).forecast(y=load[:rows], h=24)["mean"]
        np.testing.assert_allclose(forecaster.predict(table[:rows])["load"], own, rtol=1e-6)


@needs_library
def test_long_season_is_removed_by_loess() -> None:
    """A season of more than 24 steps is removed before ARIMA, and ignored if the look-back is shorter."""
    from statsforecast import models

    rng, t = np.random.default_rng(0), np.arange(160)
    sales = 50 + 0.1 * t + 9 * np.sin(2 * np.pi * t / 52) + rng.normal(0, 1, len(t))
    table = pd.DataFrame({"date": pd.date_range("2021-01-03", periods=len(t), freq="W"), "sales": sales})
    arima = {rows: models.AutoARIMA(approximation=True) for rows in (160, 51)}  # as for any long season
    own: dict[str, dict[int, Any]] = {
        "mstl": {160: models.MSTL(season_length=52), 51: models.AutoETS(model="ZZN")},
        "auto_arima": {160: models.MSTL(season_length=52, trend_forecaster=arima[160]), 51: arima[51]},
    }
    for name, by_rows in own.items():
        forecaster = train(table, name, 13, settings={"model.season": 52, "model.windows": 1}, device="cpu")
        for rows, model in by_rows.items():
            expected = model.forecast(y=sales[:rows], h=13, level=[80])
            forecast = forecaster.predict(table[:rows], level=[80])
            np.testing.assert_allclose(forecast["sales"], expected["mean"], rtol=1e-6)
            np.testing.assert_allclose(forecast["sales-hi-80"], expected["hi-80"], rtol=1e-6)


@needs_library
@pytest.mark.parametrize("name", ["auto_theta", "croston_sba"])
def test_look_back_is_the_whole_history(name: str) -> None:
    table = monthly()
    forecaster = train(table, name, 6, settings=quick(name), device="cpu")
    assert forecaster.config.seq_len == len(table)
    for rows in (40, 66):
        own = library(name, table["sales"].to_numpy()[:rows], 6)["mean"]
        np.testing.assert_allclose(forecaster.predict(table[:rows])["sales"], own, rtol=1e-9)


@needs_library
def test_audit_backtest_and_scores() -> None:
    table = monthly()
    forecaster = train(table, "auto_theta", 6, device="cpu")
    data = forecaster.training_data()
    assert femts.audit(forecaster, data).failed == ()
    past = femts.backtest(forecaster, table, n_windows=2, step_size=6)
    own = library("auto_theta", table["sales"].to_numpy()[:66], 6)["mean"]
    last = past[(past["column"] == "sales") & (past["cutoff"] == past["cutoff"].max())]
    np.testing.assert_allclose(last["forecast"], own, rtol=1e-9)
    scores = forecaster.scores(level=[80])
    assert np.isfinite(scores[["mse", "mase", "coverage-80"]]).all(axis=None)


@needs_library
@pytest.mark.parametrize("name", ["mstl", "croston_sba"])
def test_panel_series_are_fitted_separately(name: str, tmp_path: Path) -> None:
    tables = {"a": monthly(72), "b": monthly(50, seed=1), "c": monthly(10, seed=2)}
    rows = [each.assign(unique_id=key)[["unique_id", "date", "sales"]] for key, each in tables.items()]
    panel = pd.concat(rows).rename(columns={"date": "ds", "sales": "y"})
    file = tmp_path / "panel.csv"
    panel.to_csv(file, index=False)
    forecaster = train(load_dataset(file, panel=True), name, 6, device="cpu")
    assert femts.audit(forecaster, load_dataset(file, panel=True)).failed == ()
    forecast = forecaster.predict(pd.read_csv(file), level=[80])
    for key, each in tables.items():
        kind = "auto_ets" if name == "mstl" and key == "c" else name  # ten rows hold no season
        own = library(kind, each["sales"].to_numpy(), 6)["mean"]
        np.testing.assert_allclose(forecast.loc[forecast["unique_id"] == key, "y"], own, rtol=1e-6)
    assert np.isfinite(forecaster.evaluate()["mse"])  # type: ignore[call-overload]
    whole = forecaster.scores(by="series").set_index("series")
    assert len(whole) >= 2
    if name != "croston_sba":  # one window of each series: its last
        thin = train(load_dataset(file, panel=True), name, 6, settings={"model.windows": 1}, device="cpu").scores(
            by="series"
        )
        assert set(thin["series"]) == set(whole.index) and set(thin["windows"]) == {1}
        last = library(name, tables["a"]["sales"].to_numpy()[:66], 6)["mean"]
        error = np.abs(last - tables["a"]["sales"].to_numpy()[66:]).mean()
        assert thin.set_index("series").loc["a", "mae"] == pytest.approx(error, rel=1e-4)


@needs_library
def test_panel_backtest_with_future_covariates() -> None:
    rows = []
    for number in range(4):
        table = monthly(72, seed=number)
        promo = (np.random.default_rng(number).random(72) < 0.2) * 1.0
        rows.append(pd.DataFrame({"unique_id": f"s{number}", "ds": table["date"], "y": table["sales"], "promo": promo}))
        rows[-1]["y"] += 100 * promo
    long, schema = pd.concat(rows, ignore_index=True), Schema(roles=Roles(future=("promo",)))
    forecaster = train(load_dataset(long, schema=schema, panel=True), "auto_theta", 6, device="cpu")
    assert femts.audit(forecaster, load_dataset(long, schema=schema, panel=True)).failed == ()
    past = long.groupby("unique_id").head(66)
    later = long.groupby("unique_id").tail(6)
    forecast = forecaster.predict(past, future=later.drop(columns="y"))
    tested = femts.backtest(forecaster, load_dataset(long, schema=schema, panel=True), n_windows=1, step_size=6)
    np.testing.assert_allclose(tested["forecast"], forecast["y"], rtol=1e-6)
    raised = later["promo"].to_numpy() == 1
    assert np.abs(tested["forecast"] - tested["actual"]).mean() < 40
    assert forecast["y"].to_numpy()[raised].mean() > forecast["y"].to_numpy()[~raised].mean() + 60


@needs_library
@pytest.mark.parametrize("name", ["mstl", "croston_sba"])
def test_refit_does_not_change_the_forecast(name: str, tmp_path: Path) -> None:
    table = monthly()
    usual = train(table, name, 6, settings=quick(name), device="cpu")
    final = train(table, name, 6, settings=quick(name), device="cpu", refit=True, out=tmp_path / "run")
    if name != "croston_sba":  # whose intervals are of errors on validation and test rows
        pd.testing.assert_frame_equal(final.predict(table, level=[80]), usual.predict(table, level=[80]), rtol=1e-9)
    pd.testing.assert_frame_equal(final.predict(table), usual.predict(table), rtol=1e-9)
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(table), final.predict(table))


@needs_library
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto_arima"])  # whose search takes seconds
def test_degenerate_histories_are_forecast(name: str) -> None:
    forecaster = train(monthly(), name, 3, settings=quick(name), device="cpu")
    odd = {"constant": np.full(30, 3.0), "zeros": np.zeros(30), "short": np.arange(1.0, 15), "one": np.array([2.0])}
    odd["gaps"] = np.where(np.arange(30) % 7 == 3, np.nan, np.arange(30.0))
    for values in odd.values():
        table = monthly(len(values)).assign(sales=values, spare=values)
        import warnings

        with warnings.catch_warnings(action="ignore", category=GapWarning):
            forecast = forecaster.predict(table, level=[80, 99])
        assert np.isfinite(forecast.drop(columns="date")).all(axis=None)
    flat = monthly(30).assign(sales=3.0, spare=0.0)
    forecast = forecaster.predict(flat)
    level = 2.85 if name == "croston_sba" else 3.0  # its correction takes a twentieth off
    np.testing.assert_allclose(forecast[["sales", "spare"]], [[level, 0.0]] * 3, atol=1e-9)


@needs_library
def test_library_failure_warns() -> None:
    forecaster = train(monthly(), "auto_ets", 3, settings={"model.windows": 1}, device="cpu")
    with pytest.warns(GapWarning, match="AutoETS failed on 2 of 2 look-backs"):
        forecast = forecaster.predict(monthly(4))
    assert set(forecast["sales"]) == {monthly(4)["sales"].iloc[-1]}


@needs_library
def test_library_failure_becomes_a_note(tmp_path: Path) -> None:
    monthly(15).to_csv(tmp_path / "few.csv", index=False)
    command = "train --dataset few.csv --model auto_ets --horizon 1 --seq-len 4 --out run".split()
    done = Forked(["-m", "femts", *command], tmp_path).completed()
    assert (
        "\nnote: AutoETS failed on " in f"\n{done.stderr}"
        and "; their forecasts repeat the last value\n" in done.stderr
    )
    assert "GapWarning" not in done.stderr and done.returncode == 0


@needs_library
def test_native_intervals_are_interpolated() -> None:
    forecaster = train(monthly(), "mstl", 3, settings={"model.windows": 2}, device="cpu")
    assert forecaster.metrics["test"]["windows"] == 2
    ends = forecaster.predict(monthly(), level=[80, 85, 90]).filter(like="-hi-").to_numpy()
    part = (norm.ppf(0.925) - norm.ppf(0.9)) / (norm.ppf(0.95) - norm.ppf(0.9))
    np.testing.assert_allclose(ends[:, 1], ends[:, 0] + part * (ends[:, 2] - ends[:, 0]), rtol=1e-9)
    with pytest.raises(UsageError, match=r"intervals for levels up to 99, not for 99\.5"):
        forecaster.predict(monthly(), level=[99.5])
    with pytest.raises(UsageError, match=r"not for 99\.5"):
        forecaster.calibrate(level=[99.5], dataset=forecaster.training_data())
    longer = forecaster.calibrate(9, dataset=forecaster.training_data()).intervals
    assert longer is not None and longer.steps == 9
    with pytest.raises(UsageError, match="is refitted to each look-back"):
        forecaster.export("none.onnx")


def test_missing_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "statsforecast" else find(name, *rest)
    )
    for name in (*NAMES, "stat_ensemble"):
        with pytest.raises(UsageError, match=r"needs statsforecast, which is not installed; run pip install"):
            check_library(name)
    check_library("ridge")
    with pytest.raises(UsageError, match="needs statsforecast"):
        train(monthly(), "auto_ets", 6)


def test_arima_is_as_sharp_at_a_high_level() -> None:
    walk = np.random.default_rng(0).normal(0, 0.3, 60).cumsum()
    walk -= walk.mean()
    low, high = (Fit("AutoARIMA", 1, 3, (80.0,)).forecast(walk + level)[0] for level in (0.0, 1e4))
    np.testing.assert_allclose(high - 1e4, low, atol=1e-3)
