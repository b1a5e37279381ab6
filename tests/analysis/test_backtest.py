"""Backtests match `predict` and `evaluate`, and use past rows only."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from logged import logged
from small_panels import LENGTHS, panel_forecaster, panel_table

import femts
from femts.cli import main
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.data.windows import part_windows
from femts.errors import AccuracyWarning, GapWarning, UsageError
from femts.evaluation.evaluator import evaluate
from femts.forecaster.forecaster import Forecaster
from femts.training import refit as again
from femts.training import train as fit

L, P, WEEK = 24, 12, 7
FRAME = synthetic_frame(500)
DATA = load_dataset(FRAME)
QUICK = {"training.batch_size": 512, "training.lr": 1e-2, "training.max_epochs": 2}
LONG = panel_table()


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit.train(DATA, "dlinear", P, seq_len=L, seed=7, device="cpu", settings=QUICK)


@pytest.fixture(scope="module")
def linear() -> Forecaster:
    return fit.train(DATA, "ridge", P, seq_len=L, device="cpu", settings={"model.longest": P})


@pytest.fixture(scope="module")
def ridge() -> Forecaster:
    return panel_forecaster("ridge")


def cutoffs_of(windows: int | None, step: float = 1, horizon: int | None = None) -> dict[str, Any]:
    return {"n_windows": windows, "step_size": step, "horizon": horizon}


def overall(frame: pd.DataFrame, forecaster: Forecaster, model: str = "forecast") -> pd.Series:
    scores = femts.backtest_scores(frame, forecaster)
    return scores[(scores.iloc[:, 0] == "all") & (scores["model"] == model)].iloc[0]


def test_backtest_over_all_windows_matches_evaluate(forecaster: Forecaster) -> None:
    wanted, naive = forecaster.evaluate("test"), fit.train(DATA, "seasonal_naive", P, seq_len=L).metrics["test"]
    frame = femts.backtest(forecaster, DATA, **cutoffs_of(int(wanted["windows"])))
    found = overall(frame, forecaster)
    assert found["mse_scaled"] == pytest.approx(wanted["mse"], rel=1e-5)
    assert found["mae_scaled"] == pytest.approx(wanted["mae"], rel=1e-5)
    assert overall(frame, forecaster, "seasonal_naive")["mse_scaled"] == pytest.approx(naive["mse"], rel=1e-5)


def test_bounds_are_those_of_predict(forecaster: Forecaster) -> None:
    frame = femts.backtest(forecaster, FRAME, **cutoffs_of(2, 10, 5), level=[80], quantiles=[0.3, 0.5])
    assert list(frame.columns)[5:] == ["actual", "lo-80", "hi-80", "q-30", "q-50"]
    assert frame["q-50"].equals(frame["forecast"].rename("q-50"))
    last = frame[frame["cutoff"] == frame["cutoff"].max()]
    made = forecaster.predict(FRAME[: len(FRAME) - 5], 5, [80], quantiles=[0.3, 0.5])
    for bound in ("lo-80", "hi-80", "q-30", "q-50"):
        wide = last.pivot(index="date", columns="column", values=bound)[list(forecaster.targets)]
        np.testing.assert_allclose(wide, made[[f"{name}-{bound}" for name in forecaster.targets]], rtol=1e-12)
    with pytest.raises(UsageError, match="refitting has no intervals"):
        femts.backtest(forecaster, FRAME, refit=True, level=[80])


@pytest.mark.parametrize("horizon", [5, 30])
def test_backtest_windows_match_predict(forecaster: Forecaster, horizon: int) -> None:
    frame = femts.backtest(forecaster, FRAME, **cutoffs_of(3, 10, horizon))
    assert list(frame.columns) == ["cutoff", "date", "column", "forecast", "seasonal_naive", "actual"]
    for number, (cutoff, window) in enumerate(frame.groupby("cutoff")):
        row = len(FRAME) - horizon - (2 - number) * 10
        assert cutoff == FRAME["date"][row - 1]
        pivoted = window.pivot(index="date", columns="column", values="forecast").reset_index()
        wanted = forecaster.predict(FRAME.iloc[:row], horizon)
        pd.testing.assert_frame_equal(pivoted[list(wanted.columns)], wanted, check_names=False, check_freq=False)
        actual = window.pivot(index="date", columns="column", values="actual")
        np.testing.assert_array_equal(actual.to_numpy(), FRAME.drop(columns="date")[row : row + horizon].to_numpy())


@pytest.mark.parametrize("horizon", [3, 10])
def test_panel_cutoffs_count_from_each_series_end(ridge: Forecaster, horizon: int) -> None:
    with logged() as notes:
        frame = femts.backtest(ridge, LONG, **cutoffs_of(2, 5, horizon))
    assert list(frame) == ["window", "series", "cutoff", "date", "forecast", "seasonal_naive", "actual"]
    for (window, name), rows in frame.groupby(["window", "series"]):
        before = horizon + (2 - int(str(window))) * 5
        own = LONG[LONG["unique_id"] == name]
        past, after = own.iloc[:-before], own.iloc[len(own) - before :].head(horizon)
        expected = ridge.predict(past, horizon)
        np.testing.assert_allclose(rows["forecast"], expected["y"], rtol=1e-5)
        assert list(rows["date"]) == list(expected["ds"]) and set(rows["cutoff"]) == {past["ds"].max()}
        np.testing.assert_array_equal(rows["actual"], after["y"])
        season = past["y"].ffill().to_numpy()[-WEEK:]
        np.testing.assert_allclose(rows["seasonal_naive"], season[np.arange(horizon) % WEEK])
    assert "tiny" not in set(frame["series"])
    assert "series, the first 'tiny', is skipped at cutoffs with less than a season of 7 rows" in notes[0]


def test_panel_scores_use_each_series_scale(ridge: Forecaster) -> None:
    frame = femts.backtest(ridge, ridge.training_data(), **cutoffs_of(1))
    errors = []
    for name, rows in frame.groupby("series"):
        one = ridge.of(str(name)).preprocess
        errors.append(one.rescale(rows[["forecast"]].to_numpy()) - one.rescale(rows[["actual"]].to_numpy()))
    assert overall(frame, ridge)["mse_scaled"] == pytest.approx(np.nanmean(np.square(np.concatenate(errors))))
    assert list(femts.backtest_scores(frame, ridge)) == ["window", "model", "mse_scaled", "mae_scaled"]
    by_series = femts.backtest_scores(frame, ridge, by="series")
    assert list(by_series["series"].unique()) == ["long", "short", "young", "all"]
    long = frame.query("series == 'long'")
    row = by_series.query("series == 'long' and model == 'forecast'")
    assert row["mae_raw"].item() == pytest.approx((long["forecast"] - long["actual"]).abs().mean())


def test_new_series_have_raw_scores(ridge: Forecaster) -> None:
    new = LONG.query("unique_id == 'long'").assign(unique_id="stranger")
    with pytest.warns(GapWarning, match="1 of 1 series is new"):
        frame = femts.backtest(ridge, new, **cutoffs_of(1))
    scores = femts.backtest_scores(frame, ridge, by="series").query("series == 'stranger'")
    assert scores["mae_raw"].notna().all() and scores["mae_scaled"].isna().all()


@pytest.mark.parametrize(("refit", "many"), [(False, False), (True, True)], ids=["as trained, wide", "refit, long"])
def test_backtest_ignores_rows_after_the_cutoff(refit: bool, many: bool, linear: Forecaster, ridge: Forecaster) -> None:
    model, table, ends = (ridge, LONG, LONG["unique_id"]) if many else (linear, FRAME, 0 * FRAME.index)
    changed, values, steps = table.copy(), table.columns[-1], model.config.pred_len
    late = changed.groupby(ends).cumcount(ascending=False) < steps + 7
    changed.loc[late, values] += 1e4 * np.random.default_rng(0).random(int(late.sum()))
    frames = [femts.backtest(model, each, **cutoffs_of(2, 7), refit=refit) for each in (table, changed)]
    first = "window" if many else "cutoff"
    same = frames[0][first] == frames[0][first].iloc[0]
    one, other = (frame["forecast"].to_numpy() for frame in frames)
    np.testing.assert_array_equal(one[same], other[same])
    assert not np.allclose(one[~same], other[~same])


@pytest.mark.parametrize("many", [False, True], ids=["wide", "long"])
def test_backtest_refits_at_each_cutoff(many: bool, forecaster: Forecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    model, table = (panel_forecaster("dlinear"), LONG) if many else (forecaster, FRAME)
    refit, seen = again.refit, list[tuple[Dataset, Forecaster]]()

    def watched(forecaster: Forecaster, data: Dataset) -> Forecaster:
        seen.append((data, refit(forecaster, data)))
        return seen[-1][1]

    monkeypatch.setattr(again, "refit", watched)
    steps, step = model.config.pred_len, 7
    with logged() as notes:
        frame = femts.backtest(model, table, **cutoffs_of(2, step), refit=True)
    assert not any("flatter" in text for text in notes)
    assert notes[-1].startswith("2 refits and their forecasts took")
    for number, (data, made) in enumerate(seen):
        back = steps + (1 - number) * step
        lengths = {name: rows - back for name, rows in LENGTHS.items() if rows - back >= WEEK}
        rows = sum(lengths.values()) if many else len(FRAME) - back
        assert dict(zip(data.series, data.lengths, strict=True)) == (lengths if many else {"": rows})
        assert made.data["split"] == {"train": [0, rows], "val": [rows, rows], "test": [rows, rows]}
        assert made.scored is model and made.metrics["refit"]["steps"] == model.metrics["kept_step"]
        assert (made.config.training, made.config.model_config) == (model.config.training, model.config.model_config)
        words = f"{rows} rows of {len(data)} series before cutoff {number + 1}"
        words = words if many else f"{rows} rows up to {FRAME['date'][rows - 1]}"
        assert notes[number + many].startswith(f"trained on the {words} in ")
        with warnings.catch_warnings(action="ignore"):
            wanted = made.predict(data.frame()).drop(columns=["unique_id", "ds", "date"], errors="ignore")
        window = frame[frame.iloc[:, 0] == frame.iloc[:, 0].unique()[number]]
        np.testing.assert_allclose(window["forecast"], wanted.to_numpy().ravel(), rtol=1e-6)


@pytest.mark.parametrize("many", [False, True], ids=["wide", "long"])
def test_refit_on_all_rows_equals_the_final_fit(many: bool) -> None:
    if many:
        final = panel_forecaster("dlinear", refit=True)
    else:
        final = fit.train(DATA, "dlinear", P, seq_len=L, seed=7, device="cpu", settings=QUICK, refit=True)
    data = load_dataset(LONG, panel=True) if many else DATA
    assert final.scored is not None
    for forecaster in (final, final.scored):
        made = again.refit(forecaster, data)
        assert made.data == final.data
        assert all(each.equal(made.model.state_dict()[name]) for name, each in final.model.state_dict().items())
    with logged() as notes:
        femts.backtest(final, data, **cutoffs_of(1))
    assert "forecasts of 1 of 1 cutoff are from the model that was scored" in notes[-1]


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_missing_values_are_filled_but_not_scored() -> None:
    table = FRAME.copy()
    table.loc[::7, "s1"] = np.nan
    data = load_dataset(table)
    gappy = fit.train(data, "dlinear", P, seq_len=L, device="cpu", settings=QUICK)
    windows = part_windows(data, gappy.preprocess, "test", L, P)
    wanted = evaluate(gappy.model, windows, some=torch.arange(4, len(windows), 7))  # no look-back begins in a gap
    frame = femts.backtest(gappy, table, **cutoffs_of(13, 7))
    assert np.isfinite(frame[["forecast", "seasonal_naive"]].to_numpy()).all()
    assert frame["actual"].isna().any()
    assert overall(frame, gappy)["mse_scaled"] == pytest.approx(wanted["mse"], rel=1e-5)
    put_in = femts.backtest(gappy, table.dropna(), **cutoffs_of(13, 7))
    assert put_in["actual"].isna().sum() == len(data.columns) * frame["actual"].isna().sum()
    assert len(femts.backtest(gappy, table, **cutoffs_of(1), refit=True)) == P * len(data.columns)


def used_rows(forecaster: Forecaster, data: Any, cutoffs: dict[str, Any]) -> int:
    """Number of cutoffs or series in the warning on rows used for validation; 0 without a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        femts.backtest(forecaster, data, **cutoffs)
    words = [str(each.message) for each in caught if "cover rows used for validation" in str(each.message)]
    assert len(words) < 2
    return int(words[0].split()[2]) if words else 0


def test_validation_rows_in_a_backtest_are_warned_of(forecaster: Forecaster) -> None:
    for data, step, warned in (
        (DATA, 80, 0),
        (DATA, 100, 1),
        (FRAME, 80, 0),
        (FRAME, 90, 1),
        (synthetic_frame(600), 188, 0),
        (synthetic_frame(600), 189, 1),
        (FRAME.iloc[400:], 50, 0),  # the test begins at row 400
    ):
        assert used_rows(forecaster, data, cutoffs_of(2, step)) == warned


def test_training_rows_are_not_backtested(forecaster: Forecaster) -> None:
    for data, windows, step, of, remedy in (
        (FRAME.iloc[:300], 2, 100, "2 of 2", "provide later rows"),
        (FRAME, 3, 100, "1 of 3", "use at most 2 windows"),
        (FRAME, 2, 139, "1 of 2", "use at most 1 window"),  # the validation begins at row 350
    ):
        message = f"Forecasts of {of} cutoffs would cover rows on which this model was trained.*{remedy}, or refit"
        with pytest.raises(UsageError, match=message):
            femts.backtest(forecaster, data, **cutoffs_of(windows, step))
    assert used_rows(forecaster, FRAME, cutoffs_of(2, 138)) == 1
    assert len(femts.backtest(forecaster, FRAME.iloc[:300], **cutoffs_of(2, 100), refit=True))


def test_default_windows_cover_unseen_rows(forecaster: Forecaster) -> None:
    for step, windows in ((P, 5), (22, 5), (23, 4), (89, 1)):
        assert femts.backtest(forecaster, FRAME, **cutoffs_of(None, step))["cutoff"].nunique() == windows
    with pytest.raises(UsageError, match="provide later rows"):
        femts.backtest(forecaster, FRAME.iloc[:300])


def test_undated_training_rows_are_recognised(tmp_path: Path) -> None:
    bare = FRAME.drop(columns="date")
    bare.to_csv(tmp_path / "bare.csv", index=False)
    for data, like in ((bare, bare.copy()), (tmp_path / "bare.csv", tmp_path / "bare.csv"), (bare, load_dataset(bare))):
        made = fit.train(data, "ridge", P, seq_len=L, refit=False)
        with pytest.raises(UsageError, match="1 of 3 cutoffs would cover"):
            femts.backtest(made, like, **cutoffs_of(3, 100))
        assert used_rows(made, like, cutoffs_of(2, 100)) == 1
        assert used_rows(made, bare[:300], cutoffs_of(2, 100)) == 0, "another table, as far as anyone can tell"


def test_scored_model_forecasts_rows_of_the_refit(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "mine.csv", index=False)
    synthetic_frame(530).to_csv(tmp_path / "later.csv", index=False)
    fit.train(str(tmp_path / "mine.csv"), "ridge", P, seq_len=L, refit=True, out=tmp_path / "run")
    final = femts.load(tmp_path / "run")
    assert final.scored is not None
    for name, scored in (("mine.csv", 4), ("later.csv", 2)):
        for data in (str(tmp_path / name), pd.read_csv(tmp_path / name)):
            with logged() as notes:
                made = femts.backtest(final, data, **cutoffs_of(4, P), level=[80])
            assert any(f"forecasts of {scored} of 4 cutoffs are from the model that was scored" in n for n in notes)
            wanted = femts.backtest(final.scored, data, **cutoffs_of(4, P), level=[80])
            first = len(made) * scored // 4
            pd.testing.assert_frame_equal(made[:first], wanted[:first])
            assert not len(made[first:]) or (made["forecast"][first:] != wanted["forecast"][first:]).all()
    with logged() as notes:
        femts.backtest(final, tmp_path / "later.csv", **cutoffs_of(2, P))
    assert not notes, "no row of these was seen by either"


def test_each_series_of_a_panel_has_rows_of_its_own(ridge: Forecaster, tmp_path: Path) -> None:
    later = LONG[LONG["ds"] > LONG.groupby("unique_id")["ds"].transform("max") - pd.Timedelta(days=WEEK)]
    grown = pd.concat([LONG, later.assign(ds=later["ds"] + pd.Timedelta(days=WEEK))])
    final = panel_forecaster("ridge", refit=True)
    final.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    other = grown.assign(unique_id="other " + grown["unique_id"])
    with warnings.catch_warnings(action="ignore", category=GapWarning):
        for forecaster, table, windows, scored, warned in (
            (final, LONG, 1, 1, 0),
            (final, grown, 1, 0, 0),  # `short` and `young` end before the last row learned from, that of `long`
            (final, grown, 2, 1, 0),
            (loaded, grown, 2, 1, 0),
            (loaded, grown, 3, 2, 1),
            (loaded, other, 2, 0, 0),
            (ridge, LONG, 1, 0, 0),
            (ridge, grown, 2, 0, 0),
            (ridge, grown, 3, 0, 1),  # of `young` one week is for the test, of the others two or more
        ):
            with logged() as notes:
                assert used_rows(forecaster, table, cutoffs_of(windows, WEEK)) == warned, windows
            words = f"forecasts of {scored} of {count(windows, 'cutoff')} are from the model that was scored"
            assert sum(words in note for note in notes) == bool(scored)


def test_series_without_unseen_rows_are_left_out(ridge: Forecaster) -> None:
    with pytest.warns(AccuracyWarning, match="1 of 4 series, the first 'short', is left out at cutoffs before rows"):
        frame = femts.backtest(ridge, LONG, **cutoffs_of(5, WEEK))
    series = [sorted(set(own["series"])) for _, own in frame.groupby("window")]
    assert series == [["long"], *[["long", "short"]] * 2, *[["long", "short", "young"]] * 2]
    assert femts.backtest(ridge, LONG, **cutoffs_of(5, WEEK), refit=True)["series"].value_counts()["short"] == 5 * WEEK


def test_undated_data_count_rows(forecaster: Forecaster) -> None:
    bare = replace(forecaster, freq=None)
    frame = femts.backtest(bare, FRAME.drop(columns="date"), **cutoffs_of(2, 20))
    assert list(frame["step"].unique()[:P]) == list(range(468, 468 + P))
    assert set(frame["cutoff"]) == {467, 487}
    np.testing.assert_array_equal(frame["forecast"], femts.backtest(forecaster, FRAME, **cutoffs_of(2, 20))["forecast"])


def test_time_zones_are_kept() -> None:
    for zone in ["UTC", "Europe/Berlin"]:
        frame = synthetic_frame(138)
        frame["date"] = pd.date_range("2024-03-30", periods=138, freq="h", tz=zone)
        table = femts.backtest(femts.train(frame, "naive", 3, seq_len=24), frame, **cutoffs_of(2, 5))
        assert table["date"].iloc[-1] == frame["date"].iloc[-1]


def test_default_number_of_windows(linear: Forecaster) -> None:
    late = FRAME[400:]  # test rows
    for rows, windows in ((100, 5), (L + P + 1, 2), (L + P, 1)):
        assert femts.backtest(linear, late.iloc[:rows], **cutoffs_of(None, 1))["cutoff"].nunique() == windows


def test_invalid_cutoffs_are_refused(linear: Forecaster) -> None:
    for rows, cutoffs, message in [
        (500, cutoffs_of(0), "n_windows, not 0"),
        (500, cutoffs_of(1, 2.5), "step_size, not 2.5"),
        (500, cutoffs_of(1, 1, True), "horizon, not True"),
        (
            100,
            cutoffs_of(9, 10),
            "The frame has 100 rows, but 9 windows 10 rows apart .* require 116, .* at most 7 windows",
        ),
        (100, cutoffs_of(3, 60), "at most 2 windows or"),
        (L + P - 1, cutoffs_of(1), "provide more rows"),
        (L + P - 1, cutoffs_of(None), "provide more rows"),
        (27, cutoffs_of(1, 1, 4), "24 of them before the first forecast"),
    ]:
        with pytest.raises(UsageError, match=message):
            femts.backtest(linear, FRAME.iloc[:rows], **cutoffs)


def test_incompatible_data_are_refused(ridge: Forecaster) -> None:
    with pytest.raises(UsageError, match="No series of 'frame' has a season of 7 rows before a forecast of 400"):
        femts.backtest(ridge, LONG, **cutoffs_of(1, 1, 400))
    weekly = LONG.assign(ds=pd.to_datetime("2020-01-01") + 7 * (LONG["ds"] - pd.Timestamp("2020-01-01")))
    with pytest.raises(UsageError, match="has the step 'W-WED', but the training data had the step 'D'"):
        femts.backtest(ridge, weekly, **cutoffs_of(1))
    one = LONG.query("unique_id == 'long'")[["ds", "y"]].rename(columns={"ds": "date"})
    wide = femts.train(one, "naive", WEEK, seq_len=14)
    with pytest.raises(UsageError, match="has series of their own, but this model was trained on one series"):
        femts.backtest(wide, load_dataset(LONG, panel=True), **cutoffs_of(1))
    with pytest.raises(UsageError, match="A backtest cannot be grouped by 'series'"):
        femts.backtest_scores(femts.backtest(ridge, LONG, **cutoffs_of(1)).assign(column="y"), wide, by="series")


def test_scores_average_common_forecasts(linear: Forecaster) -> None:
    scale = linear.preprocess.scaler.scale[0]
    frame = pd.DataFrame(
        {
            "cutoff": [7, 7, 9, 9, 9],
            "column": ["s0", "s1", "s0", "s1", "s1"],
            "forecast": [1.0, 2.0, 3.0, np.nan, np.nan],
            "seasonal_naive": [0.0, np.nan, 5.0, 100.0, 100.0],
            "actual": [0.0, 0.0, 0.0, 20.0, np.nan],
        }
    )
    found = femts.backtest_scores(frame, linear)
    assert list(found["cutoff"]) == [7, 7, 9, 9, "all", "all"]
    assert list(found["model"]) == ["forecast", "seasonal_naive"] * 3
    table = found.set_index(["model", "cutoff"])
    assert list(table["mae_raw"]["forecast"]) == [1.0, 3.0, 2.0]
    assert list(table["mae_raw"]["seasonal_naive"]) == [0.0, 5.0, 2.5]
    assert list(table["mse_raw"]["forecast"]) == [1.0, 9.0, 5.0]
    assert list(table["mse_scaled"]["forecast"]) == pytest.approx(
        [1 / scale[0] ** 2, 9 / scale[0] ** 2, 5 / scale[0] ** 2]
    )


def test_backtest_command(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = own / "backtest.csv"
    arguments = [
        "backtest",
        own / "run",
        own / "past.csv",
        "--n-windows",
        2,
        "--step-size",
        6,
        "--horizon",
        9,
        "-o",
        out,
    ]
    assert main([str(argument) for argument in arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    forecaster = femts.load(own / "run")
    frame = femts.backtest(forecaster, own / "past.csv", **cutoffs_of(2, 6, 9))
    pd.testing.assert_frame_equal(pd.read_csv(out, parse_dates=["cutoff", "date"]), frame, check_dtype=False)
    assert lines[0].split() == ["cutoff", "model", "mse_scaled", "mae_scaled", "mse_raw", "mae_raw"]
    assert lines[-1] == f"{out}: 36 rows, 2 forecasts of 2 columns"
    assert f"{overall(frame, forecaster)['mse_scaled']:.4f}" in lines[-3]


def test_backtest_command_notes_gaps_once(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(own / "past.csv")
    table.loc[230:, "heat"] = np.nan
    table.to_csv(own / "ended.csv", index=False)
    arguments = ["backtest", own / "run", own / "ended.csv", "--n-windows", 5, "--step-size", 12]
    assert main([str(argument) for argument in arguments]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "flatter" not in line]
    assert notes == [
        "note: 5 of 5 forecasts use rows with gaps, which are filled with the last value before them",
        "note: 'heat': no value in the last 24 steps, so no forecast",
    ]
