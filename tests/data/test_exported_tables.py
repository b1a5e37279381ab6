"""Tables as monitoring, banks, weather services and shops export them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.frequency import round_step

WAVE = np.round(50 + 10 * np.sin(np.arange(96)) + np.arange(96) % 5, 2)
HOURS = pd.date_range("2024-01-01", periods=96, freq="h")
TIMES = HOURS.strftime("%Y-%m-%dT%H:%M:%SZ")
UNIX = HOURS.as_unit("s").asi8


def lines(*rows: Any, mark: str = ",") -> str:
    return "".join(mark.join(map(str, row)) + "\n" for row in rows)


def read(folder: Path, text: str, name: str = "mine.csv", **reading: Any) -> femts.Dataset:
    (folder / name).write_text(text, encoding="utf-8")
    return femts.load_dataset(folder / name, **reading)


WITHOUT_HEADER: dict[str, tuple[list[tuple[Any, ...]], str]] = {  # rows, and the column of the wave
    "Unix time": ([(time, y, "Mbit") for time, y in zip(UNIX, WAVE, strict=True)], "column 2"),
    "milliseconds": ([(1000 * time, "ok", y) for time, y in zip(UNIX, WAVE, strict=True)], "column 3"),
    "dates behind a word": ([("boiler", time, y) for time, y in zip(TIMES, WAVE, strict=True)], "column 3"),
    "zones": ([(time, "boiler", y) for time, y in zip(TIMES, WAVE, strict=True)], "column 3"),
    "dates and times": (
        [(f"{time:%Y.%m.%d}", f"{time:%H:%M}", y) for time, y in zip(HOURS, WAVE, strict=True)],
        "column 3",
    ),
    "afternoons": ([(f"{t:%m/%d/%Y %I:%M:%S %p}", "a", y) for t, y in zip(HOURS, WAVE, strict=True)], "column 3"),
}


@pytest.mark.parametrize("rows, column", WITHOUT_HEADER.values(), ids=WITHOUT_HEADER)
def test_first_reading_of_a_table_without_a_header_is_kept(
    rows: list[tuple[Any, ...]], column: str, tmp_path: Path
) -> None:
    data = read(tmp_path, lines(*rows))
    assert data.columns == (column,) and data.freq == "h" and data.stamps is not None
    np.testing.assert_array_equal(data.values[:, 0], WAVE)
    assert data.stamps[0].tz_localize(None) == HOURS[0] and "it has no header" in data.notes[0]
    named = read(tmp_path, lines([f"name {n}" for n in range(len(rows[0]))], *rows), "named.csv")
    np.testing.assert_array_equal(named.values[:, 0], WAVE)
    assert named.columns[0].startswith("name")


def test_series_of_a_table_without_a_header_are_found(tmp_path: Path) -> None:
    rows = [(room, time, y) for time, y in zip(TIMES, WAVE, strict=True) for room in ("hall", "attic")]
    data = read(tmp_path, lines(*rows))
    assert data.series == ("hall", "attic") and len(data.values) == 192


def test_header_that_is_repeated_with_blanks_is_left_out(tmp_path: Path) -> None:
    header = "timestamp, utilization.gpu [%], memory.used [MiB]\n"
    text = "".join(
        f"{header}{time:%Y/%m/%d %H:%M:%S}.252, {n * 7 % 40} %, {840 + n % 7} MiB\n" for n, time in enumerate(HOURS)
    )
    data = read(tmp_path, text)
    assert data.columns == ("utilization.gpu [%]", "memory.used [MiB]") and data.rows == 96
    np.testing.assert_array_equal(data.values[:3], [[0, 840], [7, 841], [14, 842]])
    assert any("95 rows that repeat its header are left out" in note for note in data.notes)


def test_first_column_without_cells_is_no_column_of_months(tmp_path: Path) -> None:
    days = [("", f"2024-01-{n + 1:02d}", WAVE[n]) for n in range(24)]
    data = read(tmp_path, lines(("Coffee", "date", "pulse"), *days))
    np.testing.assert_array_equal(data.values[:, 0], WAVE[:24])


def test_unix_time_that_some_rows_lack_is_not_the_date(tmp_path: Path) -> None:
    seen = ["" if n % 5 else time for n, time in enumerate(UNIX)]
    rows = zip(HOURS, WAVE, seen, strict=True)
    data = read(tmp_path, lines(("Activity Date", "speed", "Observation Time"), *rows))
    np.testing.assert_array_equal(data.values[:, data.columns.index("speed")], WAVE)


def test_names_below_remarks_lose_their_blanks_and_codes_of_quality_are_left_out(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=96).strftime("%Y%m%d")
    tenths = [-9999 if n % 30 == 7 else int(10 * y) for n, y in enumerate(WAVE)]
    rows = lines(*(("    22", day, f"{t:5d}", 9 if t < 0 else 0) for day, t in zip(days, tenths, strict=True)))
    data = read(tmp_path, f"FILE FORMAT, MISSING IS -9999\n\nSTAID,    DATE,   TG, Q_TG\n{rows}", "TG_22.txt")
    assert data.columns == ("TG",) and data.freq == "D" and np.isnan(data.values).sum() == 3
    assert any("'Q_TG' (contains flags)" in note for note in data.notes)
    assert read(tmp_path, lines(("day", "Q_x"), *zip(days, tenths, strict=True))).columns == ("Q_x",), "no column x"


def test_numbers_among_metadata_of_a_central_bank_are_no_values(tmp_path: Path) -> None:
    above = ('"";BB.USD;BB.USD_FLAGS', '"";Referenzkurs;', "Dezimalstellen;4;", "Einheit;USD;", "Quelle;EZB.;")
    days = pd.date_range("2024-01-01", periods=96)
    rates = [
        f"{day:%Y-%m-%d};.;Kein Wert" if day.day_of_week > 4 else f"{day:%Y-%m-%d};{y:.4f};".replace(".", ",")
        for day, y in zip(days, WAVE, strict=True)
    ]
    data = read(tmp_path, "\n".join([*above, *rates]))
    assert data.columns == ("BB.USD",) and data.values[0, 0] == WAVE[0] and data.rows == 96
    assert any("4 rows of metadata below its header are left out" in note for note in data.notes)


@pytest.mark.parametrize(
    "day, clock, written",
    [("Data", "Hora UTC", "{:%H%M} UTC"), ("Date", "UTC time", "{:%H%M}"), ("Fecha", "hora local", "{:%H}")],
)
def test_hours_of_a_zone_are_combined_with_days(day: str, clock: str, written: str, tmp_path: Path) -> None:
    rows = ((f"{time:%Y/%m/%d}", written.format(time), y) for time, y in zip(HOURS, WAVE, strict=True))
    data = read(tmp_path, lines((day, clock, "temp"), *rows))
    assert data.columns == ("temp",) and data.freq == "h" and data.stamps is not None
    np.testing.assert_array_equal(data.values[:, 0], WAVE)


def test_dates_in_columns_behind_names_of_which_some_are_empty(tmp_path: Path) -> None:
    days = [f"{day.month}/{day.day}/{day:%y}" for day in pd.date_range("2020-01-22", periods=60)]
    places = [("", "Chile", ""), ("Alberta", "Canada", 53.9), ("Manitoba", "Canada", 53.8), ("", "Denmark", 56.3)]
    rows = [(*place, *(n + np.arange(60))) for n, place in enumerate(places)]
    data = read(tmp_path, lines(("State", "Country", "Lat", *days), *rows))
    assert data.series == ("Chile", "Alberta / Canada", "Manitoba / Canada", "Denmark") and data.freq == "D"
    np.testing.assert_array_equal(data.values[60:120, 0], 1 + np.arange(60))
    twice = [*rows, (*places[0], *range(60))]
    with pytest.raises(femts.UsageError, match="no 'date' column"):
        read(tmp_path, lines(("State", "Country", "Lat", *days), *twice), "twice.csv")


@pytest.mark.parametrize("step", ["d_{}", "W{:02d}", "week {}"])
def test_numbered_steps_in_columns_behind_several_names(step: str, tmp_path: Path) -> None:
    names = [step.format(n) for n in range(1, 41)]
    rows = [
        (f"{item}_{shop}", item, shop, *WAVE[n : n + 40])
        for n, (item, shop) in enumerate([("a", "X"), ("a", "Y"), ("b", "X")])
    ]
    data = read(tmp_path, lines(("id", "item", "shop", *names), *rows))
    assert data.series == ("a_X", "a_Y", "b_X") and data.freq == "1"
    np.testing.assert_array_equal(data.values[:40, 0], WAVE[:40])
    features = lines(("id", "kind", "shop", *(f"x{n}" for n in range(1, 41))), *rows)
    with pytest.raises(femts.UsageError, match="no 'date' column"):
        read(tmp_path, features, "features.csv")


def test_series_with_two_rows_far_apart_is_one_of_a_panel(tmp_path: Path) -> None:
    weeks = pd.date_range("2022-01-07", periods=96, freq="W-FRI")
    rows = [(shop, week.date(), y) for shop in "abcdefgh" for week, y in zip(weeks, WAVE, strict=True)]
    rows += [("rare", weeks[3].date(), 1.0), ("rare", weeks[90].date(), 2.0)]
    data = read(tmp_path, lines(("store", "date", "sales"), *rows))
    rare = data.values[slice(*data.spans[data.series.index("rare")]), 0]
    assert len(rare) == 88 and rare[0] == 1 and rare[-1] == 2 and np.isnan(rare[1:-1]).all()
    early = [*rows, ("stray", "1990-01-05", 1.0), ("stray", weeks[90].date(), 2.0)]
    with pytest.raises(femts.UsageError, match=r"Series 'stray' .* does not keep the step 'W-FRI'"):
        read(tmp_path, lines(("store", "date", "sales"), *early), "stray.csv")


def test_seldom_steps_are_found_near_them_alone() -> None:
    def of(seconds: float) -> str:
        return round_step(pd.TimedeltaIndex([pd.Timedelta(seconds, "s")] * 5))

    for seconds, step in {15.01: "15s", 14.4: "10s", 1198: "20min", 1100: "15min", 121: "2min", 130: "1min"}.items():
        assert of(seconds) == step


def test_hours_when_clocks_are_set_back_are_averaged(tmp_path: Path) -> None:
    local = pd.date_range("2024-10-25", periods=96, freq="h", tz="Europe/Berlin")
    rows = list(zip(local.strftime("%d.%m.%Y %H:%M"), WAVE, strict=True))
    data = read(tmp_path, lines(("MTU", "load"), *rows))
    assert data.rows == 95 and data.freq == "h" and data.values[50, 0] == pytest.approx(WAVE[50:52].mean())
    assert any("its clocks were set back" in note for note in data.notes)
    shops = read(tmp_path, lines(("date", "load"), *rows[:30], *rows[30:31], *rows[31:45]), "noon.csv")
    assert shops.rows == 45


def test_copies_of_many_readings_are_left_out(tmp_path: Path) -> None:
    rows = list(zip(HOURS, WAVE, strict=True))
    data = read(tmp_path, lines(("timestamp", "value"), *rows[:60], *rows[30:]))
    assert data.rows == 96 and any("30 rows that repeat a date" in note for note in data.notes)
    alike = [(hour, 1.0) for hour, _ in rows]
    with pytest.raises(femts.UsageError, match="aggregate them"):  # which may be amounts
        read(tmp_path, lines(("timestamp", "value"), *alike[:60], *alike[30:]), "alike.csv")


def test_lists_of_one_object_are_objects(tmp_path: Path) -> None:
    rows = [
        {
            "timestamp": {"date": "2024-06-02", "time": f"21-{30 + n // 60}-{n % 60:02d}", "utc": 1},
            "cpu-load": [{"cpu": "all", "user": y, "idle": 100 - y}],
        }
        for n, y in enumerate(WAVE)
    ]
    hosts = {"sysstat": {"version": 2.13, "hosts": [{"nodename": "web", "machine": "x86_64", "statistics": rows}]}}
    data = read(tmp_path, json.dumps(hosts), "sar.json")
    assert data.freq == "s" and {"cpu-load.user", "cpu-load.idle"} <= set(data.columns)
    np.testing.assert_array_equal(data.values[:, data.columns.index("cpu-load.user")], WAVE)
