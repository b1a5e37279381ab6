"""Intervals calibrated on rows after those of training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.errors import UsageError

ROWS, LATER = 1600, 2000


def louder() -> pd.DataFrame:
    """Hours whose noise is three times as loud after the rows of training."""
    hour, random = np.arange(2400), np.random.default_rng(0)
    noise = random.standard_normal(len(hour)) * np.where(hour < ROWS, 1, 3)
    dates = pd.date_range("2024-01-01", periods=len(hour), freq="h")
    return pd.DataFrame({"date": dates, "y": 10 + 5 * np.sin(2 * np.pi * hour / 24) + noise})


def covered(forecaster: femts.Forecaster, table: pd.DataFrame) -> float:
    """Share of the rows after those of the calibration inside the 80 % interval."""
    made = femts.backtest(forecaster, table, n_windows=16, step_size=24, level=[80])
    return float(made["actual"].between(made["lo-80"], made["hi-80"]).mean())


def test_intervals_cover_again() -> None:
    table = louder()
    before = femts.train(table[:ROWS], "ridge", 24, seq_len=96, refit=True)
    after = before.calibrate(dataset=table[:LATER])
    assert after.intervals is not None
    assert after.intervals.windows == LATER - ROWS - 23
    assert covered(before, table) < 0.5
    assert 0.74 < covered(after, table) < 0.88
    assert before.scored is not None
    assert after.scored is not None
    assert after.scored.intervals is before.scored.intervals


def test_a_few_windows_do_not_replace_intervals_from_many() -> None:
    fc = femts.train(louder()[:ROWS], "ridge", 24, seq_len=96, refit=True)
    assert fc.intervals is not None
    with pytest.raises(
        UsageError,
        match=f"cover less than two horizons, too little to replace intervals from {fc.intervals.windows} windows",
    ):
        fc.calibrate(dataset=louder()[: ROWS + 24])


def test_test_rows_of_a_run_without_refit_are_used() -> None:
    table = louder()
    made = femts.train(table[:ROWS], "ridge", 24, seq_len=96, refit=False).calibrate(dataset=table[:LATER])
    assert made.intervals is not None
    assert made.intervals.windows == LATER - 0.8 * ROWS - 23


def test_series_that_end_at_different_times() -> None:
    table = pd.concat([louder().assign(unique_id=name).rename(columns={"date": "ds"}) for name in ("a", "b")])
    known = (table["ds"] < "2024-02-20") | ((table["unique_id"] == "b") & (table["ds"] < "2024-03-01"))
    fc = femts.train(table[known], "ridge", 24, seq_len=48, refit=True)
    made = fc.calibrate(dataset=table[table["ds"] < "2024-03-08"])
    assert made.intervals is not None
    assert made.intervals.windows == 24 * (17 + 7) - 2 * 23  # days after the 20th of February and the 1st of March


def test_rows_of_training_are_not_used() -> None:
    table = louder()
    fc = femts.train(table[:ROWS], "ridge", 24, seq_len=96, refit=True)
    with pytest.raises(UsageError, match="have 0 rows after those of training, but a window has 24; give a table with"):
        fc.calibrate(dataset=table[: ROWS - 1])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = louder()
    table[:ROWS].to_csv(tmp_path / "mine.csv", index=False)
    table[:LATER].to_csv(tmp_path / "later.csv", index=False)
    run = tmp_path / "run"
    assert (
        main(f"train --dataset {tmp_path}/mine.csv --model ridge --horizon 24 --seq-len 96 --refit --out {run}".split())
        == 0
    )
    capsys.readouterr()
    assert main(["calibrate", str(run), str(tmp_path / "later.csv")]) == 0
    assert "for 24 steps, from 377 windows" in capsys.readouterr().out
    assert covered(femts.load(run), table) > 0.74
    assert main(["calibrate", str(run), str(tmp_path / "mine.csv")]) == 0  # as before
