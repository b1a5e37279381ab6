"""Warnings about changed units."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main

HOUR = np.arange(600)
NOISE = np.random.default_rng(0).standard_normal(600)
RECENT = {  # values of the last 100 rows, which were not learned from, beside 500 that were
    "drift": np.where(HOUR < 500, 20 + NOISE, 40 + 5 * NOISE),
    "trend": 0.05 * HOUR + NOISE,
    "jump": np.where(HOUR < 500, 1000 + NOISE, 2000 + NOISE),
    "jump of noise": NOISE + 30 * (HOUR >= 500),
    "growth": np.exp(HOUR / 100),
    "launch": np.where(HOUR < 500, 0.0, 1000 + NOISE),
    "quiet": np.where(HOUR < 500, (10 * np.sin(HOUR)).clip(0), 0.01),
    "ended": np.where(HOUR < 500, 1000 + NOISE, 0.0),
    "spike": np.where(HOUR == 590, 1e6, 20 + NOISE),
}


def table(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"date": pd.date_range("2024", periods=len(values), freq="h"), "y": values})


def unit_warnings(forecaster: femts.Forecaster | femts.Forecaster, history: pd.DataFrame) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forecaster.predict(history)
    return [str(each.message) for each in caught if issubclass(each.category, femts.UnitsWarning)]


def test_trends_and_jumps_do_not_warn_of_units() -> None:
    for name in RECENT:
        data = femts.load_dataset(table(RECENT[name]), test_rows=100, val_rows=50)
        assert not unit_warnings(femts.train(data, "naive", 12, seq_len=24), table(RECENT[name]))


def test_history_in_another_unit_warns() -> None:
    for transform in ["none", "log1p"]:
        for factor, says in [
            (1000, "1,000 times as large"),
            (100, "100 times as large"),
            (0.001, "1,000 times as small"),
        ]:
            values = table(200 + 10 * NOISE)
            forecaster = femts.train(femts.load_dataset(values, transform=transform), "naive", 12, seq_len=24)
            (hint,) = unit_warnings(forecaster, values.assign(y=factor * values["y"]))
            assert hint == f"The recent history is some {says} as the training rows in 'y'; check its units."


def test_units_are_checked_per_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = {"a": 200 + NOISE, "b": 200_000 + NOISE, "c": NOISE}
    long = pd.concat([table(values).assign(unique_id=name) for name, values in series.items()])
    long = long.rename(columns={"date": "ds"})
    femts.train(long, "naive", 12, seq_len=24).save(tmp_path / "run")
    forecaster = femts.load(tmp_path / "run")
    assert not unit_warnings(forecaster, long)
    assert not unit_warnings(forecaster, long.assign(unique_id=long["unique_id"] + "-new"))
    later = long.assign(y=long["y"] * np.where(long["unique_id"] == "a", 1000, 1))
    assert unit_warnings(forecaster, later) == [
        "The recent history is some 1,000 times as large as the training rows in 'a'; check its units."
    ]
    later.to_csv(tmp_path / "later.csv", index=False)
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "later.csv")]) == 0
    assert "note: The recent history is some 1,000 times as large as" in capsys.readouterr().err
