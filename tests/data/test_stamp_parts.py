"""Dates with hours, clocks and hours named by their ends in other columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.errors import UsageError

HOURS = pd.date_range("2024-01-30", periods=24 * 12, freq="h")
QUARTERS = pd.date_range("2024-01-30", periods=96 * 6, freq="15min")
DAYS = HOURS.strftime("%Y-%m-%d")
LOAD = np.sin(np.arange(len(HOURS)) / 5) + np.arange(len(HOURS)) % 24
ENDS = HOURS.hour + 1

BY_ENDS: dict[str, dict[str, Any]] = {
    "he": {"Date": DAYS, "HE": ENDS},
    "hour-ending": {"Date": DAYS, "Hour Ending": ENDS},
    "with-a-zone": {"Delivery Date": DAYS, "Hour_Ending (EST)": ENDS.astype(float)},
    "clocks": {"OperDay": HOURS.strftime("%Y/%m/%d"), "HourEnding": [f"{hour:02d}:00" for hour in ENDS]},
    "he01": {"date": DAYS, "hour": [f"HE{hour:02d}" for hour in ENDS]},
    "he-1": {"date": DAYS, "Hour Ending": [f"HE {hour}" for hour in ENDS]},
    "digits": {"Date": DAYS, "Hour Ending": ENDS * 100},
}
CLOCKS: dict[str, tuple[pd.DatetimeIndex, dict[str, Any]]] = {
    "0-2300": (HOURS, {"date": DAYS, "time": HOURS.hour * 100}),
    "0000-2300-text": (HOURS, {"date": DAYS, "hhmm": [f"{hour:02d}00" for hour in HOURS.hour]}),
    "0100-2400": (HOURS + pd.Timedelta("1h"), {"Date": DAYS, "Hour (PST)": ENDS * 100}),
    "0100-2400-text": (HOURS + pd.Timedelta("1h"), {"Date": DAYS, "time": [f"{hour:02d}00" for hour in ENDS]}),
    "0015-2345": (
        QUARTERS,
        {"LST_DATE": QUARTERS.strftime("%Y%m%d").astype(int), "LST_TIME": QUARTERS.hour * 100 + QUARTERS.minute},
    ),
    "dots": (HOURS, {"Date": HOURS.strftime("%d/%m/%Y"), "Time": HOURS.strftime("%H.%M.%S")}),
    "dots-and-dots": (HOURS, {"Datum": HOURS.strftime("%d.%m.%Y"), "Uhrzeit": HOURS.strftime("%H.%M.%S")}),
    "dots-of-one-digit": (HOURS, {"Date": HOURS.strftime("%d/%m/%Y"), "Time": [f"{h}.00.00" for h in HOURS.hour]}),
    "hour-as-clock": (HOURS, {"date": DAYS, "hour": HOURS.strftime("%H:%M")}),
    "spanish": (HOURS, {"fecha": HOURS.strftime("%d/%m/%Y"), "hora": HOURS.hour}),
    "satellites": (HOURS, {"YEAR": HOURS.year, "MO": HOURS.month, "DY": HOURS.day, "HR": HOURS.hour}),
    "portuguese": (HOURS, {"ano": HOURS.year, "m\u00eas": HOURS.month, "dia": HOURS.day, "hora": HOURS.hour}),
    "parts": (HOURS, {"YR": HOURS.year, "Mo": HOURS.month, "day_of_month": HOURS.day, "Hour": HOURS.hour}),
}


@pytest.mark.parametrize("name", BY_ENDS)
def test_hour_1_is_the_first_of_the_day(name: str, tmp_path: Path) -> None:
    table = pd.DataFrame({**BY_ENDS[name], "load": LOAD})
    table.to_csv(tmp_path / "he.csv", index=False)
    for source in (table, tmp_path / "he.csv"):
        data = femts.load_dataset(source)
        assert data.columns == ("load",) and list(data.stamps) == list(HOURS)  # type: ignore[arg-type]
        assert data.notes[0].endswith("are combined into time stamps; hour 1 is read as 00:00 to 01:00")
    made = femts.train(table, "naive", 4, seq_len=8)
    for rows in (24, 8, 2):
        assert made.predict(table.tail(rows))["date"].iloc[0] == HOURS[-1] + pd.Timedelta("1h")


@pytest.mark.parametrize("name", CLOCKS)
def test_clocks_beside_dates_are_combined(name: str, tmp_path: Path) -> None:
    stamps, parts = CLOCKS[name]
    table = pd.DataFrame({**parts, "load": np.sin(np.arange(len(stamps)) / 5)})
    table.to_csv(tmp_path / "clocks.csv", index=False)
    for source in (table, tmp_path / "clocks.csv"):
        data = femts.load_dataset(source)
        assert data.columns == ("load",) and list(data.stamps) == list(stamps)  # type: ignore[arg-type]
        assert any(note.endswith("are combined into time stamps") for note in data.notes)


def test_hours_of_a_day_in_columns_are_rows() -> None:
    wide = pd.DataFrame(LOAD.reshape(-1, 24), columns=[f"HE{hour:02d}" for hour in range(1, 25)])
    wide.insert(0, "Date", DAYS[::24])
    data = femts.load_dataset(wide)
    assert data.columns == ("y",) and list(data.stamps) == list(HOURS)  # type: ignore[arg-type]
    np.testing.assert_array_equal(data.values[:, 0], LOAD)
    assert data.notes[0] == "columns 'HE01' to 'HE24' are read as hours of the column 'y'"
    made = femts.train(wide, "seasonal_naive", 24, seq_len=48)
    assert list(made.predict(wide)["y"].round(4)) == list(LOAD[-24:].round(4))


CLOCK_COLUMNS = {
    "starts": [f"{hour}:00" for hour in range(24)],
    "periods": [f"{hour:02d}:00 - {hour + 1:02d}:00" for hour in range(24)],
    "ends": [f"{hour:02d}:00" for hour in range(1, 25)],
    "ends up to midnight": [f"{hour % 24:02d}:00" for hour in range(1, 25)],
}


@pytest.mark.parametrize("name", CLOCK_COLUMNS)
def test_times_of_day_in_columns_are_rows(name: str, tmp_path: Path) -> None:
    wide = pd.DataFrame(LOAD.reshape(-1, 24), columns=CLOCK_COLUMNS[name])
    wide.insert(0, "Day", DAYS[::24])
    wide["kWh"] = LOAD.reshape(-1, 24).sum(1)
    wide.to_csv(tmp_path / "meter.csv", index=False)
    data = femts.load_dataset(tmp_path / "meter.csv")
    assert data.columns == ("y",) and list(data.stamps) == list(HOURS)  # type: ignore[arg-type]
    np.testing.assert_array_equal(data.values[:, 0], LOAD)
    assert "kWh is left out, since the times of day hold the values" in data.notes
    assert any("is read as the end of a step" in note for note in data.notes) == name.startswith("ends")
    made = femts.train(wide, "seasonal_naive", 24, seq_len=48)
    assert list(made.predict(wide)["y"].round(4)) == list(LOAD[-24:].round(4))


def test_start_of_a_period_is_its_time_stamp(tmp_path: Path) -> None:
    table = pd.DataFrame({"TYPE": "usage", "DATE": HOURS.strftime("%m/%d/%Y"), "START TIME": HOURS.strftime("%H:%M")})
    table["END TIME"], table["USAGE"] = (HOURS + pd.Timedelta("59min")).strftime("%H:%M"), LOAD
    table.to_csv(tmp_path / "meter.csv", index=False)
    data = femts.load_dataset(tmp_path / "meter.csv")
    assert data.columns == ("USAGE",) and list(data.stamps) == list(HOURS)  # type: ignore[arg-type]
    assert data.notes[0] == "columns 'DATE' and 'START TIME' are combined into time stamps"


def test_some_times_of_day_stay_columns() -> None:
    wide = pd.DataFrame(LOAD.reshape(-1, 24)[:, 6:18], columns=[f"{hour:02d}:00" for hour in range(6, 18)])
    wide.insert(0, "date", DAYS[::24])
    assert femts.load_dataset(wide).freq == "D"


def test_stations_by_hour_ending_are_series() -> None:
    table = pd.concat([pd.DataFrame({**BY_ENDS["he"], "zone": zone, "load": LOAD}) for zone in ("north", "south")])
    data = femts.load_dataset(table)
    assert data.series == ("north", "south") and list(data["south"].stamps) == list(HOURS)  # type: ignore[arg-type]


NO_CLOCKS: dict[str, dict[str, Any]] = {
    "a-row-a-day": {"date": DAYS[::24], "time": np.arange(12) * 100},
    "minutes-over-59": {"date": DAYS, "time": np.arange(len(HOURS)) % 24 * 75 + 1},
    "hour-25": {"date": DAYS, "HE": np.where(np.arange(len(HOURS)) == 50, 25, ENDS)},
    "hours-over-24": {"date": DAYS, "time": np.arange(len(HOURS)) % 24 * 200},
}


@pytest.mark.parametrize("name", NO_CLOCKS)
def test_other_numbers_beside_dates_are_kept(name: str) -> None:
    table = pd.DataFrame({**NO_CLOCKS[name], "load": LOAD[: len(NO_CLOCKS[name]["date"])]})
    if name == "a-row-a-day":
        assert femts.load_dataset(table, target=["time", "load"]).columns == ("time", "load")
    else:
        with pytest.raises(UsageError, match="date"):
            femts.load_dataset(table)
