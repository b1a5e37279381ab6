"""Time zones of calendar features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.errors import UsageError

ROWS, ZONE = 24 * 7 * 8, "Europe/Berlin"
QUICK: dict[str, Any] = {"pred_len": 24, "seq_len": 48, "max_steps": 1, "device": "cpu"}


def table(zone: str | None = ZONE, days: bool = False) -> pd.DataFrame:
    """`load` is higher by 8 in working hours of Berlin, across a DST change."""
    when = pd.date_range("2024-02-20", periods=ROWS, freq="D" if days else "h", tz="Europe/Berlin")
    noise = 0.1 * np.random.default_rng(0).normal(size=ROWS)
    work = (when.dayofweek < 5) & (days | ((when.hour >= 8) & (when.hour < 17)))
    wave = np.zeros(ROWS) if days else np.sin(2 * np.pi * np.arange(ROWS) / 24)
    when = when.tz_convert(zone) if zone else when.tz_localize(None)
    return pd.DataFrame({"date": when, "load": wave + noise + 8 * work})


def as_panel(frame: pd.DataFrame) -> pd.DataFrame:
    long = frame.rename(columns={"date": "ds", "load": "y"})
    return pd.concat([long.assign(unique_id=name, y=long["y"] * size) for name, size in (("a", 1), ("b", 3))])


def trained(frame: pd.DataFrame, **more: Any) -> Any:
    return femts.train(femts.load_dataset(frame, calendar=True), "ridge", **QUICK | more)


def load(forecast: pd.DataFrame) -> Any:
    return forecast.select_dtypes("number").to_numpy()


@pytest.fixture(scope="module")
def berlin(tmp_path_factory: pytest.TempPathFactory) -> femts.Forecaster:
    folder = tmp_path_factory.mktemp("zones") / "run"
    trained(table()).save(folder)
    return femts.Forecaster.load(folder)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "UTC+02:00"])
def test_time_zone_does_not_change_the_forecast(berlin: femts.Forecaster, zone: str) -> None:
    usual, other = berlin.predict(table()), berlin.predict(table(zone))
    np.testing.assert_allclose(load(other), load(usual))
    assert (other["date"] == usual["date"].dt.tz_convert(zone)).all() and str(other["date"].dt.tz) == zone


def test_time_zone_does_not_change_a_panel_forecast() -> None:
    forecaster = femts.train(femts.load_dataset(as_panel(table()), calendar=True), "ridge", **QUICK)
    usual, other = (forecaster.predict(as_panel(table(zone))) for zone in (ZONE, "UTC"))
    np.testing.assert_allclose(load(other), load(usual))
    with pytest.raises(
        UsageError, match="have no time zone, but the calendar features were trained on stamps in Europe/Berlin"
    ):
        forecaster.predict(as_panel(table(None)[-200:]))


def test_time_zone_mismatch_is_refused(berlin: femts.Forecaster) -> None:
    naive = table(None)[: 24 * 7 * 5]  # the clock of Berlin until it is set
    with pytest.raises(
        UsageError, match="have no time zone, but the calendar features were trained on stamps in Europe/Berlin"
    ):
        berlin.predict(naive)
    with pytest.raises(
        UsageError, match="have the time zone UTC, but the calendar features were trained on stamps without one"
    ):
        trained(naive).predict(table("UTC"))


def test_csv_across_a_dst_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table()
    frame.assign(date=frame["date"].map(lambda stamp: stamp.isoformat())).to_csv("berlin.csv", index=False)
    arguments = "--dataset berlin.csv --calendar --model ridge --horizon 24 --seq-len 48 --out run"
    assert main(f"train {arguments}".split()) == 0
    assert main("predict run berlin.csv -o out.csv".split()) == 0
    written = pd.read_csv("out.csv")
    assert written["date"].str.endswith("+00:00").all()
    forecaster = femts.load("run")
    expected = load(forecaster.predict(table("UTC")))
    np.testing.assert_allclose(load(written), expected)
    np.testing.assert_allclose(load(forecaster.predict(pd.read_csv("berlin.csv"))), expected)


def test_daily_midnights_need_no_time_zone() -> None:
    frame = table(days=True)
    frame["date"] = frame["date"].map(lambda stamp: stamp.isoformat())  # at two offsets, so they are taken as days
    forecaster = trained(frame)
    expected = load(forecaster.predict(table(None, days=True)))
    np.testing.assert_array_equal(load(forecaster.predict(table(days=True))), expected)
    np.testing.assert_array_equal(load(forecaster.predict(frame[-48:])), expected)
