"""Days and steps of several hours where clocks are set forward and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.effects import calendar_waves
from femts.data.frequency import future_dates, grid_of, last_dates, past_date, step_of, steps_between
from femts.data.known import _calendar
from femts.data.wall_clock import dates_at, instants

CHANGES = {  # a zone, and a day on which its clocks are set forward or back at midnight
    "cairo-spring": ("Africa/Cairo", "2024-04-26"),
    "cairo-autumn": ("Africa/Cairo", "2024-10-31"),
    "havana-spring": ("America/Havana", "2024-03-10"),
    "havana-autumn": ("America/Havana", "2024-11-03"),
    "santiago-spring": ("America/Santiago", "2024-09-08"),
    "santiago-autumn": ("America/Santiago", "2024-04-07"),
    "beirut-spring": ("Asia/Beirut", "2024-03-31"),
    "asuncion-spring": ("America/Asuncion", "2023-10-01"),
}
STEPS = ("D", "2D", "W-SUN", "MS", "12h", "6h", "2h")


def on_the_wall(zone: str, day: str, freq: str, before: int = 40, after: int = 20) -> pd.DatetimeIndex:
    """Time stamps of a step around a day, at its hours on the clocks of the zone."""
    middle = pd.Timestamp(day)
    wall = pd.date_range(end=middle, periods=before, freq=freq).append(
        pd.date_range(middle, periods=after + 1, freq=freq)
    )
    return instants(wall.unique(), zone)


@pytest.mark.parametrize("freq", STEPS)
@pytest.mark.parametrize("change", CHANGES)
def test_steps_continue_across_a_change_at_midnight(change: str, freq: str) -> None:
    whole = on_the_wall(*CHANGES[change], freq)
    assert step_of(whole) == freq
    assert list(grid_of(whole, freq)) == list(whole)
    assert list(grid_of(whole.delete([20, 30]), freq)) == list(whole)
    for last in range(15, len(whole) - 2):
        assert list(future_dates(whole[last], freq, 2)) == list(whole[last + 1 : last + 3])
        assert past_date(whole[last], freq, 10) == whole[last - 10]
        assert list(last_dates(whole[last : last + 1], freq, 5)) == list(whole[last - 4 : last + 1])
    assert steps_between(whole[3], whole[45], freq) == steps_between(str(whole[3]), str(whole[45]), freq) == 42


@pytest.mark.parametrize("zone", ["Africa/Cairo", "America/Havana", "America/Santiago"])
@pytest.mark.parametrize("panel", [False, True], ids=["wide", "panel"])
def test_days_of_such_zones_are_forecast(zone: str, panel: bool, tmp_path: Path) -> None:
    days = dates_at("D", pd.Timestamp("2023-06-01", tz=zone), periods=500)
    table = pd.DataFrame({"date": days, "y": np.sin(np.arange(500) * 2 * np.pi / 7)})
    if panel:
        table = pd.concat([table.assign(shop=shop) for shop in "ab"]).rename(
            columns={"date": "ds", "shop": "unique_id"}
        )
    time = "ds" if panel else "date"
    made = femts.train(table, "seasonal_naive", 14, seq_len=28, freq="D")
    for last in (330, 470, 499):
        history = table[table[time] <= days[last]]
        forecast = made.predict(history)
        expected = dates_at("D", days[last], periods=15)[1:]
        assert list(forecast[time].unique()) == list(expected)
        np.testing.assert_allclose(
            forecast["y"].head(14), np.sin(np.arange(last + 1, last + 15) * 2 * np.pi / 7), atol=1e-6
        )
    table.to_csv(tmp_path / "days.csv", index=False)
    data = femts.load_dataset(tmp_path / "days.csv")
    assert data.freq == "D" and str(pd.DatetimeIndex(data.stamps)[0]) == "2023-06-01 00:00:00"


@pytest.mark.parametrize("freq", ["2h", "3h", "6h", "12h"])
@pytest.mark.parametrize("start", ["2024-03-20", "2024-10-20"], ids=["spring", "autumn"])
def test_hours_are_those_of_the_wall_clock(freq: str, start: str) -> None:
    first = pd.Timestamp(start, tz="Europe/Berlin")
    rows = pd.date_range(first, periods=20 * 96, freq="15min")
    data = femts.load_dataset(pd.DataFrame({"date": rows, "y": np.arange(len(rows)) % 7.0}), freq=freq)
    stamps = pd.DatetimeIndex(data.stamps)
    step = int(freq[:-1])
    odd = stamps[stamps.hour % step != 0]
    assert list(odd.strftime("%m-%d %H:%M")) == (["03-31 03:00"] if start == "2024-03-20" and freq == "2h" else [])
    assert step_of(stamps) == freq and data.freq == freq
    assert list(future_dates(stamps[10], freq, len(stamps) - 11)) == list(stamps[11:])
    kept = femts.load_dataset(pd.DataFrame({"date": stamps, "y": np.arange(len(stamps)) * 1.0}), freq=freq)
    np.testing.assert_array_equal(kept.values[:, 0], np.arange(len(stamps)))


def test_hours_that_do_not_count_from_midnight_keep_their_distances() -> None:
    even = pd.date_range("2024-03-20", periods=60, freq="12h", tz="UTC").tz_convert("Europe/Berlin")
    assert step_of(even) == "12h" and list(grid_of(even, "12h")) == list(even)
    assert list(future_dates(even[10], "12h", 40)) == list(even[11:51])
    two = pd.date_range("2024-03-20", periods=200, freq="2h", tz="UTC").tz_convert("Europe/Berlin")
    assert list(grid_of(two, "2h")) == list(two)
    hours = pd.date_range("2024-10-26", periods=60, freq="h", tz="Europe/Berlin")
    assert step_of(hours) == "h" and list(future_dates(hours[20], "h", 20)) == list(hours[21:41])


@pytest.mark.parametrize("change", ["cairo-spring", "havana-autumn", "santiago-spring"])
@pytest.mark.parametrize("freq", ["D", "W-SUN", "MS", "12h"])
def test_readings_are_averaged_over_the_days_of_such_zones(change: str, freq: str) -> None:
    zone, day = CHANGES[change]
    begin = (pd.Timestamp(day) - pd.Timedelta(days=60)).tz_localize(zone)
    rows = pd.date_range(begin, periods=120 * 24 * 4 + 8, freq="15min")
    table = pd.DataFrame({"date": rows, "y": rows.tz_localize(None).normalize().day_of_year * 1.0})
    for how in ("mean", "sum"):
        data = femts.load_dataset(table, freq=freq, aggregate=how)
        stamps = pd.DatetimeIndex(data.stamps)
        assert list(stamps) == list(grid_of(stamps, freq))
        if freq == "D" and how == "mean":
            np.testing.assert_array_equal(data.values[:, 0], stamps.day_of_year)
            assert stamps[60] == instants(pd.DatetimeIndex([day]), zone)[0]


def test_days_from_the_second_midnight_on_are_days() -> None:
    wall = pd.date_range("2024-10-01", periods=60)
    second = wall.tz_localize("America/Havana", ambiguous=np.zeros(60, dtype=bool))
    data = femts.load_dataset(pd.DataFrame({"date": second, "y": np.arange(60.0)}))
    assert data.freq == "D" and list(data.stamps) == list(instants(wall, "America/Havana"))  # type: ignore[arg-type]


@pytest.mark.parametrize("change", CHANGES)
def test_calendar_features_show_the_clock(change: str) -> None:
    zone, day = CHANGES[change]
    begin = (pd.Timestamp(day) - pd.Timedelta(days=2)).tz_localize(zone)
    hours = pd.date_range(begin, periods=96, freq="h")
    sine, cosine = _calendar(hours, ("hour",)).T
    np.testing.assert_allclose(np.arctan2(sine, cosine) / 2 / np.pi * 24 % 24 % 23.999999, hours.hour, atol=1e-5)
    assert np.isfinite(np.stack(calendar_waves(hours))).all()
    table = pd.DataFrame({"date": hours, "y": np.sin(np.arange(96.0))})
    made = femts.train(table, "ridge", 4, seq_len=8, calendar=True)
    assert len(made.predict(table)) == 4


def test_a_test_split_may_begin_on_a_day_without_midnight() -> None:
    days = dates_at("D", pd.Timestamp("2024-01-01", tz="Africa/Cairo"), periods=160)
    data = femts.load_dataset(pd.DataFrame({"date": days, "y": np.arange(160.0)}), test_from="2024-04-26")
    assert pd.DatetimeIndex(data.stamps)[data.split.test[0, 0]] == days[116]
