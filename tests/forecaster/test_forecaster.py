"""A loaded forecaster on new data."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.splits import ratio_split
from femts.data.synthetic import synthetic_frame
from femts.errors import GapWarning, UsageError
from femts.evaluation.evaluator import evaluate
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score_windows
from femts.training.train import train

L, P = 48, 24
_QUICK: dict[str, Any] = {"pred_len": P, "seq_len": L, "max_epochs": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    train("synthetic", "dlinear", out=out, settings={"training.batch_size": 500, "training.lr": 1e-3}, **_QUICK)
    return out


@pytest.fixture
def history() -> pd.DataFrame:
    return synthetic_frame(200)


def test_forecast_is_in_raw_units(forecaster: Forecaster, history: pd.DataFrame) -> None:
    scaler, rows = forecaster.preprocess.scaler, load_dataset("synthetic").train_values
    np.testing.assert_allclose(scaler.mean[0], rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaler.scale[0], rows.std(axis=0), rtol=1e-12)
    for table in (history, history.assign(s0=history["s0"] + 1000)):
        scaled = scaler.transform(table.drop(columns="date").to_numpy()[None, -L:])
        with torch.no_grad():
            made = forecaster.model(Batch(torch.from_numpy(scaled).float())).double().numpy()
        forecast = forecaster.predict(table)
        assert list(forecast.columns) == list(history.columns)
        np.testing.assert_allclose(forecast.drop(columns="date").to_numpy(), scaler.inverse(made)[0], rtol=1e-6)


@pytest.mark.parametrize("steps", [P, 2 * P])
def test_window_forecasts_reproduce_the_score(forecaster: Forecaster, steps: int) -> None:
    data = load_dataset("synthetic")
    start, stop = data.split.test[0]
    origins = np.arange(start, stop - steps + 1)
    forecast = forecaster.predict_array(np.stack([data.values[o - L : o] for o in origins]), steps)
    y, scores = np.stack([data.values[o : o + steps] for o in origins]), forecaster.evaluate("test", steps)
    errors = (forecast - y) / forecaster.preprocess.scaler.scale
    assert scores["windows"] == len(origins)
    assert scores["mse"] == pytest.approx((errors**2).mean(), rel=1e-5)
    assert scores["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)
    for o in (start, start + 100, stop - steps):
        one = forecaster.predict(data.frame().iloc[:o], steps).drop(columns="date").to_numpy()
        np.testing.assert_allclose(one, forecast[o - start], rtol=1e-5)


def test_predict_supports_any_horizon(forecaster: Forecaster, history: pd.DataFrame) -> None:
    cases: list[Any] = [1, P - 1, P, P + 1, 3 * P + 5, np.int64(30)]
    for horizon in cases:
        forecast, common = forecaster.predict(history, horizon), min(int(horizon), P)
        ahead = pd.date_range(history["date"].iloc[-1], periods=horizon + 1, freq="h")[1:]
        assert list(forecast["date"]) == list(ahead)
        pd.testing.assert_frame_equal(forecast[:common], forecaster.predict(history)[:common])


def test_longer_horizon_feeds_forecasts_back(forecaster: Forecaster, history: pd.DataFrame) -> None:
    first = forecaster.predict(history)
    second = forecaster.predict(pd.concat([history, first]))
    both = forecaster.predict(history, 2 * P)
    np.testing.assert_allclose(both.iloc[P:, 1:].to_numpy(float), second.iloc[:, 1:].to_numpy(float), rtol=1e-5)


def test_invalid_horizon_is_refused(forecaster: Forecaster, history: pd.DataFrame) -> None:
    cases: list[Any] = [0, -1, 2.5, True, "24"]
    for horizon in cases:
        with pytest.raises(UsageError, match=f"horizon of {horizon} steps is not supported"):
            forecaster.predict(history, horizon)


def test_predict_reads_only_the_look_back_and_does_not_mutate(forecaster: Forecaster, history: pd.DataFrame) -> None:
    expected = forecaster.predict(history)
    damaged = history.copy()
    damaged.loc[:100, "s1"] = np.nan
    damaged.loc[3, "date"] = damaged.loc[2, "date"]
    kept = damaged.copy(deep=True)
    pd.testing.assert_frame_equal(forecaster.predict(damaged), expected)
    pd.testing.assert_frame_equal(damaged, kept)
    pd.testing.assert_frame_equal(forecaster.predict(history.tail(L)), expected)


def test_rows_without_a_date_are_said_to_be_left_out(forecaster: Forecaster, history: pd.DataFrame) -> None:
    undated = history.assign(date=history["date"].where(history.index < 197))
    with pytest.warns(
        femts.GapWarning, match="has 3 rows without a date, the first at data row 198; they are left out"
    ):
        forecast = forecaster.predict(undated)
    pd.testing.assert_frame_equal(forecast, forecaster.predict(history.head(197)))


def test_columns_match_by_name_and_text_dates_are_parsed(forecaster: Forecaster, history: pd.DataFrame) -> None:
    turned = history[list(reversed(history.columns))].assign(date=history["date"].astype(str))
    pd.testing.assert_frame_equal(forecaster.predict(turned), forecaster.predict(history), check_dtype=False)


def _faults() -> dict[str, tuple[Any, str]]:
    return {
        "empty": (lambda f: f.head(0), "has no rows"),
        "missing": (lambda f: f.drop(columns="s2"), "lacks 's2'"),
        "extra": (lambda f: f.assign(wind=1.0), "has 'wind' besides"),
        "renamed": (lambda f: f.rename(columns={"s2": "S2"}), "lacks 's2' and has 'S2' besides"),
        "undated": (lambda f: f.drop(columns="date"), "'date'"),
        "nan": (lambda f: f.assign(**dict.fromkeys(f.columns[1:], np.nan)), "no value; provide at least one"),
        "inf": (lambda f: f.assign(s0=f["s0"].where(f.index < 198, np.inf)), "2 infinite cells.*'s0'"),
        "text": (lambda f: f.astype({"s1": object}).assign(s1="much"), "text 'much' in column 's1'"),
        "repeated": (lambda f: pd.concat([f, f.tail(1).assign(s0=-1.5)]), "repeats 1 date"),
        "without a date": (lambda f: f.assign(date=f["date"].where(f.index < 150)), "where data row"),
        "off the grid": (
            lambda f: f.assign(date=f["date"] + pd.to_timedelta(1 * (f.index == 180), unit="min")),
            "step 'h'",
        ),
        "daily": (lambda f: f.assign(date=pd.date_range("2020", periods=200, freq="D")), "step 'h'"),
        "no dates": (lambda f: f.assign(date="soon"), "'soon'"),
        "no frame": (lambda f: f.to_numpy(), "is a ndarray that is not numeric"),
    }


def test_invalid_history_is_refused_in_one_sentence(forecaster: Forecaster, history: pd.DataFrame) -> None:
    for fault in _faults():
        spoil, message = _faults()[fault]
        with pytest.raises(UsageError, match=message) as caught:
            forecaster.predict(spoil(history))
        assert "\n" not in str(caught.value)


def test_short_history_is_padded_with_a_warning(forecaster: Forecaster, history: pd.DataFrame) -> None:
    wave = history.assign(**{name: 10.0 + np.arange(200) % 24 for name in history.columns[1:]})
    expected = forecaster.predict(wave)
    with pytest.warns(
        GapWarning, match=f"The history has 30 rows, but this model looks back {L}; .* by repeating the first 24"
    ):
        pd.testing.assert_frame_equal(forecaster.predict(wave.tail(30)), expected)
    with pytest.warns(GapWarning, match="has 5 rows, .* filled with the training mean"):
        forecaster.predict(wave.tail(5))


def test_predict_array_shape_mismatch_is_refused(forecaster: Forecaster) -> None:
    with pytest.raises(UsageError, match=rf"shape \(2, {L}, 5\); this model takes \(windows, {L}, 6\)"):
        forecaster.predict_array(np.zeros((2, L, 5)))


@pytest.fixture
def undated() -> Dataset:
    """A dataset without dates."""
    values = synthetic_frame(600).drop(columns="date").to_numpy()
    return Dataset.of_one("plants", values, None, tuple("012345"), split=ratio_split(600), sha256="0" * 64, season=24)


def test_steps_are_counted_without_dates(undated: Dataset, tmp_path: Path) -> None:
    train(undated, "naive", out=tmp_path / "run", **_QUICK)
    forecaster = femts.load(tmp_path / "run")
    forecast = forecaster.predict(undated.frame(), 30)
    assert list(forecast.columns) == ["step", *"012345"]
    assert forecast["step"].tolist() == list(range(600, 630))
    later = undated.frame().set_axis(range(1000, 1600))
    assert forecaster.predict(later, 2)["step"].tolist() == [1600, 1601]
    named = undated.frame().set_axis([f"r{i}" for i in range(600)])
    assert forecaster.predict(named, 2)["step"].tolist() == [600, 601]
    with pytest.raises(UsageError, match="'date' besides"):
        forecaster.predict(undated.frame().assign(date="2020-01-01"))
    with pytest.raises(UsageError, match="1 infinite cell,"):
        forecaster.predict(undated.frame().replace(undated.values[-1, 0], np.inf))


def test_loaded_forecaster_reproduces_its_scores(forecaster: Forecaster) -> None:
    assert forecaster.evaluate("test") == forecaster.metrics["test"]
    assert forecaster.evaluate("val") == forecaster.metrics["val"]


def test_training_data_are_reloaded_unless_changed(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    frame = synthetic_frame(600)
    frame.to_csv(path, index=False)
    train(path, "naive", out=tmp_path / "run", **_QUICK)
    assert femts.load(tmp_path / "run").evaluate()["windows"] == 120 - P + 1
    frame.assign(s0=frame["s0"] + 1).to_csv(path, index=False)
    with pytest.raises(
        UsageError, match=r"own\.csv is not what this model was trained on; pass other data as dataset="
    ):
        femts.load(tmp_path / "run").evaluate()
    assert femts.load(tmp_path / "run").evaluate(dataset=load_dataset(path))["windows"] == 120 - P + 1
    path.unlink()
    with pytest.raises(UsageError, match=r"own\.csv no longer exists"):
        femts.load(tmp_path / "run").evaluate()


def test_in_memory_data_must_be_passed_again(undated: Dataset, tmp_path: Path) -> None:
    trained = train(undated, "naive", out=tmp_path / "run", **_QUICK)
    loaded = femts.load(tmp_path / "run")
    with pytest.raises(UsageError, match=r"'plants' was passed as an object.*dataset="):
        loaded.evaluate()
    assert loaded.evaluate(dataset=undated) == trained.evaluate()
    with pytest.raises(UsageError, match="different columns"):
        loaded.evaluate(dataset=load_dataset("synthetic"))


def test_save_roundtrip(forecaster: Forecaster, history: pd.DataFrame, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "copy")
    again = femts.load(tmp_path / "copy")
    pd.testing.assert_frame_equal(again.predict(history), forecaster.predict(history))
    assert again.metrics == forecaster.metrics and again.validations == forecaster.validations
    with pytest.raises(UsageError, match="already holds a finished run"):
        forecaster.save(tmp_path / "copy")


def test_predict_is_deterministic_without_dropout(history: pd.DataFrame) -> None:
    settings = {"model.d_model": 16, "model.n_layers": 1, "model.n_heads": 2, "model.dropout": 0.5}
    forecaster = train("synthetic", "fem_sm", settings={**settings, "training.batch_size": 2000}, **_QUICK)
    forecaster.model.train()
    pd.testing.assert_frame_equal(forecaster.predict(history), forecaster.predict(history))


@pytest.mark.skipif(not os.environ.get("FEMTS_DATA"), reason="FEMTS_DATA, the folder with the real files, is not set")
def test_etth1_score_is_reproduced(tmp_path: Path) -> None:
    train("ETTh1", "seasonal_naive", pred_len=96, seq_len=336, out=tmp_path / "run")
    forecaster, data = femts.load(tmp_path / "run"), load_dataset("ETTh1")
    windows, reported = score_windows(forecaster, "test", 96, data), forecaster.metrics["test"]
    scores = evaluate(forecaster.model, windows)
    assert scores.items() <= reported.items() and reported["windows"] == 2785
    frame, origins, total = data.frame(), data.split.test[0, 0] + windows.subsample(40).numpy(), 0.0
    for o in origins.tolist():
        forecast = forecaster.predict(frame.iloc[o - 336 : o]).drop(columns="date").to_numpy()
        total += float((((forecast - data.values[o : o + 96]) / forecaster.preprocess.scaler.scale) ** 2).mean())
    assert total / len(origins) == pytest.approx(evaluate(forecaster.model, windows, some=40)["mse"], rel=1e-5)


@pytest.mark.parametrize("model", ["fem_sm_ridge", "fem_mamba"])
def test_predict_is_thread_safe(model: str, history: pd.DataFrame) -> None:
    small = {"model.d_model": 8, "model.n_heads": 2, "model.n_layers": 1} if model.startswith("fem") else {}
    settings = {"training.batch_size": 2000, **small}
    shared = train("synthetic", model, settings=settings, **_QUICK)
    pasts = [history.iloc[:end] for end in range(L, 200, 14)]
    alone = [shared.predict(past, 40, level=None) for past in pasts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(shared.predict, pasts, [40] * len(pasts)))
    for one, other in zip(alone, together, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("model", ["ridge", "dlinear"])
def test_to_moves_all_weights(model: str) -> None:
    moved = train("synthetic", model, settings={"training.batch_size": 2000}, **_QUICK).to("meta")
    assert moved.device.type == "meta"  # fitted weights, which are no parameters, included
