"""Odd readings in training, calibration and forecasts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.cli import main
from femts.data.preprocess import Preprocess
from femts.data.windows import part_windows
from femts.errors import GapWarning, UsageError

QUICK: dict[str, Any] = {"device": "cpu"}
ODD = "900 in 'y' at 2025-01-07 lies far outside the usual range and is read as missing"


def daily(odd: dict[int, float] | None = None, rows: int = 400) -> pd.DataFrame:
    """A weekly pattern around 50 with a few odd readings."""
    day = np.arange(rows)
    y = 50 + 8 * np.sin(2 * np.pi * day / 7) + np.random.default_rng(1).normal(0, 1.5, rows)
    for row, value in ({} if odd is None else odd).items():
        y[row] = value
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=rows), "y": y.round(2)})


CLEAN, SPIKE = daily(), daily({372: 900.0})


def forecast(made: femts.Forecaster, table: pd.DataFrame, **further: Any) -> tuple[pd.DataFrame, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = made.predict(table, level=[80], **further)
    return table, [str(each.message) for each in said if "far outside" in str(each.message)]


@pytest.fixture(scope="module")
def ridge() -> femts.Forecaster:
    return femts.train(CLEAN, "ridge", 28, refit=False, **QUICK)


@pytest.mark.parametrize("model", ["ridge", "seasonal_naive", "boost"])
def test_odd_reading_hardly_moves_forecast_and_interval(model: str) -> None:
    settings = {"model.rounds": 20} if model == "boost" else None
    made, odd = (femts.train(each, model, 28, settings=settings, **QUICK) for each in (CLEAN, SPIKE))
    usual, nothing = forecast(made, CLEAN)
    found, said = forecast(odd, SPIKE)
    assert nothing == [] and said == [f"{ODD}; keep such values with outliers='keep'."]
    assert np.abs(found["y"] - usual["y"]).max() < 1.5
    width, usual_width = ((each["y-hi-80"] - each["y-lo-80"]).mean() for each in (found, usual))
    assert 0.9 < width / usual_width < 1.4


def test_clean_tables_keep_their_forecasts_to_the_bit(ridge: femts.Forecaster) -> None:
    kept = femts.train(CLEAN, "ridge", 28, refit=False, outliers="keep", **QUICK)
    assert kept.preprocess.outliers is None and ridge.preprocess.outliers is not None
    pd.testing.assert_frame_equal(forecast(kept, CLEAN)[0], forecast(ridge, CLEAN)[0], check_exact=True)
    assert kept.metrics["test"] == ridge.metrics["test"]
    with pytest.raises(UsageError, match=r"trained with all readings kept.*outliers='missing'"):
        kept.predict(CLEAN, outliers="missing")
    with pytest.raises(UsageError, match="Unknown treatment of outliers 'drop'"):
        ridge.predict(CLEAN, outliers="drop")


def test_reading_can_be_kept_in_a_wider_interval(ridge: femts.Forecaster) -> None:
    usual, (kept, said) = forecast(ridge, CLEAN)[0], forecast(ridge, SPIKE, outliers="keep")
    assert said == [] and kept["y"][0] > usual["y"][0] + 20
    assert (kept["y-hi-80"] - kept["y-lo-80"])[0] > 5 * (usual["y-hi-80"] - usual["y-lo-80"])[0]
    missing = forecast(ridge, SPIKE, outliers="missing")[0]
    pd.testing.assert_frame_equal(missing, forecast(ridge, SPIKE)[0])


def test_forecast_is_that_of_the_same_rows_with_a_gap(ridge: femts.Forecaster) -> None:
    gap = SPIKE.assign(y=SPIKE["y"].where(SPIKE["y"] < 900))
    pd.testing.assert_series_equal(forecast(ridge, SPIKE)[0]["y"], forecast(ridge, gap)[0]["y"])
    preprocess = ridge.preprocess
    short = SPIKE.tail(ridge.config.seq_len + preprocess.reach)
    pd.testing.assert_frame_equal(forecast(ridge, short)[0], forecast(ridge, SPIKE)[0])


def test_new_level_is_followed(ridge: femts.Forecaster) -> None:
    risen = CLEAN.assign(y=CLEAN["y"] + 60 * (CLEAN.index >= 390))
    made, said = forecast(ridge, risen)
    assert said == [] and made["y"].mean() > 65
    pd.testing.assert_frame_equal(made, forecast(ridge, risen, outliers="keep")[0])
    usual = forecast(ridge, CLEAN)[0]
    assert (made["y-hi-80"] - made["y-lo-80"])[0] > 1.5 * (usual["y-hi-80"] - usual["y-lo-80"])[0]


def test_odd_training_readings_do_not_matter() -> None:
    odd = {int(row): 900.0 for row in np.random.default_rng(3).choice(250, 4, replace=False)}
    usual, treated, kept = (
        femts.train(table, "ridge", 28, refit=False, outliers=outliers, **QUICK)
        for table, outliers in ((CLEAN, "missing"), (daily(odd), "missing"), (daily(odd), "keep"))
    )
    actual = CLEAN["y"].to_numpy()[-28:]
    before = CLEAN.head(372)
    errors = [np.abs(one.predict(before)["y"] - actual).mean() for one in (usual, treated, kept)]
    assert errors[1] < 1.1 * errors[0] and errors[1] < errors[2]


def test_scores_count_odd_targets_and_calibration_does_not() -> None:
    data = femts.load_dataset(daily({300: 900.0, 380: 900.0}))
    preprocess = Preprocess.fit(data)
    windows = part_windows(data, preprocess, "val", 56, 14)
    every = torch.arange(len(windows))
    (number,) = (row for row in range(len(windows)) if windows.place(row)[1] == 295)
    batch = windows.batch(torch.tensor([number]))
    assert batch.future_observed is not None and batch.future_observed.all() and batch.target.max() > 50
    chosen = windows.within_scale().batch(torch.tensor([number])).future_observed
    assert chosen is not None and (~chosen).nonzero().tolist() == [[0, 5, 0]]
    assert windows.within_scale().batch(every).past.abs().max() < 5 and windows.batch(every).past.abs().max() < 5
    train = part_windows(data, preprocess, "train", 56, 14)
    assert train.resident.odd is None and train.rows.abs().max() < 5


def test_look_back_shorter_than_a_median() -> None:
    made = femts.train(SPIKE.head(385), "naive", 7, seq_len=7, refit=False, **QUICK)
    found, said = forecast(made, daily({372: 900.0, 399: 950.0}))
    assert len(said) == 1 and "950 in 'y' at 2025-02-03" in said[0] and found["y"].max() < 70


def test_panel_names_series_and_round_trips(tmp_path: Path) -> None:
    parts = [daily({395: 900.0} if name == "b" else None).assign(shop=name) for name in "abc"]
    panel = pd.concat([*parts, daily({370: 900.0}, 380).assign(shop="new")])[["shop", "date", "y"]]
    made = femts.train(pd.concat(parts), "ridge", 14, columns={"series": "shop", "time": "date", "value": "y"}, **QUICK)
    found, said = forecast(made, panel)
    assert said == [
        "900 in 'y' of 'b' at 2025-01-30 lies far outside the usual range and is read as missing; keep such values with "
        "outliers='keep'."
    ]
    made.save(tmp_path / "run")
    pd.testing.assert_frame_equal(forecast(femts.load(tmp_path / "run"), panel)[0], found, check_exact=True)
    one = made.of("b")
    wide = panel[panel["shop"] == "b"].drop(columns="shop")
    np.testing.assert_allclose(forecast(one, wide)[0]["y"], found.loc[found["shop"] == "b", "y"])


def test_backtest_reads_odd_readings_as_missing(ridge: femts.Forecaster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="femts")
    frame, usual = (femts.backtest(ridge, each, n_windows=2, step_size=14, horizon=14) for each in (SPIKE, CLEAN))
    assert ODD in caplog.text and "rows with gaps" not in caplog.text
    assert np.abs(frame["forecast"] - usual["forecast"]).max() < 1.5 and frame["actual"].max() == 900


def test_catalogue_keeps_its_readings_unless_asked() -> None:
    assert not femts.load_dataset("synthetic").drops_outliers
    assert femts.load_dataset("synthetic", outliers="missing").drops_outliers
    assert femts.load_dataset(CLEAN).drops_outliers and not femts.load_dataset(CLEAN, outliers="keep").drops_outliers


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, run = tmp_path / "spike.csv", tmp_path / "run"
    SPIKE.to_csv(table, index=False)
    assert main(["train", "--dataset", str(table), "--model", "ridge", "--horizon", "14", "--out", str(run)]) == 0
    capsys.readouterr()
    assert main(["predict", str(run), str(table)]) == 0
    usual, said = capsys.readouterr()
    assert f"{ODD}; keep such values with --outliers keep" in said
    assert main(["predict", str(run), str(table), "--outliers", "keep"]) == 0
    kept, said = capsys.readouterr()
    assert "far outside" not in said
    assert float(kept.split("\n")[1].split(",")[1]) > float(usual.split("\n")[1].split(",")[1]) + 20
    assert main(["predict", str(run), str(table), "--outliers", "drop"]) == 2
    with pytest.warns(GapWarning, match="far outside"):
        femts.load(run).predict(SPIKE)
