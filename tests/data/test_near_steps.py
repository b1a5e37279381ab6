"""Stamps close to even steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.frequency import step_of
from femts.data.stamps import first_of_periods, read_stamps
from femts.data.wall_clock import instants
from femts.errors import UsageError

NOTE = "off the step"
LOGGERS = {  # step, when steps begin after it, and the most seconds that a stamp is off
    "weeks": ("W-SUN", "0h", 3),
    "weeks-at-noon": ("W-WED", "12h", 30),
    "two-weeks": ("2W-FRI", "0h", 4),
    "days": ("D", "0h", 30),
    "days-in-the-morning": ("D", "6h", 200),
    "business-days": ("B", "9h", 3),
    "half-days": ("12h", "0h", 4),
    "hours": ("h", "0h", 3),
    "hours-at-half-past": ("h", "30min", 20),
    "quarters-of-an-hour": ("15min", "0h", 9),
    "seven-minutes": ("7min", "0h", 2),
    "minutes": ("min", "0h", 1),
    "months": ("MS", "0h", 3),
    "ends-of-months": ("ME", "0h", 3),
}


def stamps_of(name: str, rows: int = 200) -> tuple[str, pd.DatetimeIndex, pd.DatetimeIndex]:
    """A step, time stamps at it, and those of a logger."""
    freq, begin, most = LOGGERS[name]
    even = pd.date_range("2024-01-01", periods=rows, freq=freq) + pd.Timedelta(begin)
    late = np.random.default_rng(0).integers(-most, most + 1, rows)
    return freq, even.as_unit("us"), (even + pd.to_timedelta(late, unit="s")).as_unit("us")


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"], ids=["naive", "zoned"])
@pytest.mark.parametrize("name", LOGGERS)
def test_stamps_seconds_off_a_step_keep_it(name: str, zone: str | None) -> None:
    freq, even, late = stamps_of(name)
    if zone is not None and freq in ("h", "15min", "min", "7min"):
        even, late = (each.tz_localize("UTC").tz_convert(zone) for each in (even, late))
    elif zone is not None:
        even, late = instants(even, zone), instants(late, zone)
    gone = [20, 21, 70]
    assert step_of(late.delete(gone)) == freq
    read, notes = first_of_periods(late.delete(gone), freq)
    assert list(read) == list(even.delete(gone)) and len(notes) == 1
    mixed = np.random.default_rng(1).permutation(len(late))
    again, notes = read_stamps(pd.Series(late[mixed]), freq=freq)
    assert list(again) == list(even[mixed]) and len(notes) == 1
    assert first_of_periods(even, freq) == (even, ()) or not first_of_periods(even, freq)[1]


@pytest.mark.parametrize("name", ["weeks", "hours", "days", "minutes"])
def test_a_logger_is_forecast_at_its_step(name: str, tmp_path: Path) -> None:
    freq, even, late = stamps_of(name)
    table = pd.DataFrame({"date": late, "y": np.arange(200) % 7.0})
    table.to_csv(tmp_path / "logger.csv", index=False)
    for source in (table, tmp_path / "logger.csv"):
        data = femts.load_dataset(source)
        assert data.freq == freq and list(data.stamps) == list(even)  # type: ignore[arg-type]
        assert [NOTE in note for note in data.notes].count(True) == 1 and not np.isnan(data.values).any()
    made = femts.train(table, "seasonal_naive", 4, seq_len=28, settings={"model.season": 7})
    exact = made.predict(table.assign(date=even))
    for history in (table, table.tail(30), table.sample(frac=1, random_state=0)):
        pd.testing.assert_frame_equal(made.predict(history), exact)
    given = femts.load_dataset(table, freq=freq)
    assert list(given.stamps) == list(even)  # type: ignore[arg-type]
    panel = pd.concat([table.assign(unique_id=name, date=late[::step]) for name, step in (("a", 1), ("b", -1))])
    many = femts.load_dataset(panel.rename(columns={"date": "ds"}))
    assert many.freq == freq and [len(many[each].values) for each in "ab"] == [200, 200]
    assert list(pd.DatetimeIndex(many.stamps).unique()) == list(even)


@pytest.mark.parametrize(("days", "minutes", "rows"), [(7, -4.13, 400), (7, 2.5, 300), (1, -3.9, 90), (1, 3.0, 100)])
def test_weeks_and_days_may_drift(days: int, minutes: float, rows: int) -> None:
    apart = pd.Timedelta(days=days) + pd.Timedelta(minutes=minutes)
    late = (pd.Timestamp("2015-01-07 12:00", tz="UTC") + pd.TimedeltaIndex(np.arange(rows) * apart)).round("7s")
    data = femts.load_dataset(pd.DataFrame({"date": late, "y": np.arange(rows) * 1.0}))
    assert data.freq == ("D" if days == 1 else data.freq) and len(data.values) == rows
    assert str(data.freq).startswith("W-") or days == 1
    assert (np.abs(pd.DatetimeIndex(data.stamps) - late) < pd.Timedelta(days=days) * (1 if days == 1 else 0.25)).all()
    tail, _ = read_stamps(pd.Series(late[-20:]), freq=data.freq)
    assert list(tail) == list(data.stamps)[-20:]  # type: ignore[arg-type]


UNEVEN = {  # a step, seconds at most off it, and what is wrong
    "a-minute-of-an-hour": ("h", 90),
    "a-tenth-of-the-step": ("10s", 1),
    "a-quarter-of-an-hour": ("h", 900),
    "an-hour-of-a-day": ("D", 3600),
    "minutes-of-a-minute": ("min", 20),
    "a-day-of-a-week": ("W-SUN", 86_400),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_stamps_further_off_are_refused(name: str) -> None:
    freq, most = UNEVEN[name]
    late = np.random.default_rng(0).integers(-most, most + 1, 200)
    stamps = (pd.date_range("2024-01-07", periods=200, freq=freq) + pd.to_timedelta(late, unit="s")).unique()
    with pytest.raises(UsageError, match="irregular time stamps"):
        step_of(stamps.sort_values())
    assert first_of_periods(stamps, freq) == (stamps, ()) or first_of_periods(stamps, freq)[0].equals(stamps)


def test_one_stamp_off_the_grid_is_located() -> None:
    hours = pd.date_range("2024-01-01", periods=200, freq="h")
    one = hours + pd.to_timedelta(60 * (np.arange(200) == 180), unit="s")
    with pytest.raises(UsageError, match="irregular time stamps: 2024-01-08 11:00:00 and 2024-01-08 12:01:00"):
        step_of(one)
    assert first_of_periods(one, "h")[0] is one


def test_two_stamps_at_the_same_step_are_refused_or_averaged() -> None:
    stamps = pd.date_range("2024-01-01", periods=100, freq="h") + pd.Timedelta("3s")
    twice = stamps.insert(40, stamps[39] + pd.Timedelta("5s"))
    table = pd.DataFrame({"date": twice, "y": np.arange(101.0)})
    data = femts.load_dataset(table)
    assert any("rows are about 60 minutes apart, so the step is '1h'" in note for note in data.notes)
    data = femts.load_dataset(table, freq="h")
    assert len(data.values) == 100 and data.values[39, 0] == 39.5


def test_exact_stamps_of_series_keep_their_minutes() -> None:
    hours = pd.date_range("2024-01-01", periods=60, freq="h")
    panel = pd.concat(
        [
            pd.DataFrame({"unique_id": name, "ds": hours + pd.Timedelta(minutes=late), "y": np.arange(60.0)})
            for name, late in (("a", 0), ("b", 17))
        ]
    )
    data = femts.load_dataset(panel)
    assert data.freq == "h" and list(data["b"].stamps) == list(hours + pd.Timedelta("17min"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("days", "says"), [(7, "'W'"), (30, "'MS'"), (1, "'1D'")])
def test_remedy_for_uneven_rows_is_their_usual_step(days: int, says: str) -> None:
    late = np.random.default_rng(0).integers(-days * 3, days * 3, 100)
    stamps = pd.date_range("2024-01-01", periods=100, freq=f"{days}D") + pd.to_timedelta(late, unit="h")
    with pytest.raises(UsageError, match=f"freq={says}"):
        step_of(stamps)
