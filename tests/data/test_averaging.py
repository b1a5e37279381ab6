"""Rows that are averaged over the steps of `freq`, because they do not keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.errors import UsageError

NOTE = "do not keep the step"


def readings(n: int = 4000, seconds: float = 60.0, tz: str | None = "Europe/Berlin") -> pd.DataFrame:
    """Rows at random distances of about `seconds`, with gaps, a sentinel and a covariate known in advance."""
    rng = np.random.default_rng(0)
    since = pd.to_timedelta(np.cumsum(rng.uniform(0.5, 1.5, n) * seconds), unit="s")
    when = pd.Timestamp("2024-03-30 22:17", tz=tz) + since
    day = 2 * np.pi * np.arange(n) * seconds / 86400
    table = pd.DataFrame({"time": when, "load": 9 + np.sin(day) + 0.1 * rng.normal(size=n), "open": (day // 1) % 2})
    table.loc[5:8, "load"] = np.nan
    table.loc[70, "load"] = -999
    return table


@pytest.mark.parametrize("freq", ["15min", "h", "7min", "4h"])
@pytest.mark.parametrize("tz", [None, "Europe/Berlin", "Asia/Kolkata"])
def test_frequent_rows_are_averaged_over_the_steps_they_lie_in(freq: str, tz: str | None) -> None:
    table = readings(tz=tz)
    data = femts.load_dataset(table, columns={"time": "time"}, freq=freq, na=-999)
    assert data.freq == freq and any(NOTE in note for note in data.notes)
    assert isinstance(data.stamps, pd.DatetimeIndex)
    step = pd.Timedelta(1, "h") if freq == "h" else pd.Timedelta(freq)
    for row, stamp in enumerate(data.stamps):
        inside = table[(table["time"] >= stamp) & (table["time"] < stamp + step)].replace(-999, np.nan)
        np.testing.assert_allclose(data.values[row], inside[["load", "open"]].mean().to_numpy(), rtol=1e-12)
    if freq != "7min":
        assert (data.stamps.minute % {"15min": 15}.get(freq, 60) == 0).all()


def test_jittered_rows_move_to_the_nearest_step() -> None:
    steps = pd.date_range("2024-01-01", periods=300, freq="15min")
    jitter = pd.to_timedelta(np.random.default_rng(0).uniform(-200, 200, 300), unit="s")
    table = pd.DataFrame({"date": steps + jitter, "y": np.sin(np.arange(300.0))})
    with pytest.raises(UsageError, match="average the rows over even steps with --freq 15min or the like, or give"):
        femts.load_dataset(table)
    data = femts.load_dataset(table.drop(index=[7, 8]), freq="15min")
    assert data.stamps is not None and data.stamps.equals(steps.as_unit(data.stamps.unit))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(data.values[:, 0], table["y"].where(~table.index.isin([7, 8])))


@pytest.mark.parametrize(("freq", "first"), [("W-SUN", "2024-01-07"), ("MS", "2024-01-01"), ("D", "2024-01-01")])
def test_steps_of_the_calendar(freq: str, first: str) -> None:
    hours = pd.date_range("2024-01-01 00:30", periods=24 * 120, freq="h", tz="Europe/Berlin")
    values = np.random.default_rng(0).normal(size=len(hours))
    data = femts.load_dataset(pd.DataFrame({"date": hours, "y": values}), freq=freq)
    expected = pd.Series(values, hours).resample(freq).mean()
    np.testing.assert_allclose(data.values[:, 0], expected)
    assert data.stamps is not None and data.stamps[0] == pd.Timestamp(first, tz="Europe/Berlin")


def test_rows_on_the_steps_are_unchanged() -> None:
    table = pd.DataFrame({"date": pd.date_range("2024-01-01 00:07", periods=99, freq="h"), "y": np.arange(99.0)})
    data = femts.load_dataset(table.drop(index=4), freq="h")
    assert not any(NOTE in note for note in data.notes) and data.stamps is not None
    assert str(data.stamps[0]) == "2024-01-01 00:07:00" and np.isnan(data.values[4, 0])


def test_repeated_or_too_sparse_rows_are_refused() -> None:
    table = readings()
    how: Any = {"columns": {"time": "time"}}
    with pytest.raises(UsageError, match="keep one row per date"):
        femts.load_dataset(pd.concat([table, table.tail(1)]), freq="h", **how)
    with pytest.raises(UsageError, match=r"step 's' of --freq .* nine in ten of the stamps are missing"):
        femts.load_dataset(table, freq="s", **how)
    with pytest.raises(UsageError, match="has the text 'off' in column 'load'"):
        femts.load_dataset(table.astype({"load": object}).replace({"load": {-999: "off"}}), freq="h", **how)


def test_a_run_averages_the_tables_that_it_is_given(tmp_path: Path) -> None:
    table = readings()
    data = femts.load_dataset(table, columns={"time": "time"}, freq="15min", na=-999, future_covariates="open")
    forecaster = femts.train(data, "ridge", 8, seq_len=48, out=tmp_path / "run")
    ahead = readings(600).assign(time=lambda rows: rows["time"] + (table["time"].iloc[-1] - rows["time"].iloc[0]))
    forecast = forecaster.predict(table, future=ahead)
    regular = data.frame()
    quarters = ahead.assign(time=ahead["time"].dt.floor("15min")).groupby("time", as_index=False)["open"].mean()
    pd.testing.assert_frame_equal(forecast, forecaster.predict(regular, future=quarters))
    ours, theirs = (femts.backtest(forecaster, rows, n_windows=3) for rows in (table, regular))
    pd.testing.assert_frame_equal(ours, theirs)
    table.to_csv(tmp_path / "readings.csv", index=False)
    ahead.to_csv(tmp_path / "ahead.csv", index=False)
    command = ["predict", tmp_path / "run", tmp_path / "readings.csv", "--future", tmp_path / "ahead.csv"]
    assert main([*map(str, command), "--out", str(tmp_path / "next.csv")]) == 0
    written = pd.read_csv(tmp_path / "next.csv")
    np.testing.assert_allclose(written["load"], forecast["load"], rtol=1e-9)
    assert list(pd.to_datetime(written["time"], utc=True)) == list(forecast["time"])


def test_a_run_with_an_explicit_step_averages_later_readings() -> None:
    steps = pd.date_range("2024-01-01", periods=400, freq="15min")
    table = pd.DataFrame({"date": steps, "y": np.random.default_rng(0).normal(size=400)})
    late = table.assign(date=steps + pd.to_timedelta(np.arange(400) % 7, unit="s"))
    expected = femts.train(table, "ridge", 4, seq_len=24, freq="15min").predict(table)
    pd.testing.assert_frame_equal(femts.train(table, "ridge", 4, seq_len=24, freq="15min").predict(late), expected)
    with pytest.raises(
        UsageError, match=r"'15min' of the training data .*, or train with --freq 15min, which averages"
    ):
        femts.train(table, "ridge", 4, seq_len=24).predict(late)


def test_series_of_a_panel_are_averaged_separately() -> None:
    parts = [readings(900 + 50 * n).assign(host=name, room=n + 0.1) for n, name in enumerate("ba")]
    panel = pd.concat(parts).sample(frac=1, random_state=0)
    columns = {"time": "time", "series": "host"}
    roles: Any = {"target": "load", "static_covariates": "room", "na": -999}
    data = femts.load_dataset(panel, columns=columns, freq="h", **roles)
    assert len(data) == 2 and data.static is not None and any(NOTE in note for note in data.notes)
    for name, part in zip("ba", parts, strict=True):
        alone = femts.load_dataset(part[["time", "load"]], columns={"time": "time"}, freq="h", na=-999)
        start, stop = data.spans[data.series.index(name)]
        np.testing.assert_allclose(data.values[start:stop], alone.values)
