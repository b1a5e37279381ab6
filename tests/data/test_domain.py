"""Transforms and bounds of targets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from logged import logged

import femts
from femts.data.domain import Domain
from femts.data.power import PowerTransform
from femts.data.preprocess import Preprocess
from femts.errors import UsageError

QUICK: dict[str, Any] = {"seq_len": 24, "pred_len": 12, "max_steps": 4, "device": "cpu"}


def demand(rows: int = 400) -> pd.DataFrame:
    """Skewed counts with many zeros, and a column of zeros."""
    rng = np.random.default_rng(0)
    counts = np.floor(np.exp(rng.normal(0, 1.2, rows)) * (1 + np.sin(np.arange(rows) * np.pi / 6)))
    return pd.DataFrame({"date": pd.date_range("2020-01-01", periods=rows), "y": counts, "none": np.zeros(rows)})


@pytest.mark.parametrize("transform", ["log1p", "boxcox"])
def test_transform_roundtrip(transform: str) -> None:
    values = np.abs(np.random.default_rng(0).normal(3, 2, (50, 3))) + 0.1
    power = PowerTransform.fit(transform, [("The frame", values)], ("a", "b", "c"))
    assert power is not None
    np.testing.assert_allclose(power.undo(power.apply(values)), values, rtol=1e-9)
    again = PowerTransform.from_dict(power.to_dict())
    np.testing.assert_array_equal(again.apply(values), power.apply(values))
    assert (np.diff(power.undo(np.linspace(-50, 5, 100)[:, None].repeat(3, 1)), axis=0) >= 0).all(), (
        "rising, whatever the model says"
    )


def test_log1p_and_boxcox_match_scipy() -> None:
    from scipy.stats import boxcox

    values = np.random.default_rng(0).lognormal(1, 0.7, (200, 1))
    logarithm = PowerTransform.fit("log1p", [("The frame", values)], ("a",))
    power = PowerTransform.fit("boxcox", [("The frame", values)], ("a",))
    assert logarithm is not None and power is not None
    np.testing.assert_allclose(logarithm.apply(values), np.log1p(values))
    expected, fitted = boxcox(values[:, 0])
    np.testing.assert_allclose(power.powers[0], fitted, atol=1e-6)
    np.testing.assert_allclose(power.apply(values)[:, 0], expected, atol=1e-5)


def test_boxcox_power_uses_training_rows_only() -> None:
    table = demand().assign(y=lambda f: f["y"] + 1, none=1.0)
    later = table.assign(y=table["y"].where(table.index < 280, 1e6))
    fitted = [
        Preprocess.fit(femts.load_dataset(each, target=["y", "none"], transform="boxcox")).power
        for each in (table, later)
    ]
    assert fitted[0] is not None and fitted[1] is not None
    np.testing.assert_array_equal(fitted[0].powers, fitted[1].powers)


@pytest.mark.parametrize(("model", "transform"), [("ridge", "log1p"), ("fem_sm", "none")])
def test_forecasts_and_intervals_stay_in_the_domain(model: str, transform: str, tmp_path: Path) -> None:
    data = femts.load_dataset(demand(), target=["y", "none"], min=0, max=30, transform=transform)
    run = femts.train(data, model, **QUICK)
    forecast = run.predict(demand(), level=[50, 80, 95], quantiles=[0.1, 0.9])
    values = forecast.drop(columns="date").to_numpy()
    assert np.isfinite(values).all() and values.min() >= 0 and values.max() <= 30
    assert (forecast["none"] <= (1e-5 if model == "fem_sm" else 0)).all(), "zeros are forecast as zeros, not as -1e-5"
    run.save(tmp_path / "run")
    again = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.predict(demand(), level=[50, 80, 95], quantiles=[0.1, 0.9]), forecast)
    assert again.config.schema.domain == Domain(0.0, 30.0, transform)


def test_raw_scores_match_raw_forecasts() -> None:
    data = femts.load_dataset(demand(), target=["y", "none"], min=0, transform="log1p")
    run = femts.train(data, "ridge", **QUICK)
    windows, first = int(data.split.windows("test", 24, 12)[0, 3]), int(data.split.test[0, 0])
    looks = np.stack([data.values[first + i - 24 : first + i] for i in range(windows)])
    truth = np.stack([data.values[first + i : first + i + 12] for i in range(windows)])
    error = run.predict_array(looks) - truth
    raw = run.scores(dataset=data).set_index("units").loc["raw"]
    assert raw["mse"] == pytest.approx((error**2).mean(), rel=1e-5)
    assert raw["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-5)
    table = femts.backtest(run, demand(), n_windows=3, step_size=12)
    assert table["forecast"].min() >= 0


def test_log1p_intervals_are_asymmetric() -> None:
    run = femts.train(femts.load_dataset(demand(), target=["y", "none"], transform="log1p"), "ridge", **QUICK)
    forecast = run.predict(demand(), level=[80])
    up, down = forecast["y-hi-80"] - forecast["y"], forecast["y"] - forecast["y-lo-80"]
    assert (up > down).all()


def test_invalid_domain_is_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        ({"min": "low"}, "Argument 'min' is 'low', which is not a number"),
        ({"max": float("inf")}, "'max' is inf, which is not a finite bound"),
        ({"min": 3, "max": 3}, "min=3 is not below max=3"),
        ({"transform": "log"}, "Unknown transform 'log'; did you mean 'log1p'"),
        ({"transform": 3}, "Unknown transform '3'"),
    ]
    for wish, says in cases:
        with pytest.raises(UsageError, match=says):
            femts.load_dataset(demand(), target=["y", "none"], **wish)


def test_values_outside_a_transforms_range_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"has 0 in column 'none' at data row .* values above 0; use transform='log1p'"
    ):
        femts.train(femts.load_dataset(demand(), target=["y", "none"], transform="boxcox"), "naive", **QUICK)
    below = demand().assign(none=-2.0)
    with pytest.raises(
        UsageError, match=r"has -2 in column 'none' at data row 1, .* values above -1; use transform='none'"
    ):
        femts.train(femts.load_dataset(below, target=["y", "none"], transform="log1p"), "naive", **QUICK)
    run = femts.train(femts.load_dataset(demand(), target=["y", "none"], transform="log1p"), "naive", **QUICK)
    with pytest.raises(UsageError, match="'history' has -2 in column 'none'"):
        run.predict(below)


def test_past_covariates_are_not_transformed() -> None:
    table = demand().assign(cold=lambda f: -1.0 - f["y"])
    data = femts.load_dataset(table, target=["y"], past_covariates=["cold"], transform="log1p")
    run = femts.train(data, "itransformer", **QUICK)
    assert run.preprocess.power is not None and run.preprocess.power.powers.shape == (1, 1)
    assert np.isfinite(run.predict(table)["y"]).all()


def test_exported_model_keeps_the_domain(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    run = femts.train(femts.load_dataset(demand().drop(columns="none"), min=0, transform="log1p"), "dlinear", **QUICK)
    run.export(tmp_path / "m.onnx")
    past = demand()[["y"]].to_numpy(dtype=np.float32)[None, -24:]
    (exported,) = ort.InferenceSession(tmp_path / "m.onnx").run(None, {"history": past})
    np.testing.assert_allclose(exported, run.predict_array(past), rtol=1e-4, atol=1e-4)
    assert exported.min() >= 0


def prices(rows: int = 300) -> pd.DataFrame:
    """A column that falls to 0, a signed one, and one far above 0."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(rows, 3))
    table = {"sold": np.maximum(0, 20 - 0.08 * np.arange(rows) + noise[:, 0]).round(), "change": noise[:, 1]}
    table["price"] = 1000 + noise[:, 2]
    return pd.DataFrame({"date": pd.date_range("2020-01-01", periods=rows), **table})


@pytest.mark.parametrize("model", ["ridge", "dlinear"])
def test_nonnegative_targets_are_bounded_at_zero(model: str, tmp_path: Path) -> None:
    with logged() as notes:
        made = femts.train(prices(), model, 12, seq_len=24, max_steps=4, out=tmp_path / "run")
    free = femts.train(femts.load_dataset(prices(), min="none"), model, 12, seq_len=24, max_steps=4)
    assert [note for note in notes if "bounded below" in note] == [
        "forecasts of sold are bounded below at 0, because no training value is negative; remove the bound with "
        "min='none'"
    ]
    for run in (made, femts.load(tmp_path / "run")):
        table, plain = (each.predict(prices(), level=[95]) for each in (run, free))
        sold = [name for name in table if str(name).startswith("sold")]
        assert (table[sold] >= 0).all(axis=None) and (plain[sold] < 0).any(axis=None)
        pd.testing.assert_frame_equal(table.drop(columns=sold), plain.drop(columns=sold))
    assert free.preprocess.domain.low is None and free.config.schema.domain.to_dict() == {"min": "none"}


def test_default_bound_applies_to_user_tables() -> None:
    assert femts.train("synthetic", "naive", 12, seq_len=24).preprocess.domain.low is None
    long = prices().melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    low = femts.train(femts.load_dataset(long[long["unique_id"] == "sold"]), "naive", 12, seq_len=24)
    assert low.preprocess.domain.low == (0.0,)
    assert femts.train(femts.load_dataset(long), "naive", 12, seq_len=24).preprocess.domain.low is None


def test_contradicting_history_removes_an_inferred_bound(tmp_path: Path) -> None:
    made = femts.train(prices(), "seasonal_naive", 12, seq_len=24, out=tmp_path / "run")
    later = prices().assign(sold=lambda table: table["sold"] - 3 * (table.index >= len(table) - 10))
    for run in (made, femts.load(tmp_path / "run")):
        bounded, free = run.predict(prices(), level=[80]), run.predict(later, level=[80])
        assert (bounded[["sold", "sold-lo-80"]] >= 0).all(axis=None) and (free["sold-lo-80"] < 0).any()
        assert free["sold"].min() == pytest.approx(later["sold"].tail(made.season).min(), 1e-5)
        assert run.preprocess.domain.low is not None, "the run itself keeps its bound"


def test_contradicting_history_keeps_an_explicit_bound() -> None:
    made = femts.train(femts.load_dataset(prices(), min=0), "seasonal_naive", 12, seq_len=24)
    later = prices().assign(sold=lambda table: table["sold"] - 3)
    assert (made.predict(later, level=[80])[["sold", "sold-lo-80"]] >= 0).all(axis=None)


def test_zero_bound_heuristic() -> None:
    for values, low in [
        (np.arange(50) % 7, 0.0),  # counts
        (np.arange(50) % 7 + 0.5, -math.inf),  # a few measurements
        (np.where(np.arange(50) % 10 == 0, 0.0, 2.5 + np.arange(50) % 7), 0.0),  # amounts, some of them nothing
        (np.arange(1000) % 7 + 0.5, 0.0),  # many measurements
        (np.arange(1000) % 7 + 9.0, -math.inf),  # far above
        (np.arange(1000) % 7 - 1.0, -math.inf),
    ]:
        made = Domain().fitted([np.array(values, dtype=np.float64)[:, None]])
        assert made.low == (None if low < 0 else (low,))
