"""A backtest forecasts as `predict` does, from the past alone, and scores as the evaluator does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.cli import main
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.data.windows import part_windows
from femts.errors import UsageError
from femts.evaluation.evaluator import evaluate
from femts.forecaster.forecaster import Forecaster
from femts.training import refit as again
from femts.training import train as fit

L, P = 24, 12
FRAME = synthetic_frame(500)
DATA = load_dataset(FRAME)
QUICK = {"training.batch_size": 512, "training.lr": 1e-2, "training.max_epochs": 2}


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit.train(DATA, "dlinear", P, seq_len=L, seed=7, device="cpu", settings=QUICK)


@pytest.fixture(scope="module")
def linear() -> Forecaster:
    return fit.train(DATA, "ridge", P, seq_len=L, device="cpu", settings={"model.longest": P})


def overall(frame: pd.DataFrame, forecaster: Forecaster) -> pd.Series:
    scores = femts.backtest_scores(frame, forecaster).set_index(["cutoff", "model"])
    return scores.loc[("all", "forecast")]


def test_all_test_windows_give_the_evaluators_score(forecaster: Forecaster) -> None:
    wanted = forecaster.evaluate("test")
    frame = femts.backtest(forecaster, DATA, femts.Cutoffs(windows=int(wanted["windows"]), step=1))
    found = overall(frame, forecaster)
    assert found["mse_scaled"] == pytest.approx(wanted["mse"], rel=1e-5)
    assert found["mae_scaled"] == pytest.approx(wanted["mae"], rel=1e-5)


def test_the_baseline_is_the_seasonal_naive_model(forecaster: Forecaster) -> None:
    naive = fit.train(DATA, "seasonal_naive", P, seq_len=L)
    windows = int(naive.metrics["test"]["windows"])
    scores = femts.backtest_scores(
        femts.backtest(forecaster, FRAME, femts.Cutoffs(windows=windows, step=1)), forecaster
    )
    found = scores.set_index(["cutoff", "model"]).loc[("all", "seasonal_naive")]
    assert found["mse_scaled"] == pytest.approx(naive.metrics["test"]["mse"], rel=1e-5)


@pytest.mark.skipif(not os.environ.get("FEMTS_DATA"), reason="needs the real ETTh1; set FEMTS_DATA to its folder")
def test_some_windows_of_real_data_give_the_evaluators_score() -> None:
    data = load_dataset("ETTh1")
    real = fit.train(data, "ridge", 24, seq_len=96, settings={"model.longest": 24})
    windows = part_windows(data, real.preprocess, "test", 96, 24)
    wanted = evaluate(real.model, windows, some=torch.arange(len(windows) - 1, 0, -7)[:40])
    frame = femts.backtest(real, data.frame().iloc[: data.split.test[1]], femts.Cutoffs(windows=40, step=7))
    found = overall(frame, real)
    assert found["mse_scaled"] == pytest.approx(wanted["mse"], rel=1e-5)
    assert found["mae_scaled"] == pytest.approx(wanted["mae"], rel=1e-5)


@pytest.mark.parametrize("horizon", [5, P, 30])
def test_each_window_is_what_predict_gives(forecaster: Forecaster, horizon: int) -> None:
    frame = femts.backtest(forecaster, FRAME, femts.Cutoffs(windows=3, step=10, horizon=horizon))
    assert list(frame.columns) == ["cutoff", "date", "column", "forecast", "seasonal_naive", "actual"]
    for number, (cutoff, window) in enumerate(frame.groupby("cutoff")):
        row = len(FRAME) - horizon - (2 - number) * 10
        assert cutoff == FRAME["date"][row - 1]
        pivoted = window.pivot(index="date", columns="column", values="forecast").reset_index()
        wanted = forecaster.predict(FRAME.iloc[:row], horizon)
        pd.testing.assert_frame_equal(pivoted[list(wanted.columns)], wanted, check_names=False, check_freq=False)
        actual = window.pivot(index="date", columns="column", values="actual")
        np.testing.assert_array_equal(actual.to_numpy(), FRAME.drop(columns="date")[row : row + horizon].to_numpy())


@pytest.mark.parametrize("refit", [False, True], ids=["as trained", "refit"])
def test_what_follows_the_cutoff_does_not_matter(linear: Forecaster, refit: bool) -> None:
    values = FRAME.columns.drop("date")
    cutoff = len(FRAME) - P - 30
    changed = FRAME.copy()
    changed.loc[cutoff:, values] += 100 * np.random.default_rng(0).normal(size=(len(FRAME) - cutoff, len(values)))
    frames = [
        femts.backtest(linear, table, femts.Cutoffs(windows=2, step=30), refit=refit) for table in (FRAME, changed)
    ]
    first, second = (table["forecast"].to_numpy().reshape(2, -1) for table in frames)
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.allclose(first[1], second[1])


def test_a_refit_takes_all_rows_before_the_cutoff_and_the_runs_own_recipe(
    forecaster: Forecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refit, seen, said = again.refit, list[tuple[Dataset, Forecaster]](), list[str]()

    def watched(forecaster: Forecaster, data: Dataset) -> Forecaster:
        seen.append((data, refit(forecaster, data)))
        return seen[-1][1]

    monkeypatch.setattr(again, "refit", watched)
    frame = femts.backtest(forecaster, DATA, femts.Cutoffs(windows=2, step=20), refit=True, say=said.append)
    for (data, trained), cutoff in zip(seen, (468, 488), strict=True):
        np.testing.assert_array_equal(data.values, DATA.values[:cutoff])
        assert trained.data["split"] == {"train": [0, cutoff], "val": [cutoff, cutoff], "test": [cutoff, cutoff]}
        assert trained.metrics["final"]["steps"] == forecaster.metrics["kept_step"]
        assert trained.config.training == forecaster.config.training
        assert trained.config.model_config == forecaster.config.model_config
        wanted = trained.predict(FRAME.iloc[:cutoff])["s3"]
        window = frame[(frame["cutoff"] == FRAME["date"][cutoff - 1]) & (frame["column"] == "s3")]
        np.testing.assert_array_equal(window["forecast"], wanted)
    assert [text.partition(" in ")[0] for text in said[:2]] == [
        f"trained on the {cutoff} rows up to {FRAME['date'][cutoff - 1]}" for cutoff in (468, 488)
    ]
    assert said[2].startswith("2 trainings took")


def test_a_refit_on_all_rows_is_the_final_fit() -> None:
    final = fit.train(DATA, "dlinear", P, seq_len=L, seed=7, device="cpu", settings=QUICK, final=True)
    assert final.scored is not None
    for forecaster in (final, final.scored):
        refitted = again.refit(forecaster, DATA)
        for name, value in final.model.state_dict().items():
            assert torch.equal(value, refitted.model.state_dict()[name])
    said: list[str] = []
    femts.backtest(final, DATA, femts.Cutoffs(windows=1, step=1), say=said.append)
    assert "refit, or take the run that was scored" in said[0]


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_what_is_missing_is_filled_for_the_model_and_left_out_of_the_score() -> None:
    table = FRAME.copy()
    table.loc[::7, "s1"] = np.nan
    data = load_dataset(table)
    gappy = fit.train(data, "dlinear", P, seq_len=L, device="cpu", settings=QUICK)
    windows = part_windows(data, gappy.preprocess, "test", L, P)
    wanted = evaluate(gappy.model, windows, some=torch.arange(4, len(windows), 7))  # no look-back begins in a gap
    frame = femts.backtest(gappy, table, femts.Cutoffs(windows=13, step=7))
    assert np.isfinite(frame[["forecast", "seasonal_naive"]].to_numpy()).all()
    assert frame["actual"].isna().any()
    assert overall(frame, gappy)["mse_scaled"] == pytest.approx(wanted["mse"], rel=1e-5)
    put_in = femts.backtest(gappy, table.dropna(), femts.Cutoffs(windows=13, step=7))
    assert put_in["actual"].isna().sum() == len(data.columns) * frame["actual"].isna().sum()
    assert len(femts.backtest(gappy, table, femts.Cutoffs(windows=1, step=1), refit=True)) == P * len(data.columns)


def test_rows_that_the_model_knows_are_said_to_be_known(forecaster: Forecaster) -> None:
    grown, other = synthetic_frame(600), FRAME.iloc[400:]  # the test begins at row 400
    for data, step, noted in (
        (DATA, 80, 0),
        (DATA, 100, 1),
        (FRAME.iloc[:300], 100, 2),
        (FRAME, 80, 0),
        (FRAME, 90, 1),
    ):
        assert notes_on(forecaster, data, femts.Cutoffs(windows=2, step=step)) == noted
    assert notes_on(forecaster, grown, femts.Cutoffs(windows=2, step=188)) == 0
    assert notes_on(forecaster, grown, femts.Cutoffs(windows=2, step=189)) == 1
    assert notes_on(forecaster, other, femts.Cutoffs(windows=2, step=50)) == 0


def test_a_run_that_learned_from_all_rows_knows_them_in_a_grown_table(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "mine.csv", index=False)
    synthetic_frame(530).to_csv(tmp_path / "later.csv", index=False)
    fit.train(str(tmp_path / "mine.csv"), "ridge", P, seq_len=L, final=True, out=tmp_path / "run")
    final = femts.load(tmp_path / "run")
    for data, noted in (("mine.csv", 4), ("later.csv", 2)):
        assert notes_on(final, str(tmp_path / data), femts.Cutoffs(windows=4, step=P)) == noted
        assert notes_on(final, pd.read_csv(tmp_path / data), femts.Cutoffs(windows=4, step=P)) == noted
    assert notes_on(final, str(tmp_path / "later.csv"), femts.Cutoffs(windows=2, step=P)) == 0


def notes_on(forecaster: Forecaster, data: Any, cutoffs: femts.Cutoffs) -> int:
    """Cutoffs that the one note is of; 0 without a note."""
    said: list[str] = []
    femts.backtest(forecaster, data, cutoffs, say=said.append)
    assert all("are of rows that this model was trained or chosen on" in text for text in said) and len(said) < 2
    return int(said[0].split()[2]) if said else 0


def test_data_without_dates_are_counted_in_rows(forecaster: Forecaster) -> None:
    bare = Forecaster(**{**vars(forecaster), "freq": None})
    frame = femts.backtest(bare, FRAME.drop(columns="date"), femts.Cutoffs(windows=2, step=20))
    dated = femts.backtest(forecaster, FRAME, femts.Cutoffs(windows=2, step=20))
    assert list(frame["step"].unique()[:P]) == list(range(468, 468 + P))
    assert set(frame["cutoff"]) == {467, 487}
    np.testing.assert_array_equal(frame["forecast"], dated["forecast"])


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_stamps_of_a_time_zone_are_kept(zone: str) -> None:
    frame = synthetic_frame(138)
    frame["date"] = pd.date_range("2024-03-30", periods=138, freq="h", tz=zone)
    table = femts.backtest(femts.train(frame, "naive", 3, seq_len=24), frame, femts.Cutoffs(windows=2, step=5))
    assert table["date"].iloc[-1] == frame["date"].iloc[-1]


def test_a_horizon_of_a_season_needs_a_season_before_it() -> None:
    short = fit.train(DATA, "naive", 4, seq_len=8)
    with pytest.raises(UsageError, match="24 of them before the first forecast"):
        femts.backtest(short, FRAME.iloc[:27], femts.Cutoffs(windows=1, step=1))


def test_the_command_writes_the_frame_and_prints_the_scores(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = own / "backtest.csv"
    arguments = ["backtest", own / "run", own / "past.csv", "--windows", 2, "--step", 6, "--horizon", 9, "-o", out]
    assert main([str(argument) for argument in arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    forecaster = femts.load(own / "run")
    frame = femts.backtest(forecaster, own / "past.csv", femts.Cutoffs(windows=2, step=6, horizon=9))
    pd.testing.assert_frame_equal(pd.read_csv(out, parse_dates=["cutoff", "date"]), frame, check_dtype=False)
    assert lines[0].split() == ["cutoff", "model", "mse_scaled", "mae_scaled", "mse_raw", "mae_raw"]
    assert lines[-1] == f"{out}: 36 rows, 2 forecasts of 2 columns"
    assert f"{overall(frame, forecaster)['mse_scaled']:.4f}" in lines[-3]


def test_a_note_counts_forecasts_and_not_what_was_said(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(own / "past.csv")
    table.loc[230:, "heat"] = np.nan
    table.to_csv(own / "ended.csv", index=False)
    arguments = ["backtest", own / "run", own / "ended.csv", "--windows", 5, "--step", 12]
    assert main([str(argument) for argument in arguments]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "flatter" not in line]
    assert notes == [
        "note: 5 of 5 forecasts are made from rows with gaps, of which the last value before is read",
        "note: 'heat': no value in the last 24 steps, so none in the forecast",
    ]
