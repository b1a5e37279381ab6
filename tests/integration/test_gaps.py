"""Missing values in training, scores and forecasts."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from model_cases import check_gaps_are_left_out, of_each_class
from small_tables import small_table
from torch import Tensor

import femts
from femts.cli import main
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.preprocess import Preprocess, fill_gaps
from femts.data.windows import part_windows
from femts.errors import GapWarning, UsageError
from femts.evaluation.evaluator import evaluate
from femts.models.naive import Naive
from femts.models.registry import build_config, build_model, model_card, model_names

L, P = 24, 12
QUICK: dict[str, Any] = {"seq_len": L, "pred_len": P, "max_epochs": 1, "device": "cpu"}


def with_gaps(rows: int = 300, share: float = 0.1) -> pd.DataFrame:
    """A tenth of the values is missing at random, and one column begins late."""
    frame = small_table(rows)
    gone = np.random.default_rng(2).uniform(size=(rows, 2)) < share
    frame[["load", "heat"]] = frame[["load", "heat"]].mask(gone)
    frame.loc[:50, "heat"] = np.nan
    return frame


def test_fill_gaps_carries_values_forward() -> None:
    values = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, np.nan], [4.0, 3.0]])
    assert fill_gaps(values).tolist() == [[0.0, 1.0], [2.0, 1.0], [2.0, 1.0], [4.0, 3.0]]
    assert fill_gaps(values[None])[0].tolist() == fill_gaps(values).tolist()
    assert np.isnan(values).sum() == 4


def test_ended_column_has_no_forecast() -> None:
    frame = small_table(300)
    forecaster = femts.train(frame, "seasonal_naive", **QUICK)
    ended = frame.assign(heat=frame["heat"].where(frame.index < 300 - L))
    with pytest.warns(GapWarning, match="'heat': no value in the last 24 steps, so no forecast"):
        forecast = forecaster.predict(ended, level=[80])
    assert forecast.filter(like="heat").shape == (P, 3) and forecast.filter(like="heat").isna().all(axis=None)
    pd.testing.assert_series_equal(forecast["load-lo-80"], forecaster.predict(frame, level=[80])["load-lo-80"])


def test_sentinels_missing_rows_and_empty_cells_are_equal() -> None:
    whole = small_table(300)
    empty, sentinel = whole.copy(), whole.copy()
    empty.loc[[40, 90], ["load", "heat"]] = np.nan
    sentinel.loc[[40, 90], ["load", "heat"]] = -9999.0
    datasets = [
        femts.load_dataset(empty),
        femts.load_dataset(sentinel, na=[-9999]),
        femts.load_dataset(whole.drop(index=[40, 90])),
    ]
    for data in datasets:
        np.testing.assert_array_equal(data.values, datasets[0].values)
        assert data.observed is not None and (~data.observed).sum() == 4
        assert (
            "4 of 600 values are missing, in 2 of 2 columns, the first in 'load' at 2024-01-02 16:00:00"
            in data.notes[-1]
        )
    assert femts.load_dataset(whole).observed is None


def test_unequal_series_form_one_table() -> None:
    days = pd.date_range("2024-01-01", periods=60, freq="D")
    parts = {"a": days, "b": days[20:], "c": days[:35].delete([5, 6])}
    long = pd.concat(
        pd.DataFrame({"unique_id": name, "ds": when, "y": np.arange(len(when))}) for name, when in parts.items()
    )
    data = femts.load_dataset(long, panel=False)
    assert data.columns == ("a", "b", "c") and data.freq == "D" and len(data.values) == 60
    assert data.observed is not None and data.observed.sum(0).tolist() == [60, 40, 33]


def test_scores_average_observed_values() -> None:
    data = femts.load_dataset(with_gaps())
    preprocess = Preprocess.fit(data)
    windows = part_windows(data, preprocess, "test", L, P)
    scaled = preprocess.scaler.transform(data.values)
    filled, first, errors = fill_gaps(scaled), int(data.split.test[0, 0]), []
    for start in range(first, first + len(windows)):
        error = scaled[start : start + P] - filled[start - 1]
        errors.append(error[~np.isnan(error)])
    found = evaluate(Naive(ModelConfig(L, P, 2)), windows, 7)
    assert found["mse"] == pytest.approx(np.mean(np.square(np.concatenate(errors))), rel=1e-6)
    assert found["mae"] == pytest.approx(np.mean(np.abs(np.concatenate(errors))), rel=1e-6)
    assert found["windows"] == 60 - P + 1


def test_target_without_history_is_not_scored() -> None:
    frame = small_table()
    frame.loc[250 : 250 + L + 3, "load"] = np.nan
    made = femts.train(frame, "naive", **QUICK)
    scaled, errors, empty = made.preprocess.scaler.transform(frame[["load", "heat"]].to_numpy()), [], 0
    filled = fill_gaps(scaled)
    for start in range(240, 300 - P + 1):
        there = ~np.isnan(scaled[start - L : start]).all(axis=0)
        error = np.where(there, scaled[start : start + P] - filled[start - 1], np.nan)
        errors.append(error[~np.isnan(error)])
        empty += not there.all()
    assert empty == 5
    assert made.evaluate("test", dataset=frame)["mse"] == pytest.approx(np.mean(np.concatenate(errors) ** 2), rel=1e-6)


FITTED = ("naive", "seasonal_naive", "ridge")
TRAINED = [name for name in model_names() if name not in FITTED and not model_card(name).model_class.supports.raw]


@pytest.mark.parametrize("name", of_each_class(TRAINED))
def test_loss_ignores_missing_values(name: str) -> None:
    check_gaps_are_left_out(name)


def test_filled_segments_are_not_learned() -> None:
    config = build_config("fem_sm", seq_len=L, pred_len=P, n_channels=2, settings={"dropout": 0.0})
    model: Any = build_model("fem_sm", config)
    x, y = torch.randn(3, L, 2), torch.randn(3, P, 2)
    seen = torch.ones(3, L + P, 2, dtype=torch.bool)
    seen[:, P:L] = False  # the only segment of the look-back that has another before it
    batch = Batch(x, seen[:, :L], future=y, future_observed=seen[:, L:])
    torch.testing.assert_close(model.loss(batch), (model(batch) - y).square().mean())


def test_ridge_ignores_missing_targets() -> None:
    series = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    series[1:] += 0.8 * series[:-1]
    observed = torch.rand(400, 2, generator=torch.Generator().manual_seed(1)) > 0.2
    config = build_config("ridge", seq_len=4, pred_len=1, n_channels=2, settings={"season": 2, "ridge": 1e-6})

    def weight(values: Tensor, seen: Tensor | None) -> Tensor:
        model = build_model("ridge", config)
        model.prepare(values, seen)
        return model.state_dict()["linear.dense"]

    filled = series.masked_fill(~observed, 0.0)
    assert (weight(filled, observed) - weight(series, None)).abs().max() < (
        weight(filled, None) - weight(series, None)
    ).abs().max()


def test_ridge_learns_from_a_late_series() -> None:
    series = torch.randn(3000, 2, generator=torch.Generator().manual_seed(0))
    for row in range(1, 3000):
        series[row] += 0.9 * series[row - 1]
    observed = torch.ones(3000, 2, dtype=torch.bool)
    observed[:1500, 1] = False
    config = build_config("ridge", seq_len=4, pred_len=1, n_channels=2, settings={"season": 1, "ridge": 1e-6})
    weights = []
    for values, seen in ((series, None), (series.masked_fill(~observed, 0.0), observed)):
        model = build_model("ridge", config)
        model.prepare(values, seen)
        weights.append(model.state_dict()["linear.dense"])
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=0.05)


@pytest.mark.parametrize("model", ["fem_sm_ridge", "seasonal_naive"])
def test_run_with_gaps_roundtrip(model: str, tmp_path: Path) -> None:
    settings = {"model.d_model": 8, "model.n_heads": 2, "model.n_layers": 1} if model.startswith("fem") else {}
    frame = with_gaps().fillna(-9999.0)
    path = tmp_path / "mine.csv"
    frame.to_csv(path, index=False)
    data = femts.load_dataset(path, na=[-9999])
    trained = femts.train(data, model, settings=settings, out=tmp_path / "run", **QUICK)
    loaded = femts.load(tmp_path / "run")
    assert loaded.config.schema.na == (-9999.0,)
    assert loaded.evaluate("test") == trained.metrics["test"]
    assert np.isfinite(trained.metrics["test"]["mse"]) and trained.metrics["test"]["mse"] < 10
    with pytest.warns(GapWarning, match=r"lacks \d+ of 48 values, the first in column '(load|heat)'"):
        forecast = loaded.predict(frame)
    assert (
        np.isfinite(forecast[["load", "heat"]].to_numpy()).all()
        and forecast[["load", "heat"]].abs().to_numpy().max() < 10
    )


def test_missing_history_rows_are_filled() -> None:
    trained = femts.train(small_table(), "naive", **QUICK)
    frame = small_table()
    with pytest.warns(GapWarning, match="lacks 4 of 48 values"):
        skipped = trained.predict(frame.drop(index=[280, 290]))
    with warnings.catch_warnings(action="error", category=GapWarning):
        pd.testing.assert_frame_equal(skipped, trained.predict(frame))


@pytest.mark.parametrize("gap", [slice(210, 239), slice(180, 235)], ids=["part", "look-backs"])
def test_split_without_values_is_refused(gap: slice) -> None:
    frame = small_table()
    frame.loc[gap, ["load", "heat"]] = np.nan
    says = "No val row of 'frame' has a value, or none has a value in its look-back of 24 steps; provide"
    with pytest.raises(UsageError, match=says):
        femts.train(frame, "ridge", **QUICK)


def test_commands_note_missing_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_gaps().fillna(-1.5).to_csv(tmp_path / "mine.csv", index=False)
    run = ["--out", str(tmp_path / "run"), "--horizon", str(P), "--seq-len", str(L)]
    assert main(["train", "--dataset", str(tmp_path / "mine.csv"), "--na", "-1.5", "--model", "naive", *run]) == 0
    assert "values are missing, in 2 of 2 columns" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "mine.csv")]) == 0
    assert "the last value before each is read instead" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "run"), "--json"]) == 0
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    assert json.loads(capsys.readouterr().out)["pred_len"][str(P)] == kept


def test_intervals_and_scores_ignore_gaps() -> None:
    data = femts.load_dataset(with_gaps(1300))
    trained = femts.train(data, "naive", **QUICK)
    filled = fill_gaps(trained.preprocess.scaler.transform(data.values))
    scaled = trained.preprocess.scaler.transform(data.values)
    first, stop = data.split.val[0].tolist()
    errors = np.abs([scaled[n : n + P] - filled[n - 1] for n in range(first, stop - P + 1)])
    assert trained.intervals is not None
    for step, channel in ((0, 0), (5, 1), (11, 0)):
        there = np.sort(errors[:, step, channel][~np.isnan(errors[:, step, channel])])
        assert len(there) < len(errors)
        expected = there[int(np.ceil((len(there) + 1) * 0.8)) - 1]
        assert trained.intervals.half_width(80.0, P)[step, channel] == pytest.approx(expected, rel=1e-5)
    whole = trained.evaluate("test")
    detail = trained.scores("test", level=[80])
    per_value = trained.scores("test", by=["step", "channel"])
    assert np.isfinite(detail.drop(columns=["units", "smape", "wape", "bias"]).to_numpy(dtype=float)).all()
    assert per_value.loc[per_value["units"] == "scaled", "mse"].mean() == pytest.approx(whole["mse"], rel=0.05)
    inside = trained.coverage("test", [80])["coverage"]
    assert inside.between(0, 1).all() and inside.mean() > 0.5


def test_detailed_scores_match_training_scores() -> None:
    frame = small_table(300)
    frame.loc[[250, 251, 290, 299], "load"] = np.nan
    made = femts.train(frame, "ridge", 30, seq_len=L)
    table, stored = made.scores(level=[80], dataset=frame).iloc[0], made.metrics["test"]
    assert (table["mse"], table["mae"]) == pytest.approx((stored["mse"], stored["mae"]), rel=1e-6)
    assert table["coverage-80"] == pytest.approx(made.metrics["intervals"]["test"]["80"]["coverage"])


def test_long_history_gets_long_intervals() -> None:
    table = small_table()
    trained = femts.train(table, "naive", **QUICK)
    long = table.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    wide, found = trained.predict(table, level=[80]), trained.predict(long, level=[80])
    assert list(found.columns) == ["ds", "unique_id", "y", "y-lo-80", "y-hi-80"]
    for name in ("load", "heat"):
        own = found[found["unique_id"] == name]
        np.testing.assert_array_equal(own[["y", "y-lo-80", "y-hi-80"]], wide[[name, f"{name}-lo-80", f"{name}-hi-80"]])
