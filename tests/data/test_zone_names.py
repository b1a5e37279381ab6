"""Time zones written after a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.stamps import read_stamps
from femts.data.zone_names import without_zone
from femts.errors import UsageError

HOURS = {  # across a change of clocks
    zone: pd.date_range(day, periods=72, freq="h", tz=zone)
    for zone, day in {
        "Europe/Berlin": "2024-03-30",
        "America/New_York": "2024-11-02",
        "Europe/London": "2024-10-26",
        "America/Los_Angeles": "2024-03-09",
        "America/Chicago": "2024-11-02",
        "Asia/Kolkata": "2024-05-20",
        "America/St_Johns": "2024-01-20",
    }.items()
}


def offset(when: pd.Timestamp, colon: str) -> str:
    text = when.strftime("%z")
    return text[:3] + colon + text[3:]


Write = Callable[[pd.Timestamp], str]
OFFSETS: dict[str, tuple[str, Write]] = {
    "utc-and-hour": ("Europe/Berlin", lambda t: f"{t:%d.%m.%Y %H:%M} UTC{int(offset(t, '')[:3]):+d}"),
    "utc-with-colon": ("America/St_Johns", lambda t: f"{t:%Y-%m-%d %H:%M} UTC{offset(t, ':')}"),
    "utc-half-hour": ("Asia/Kolkata", lambda t: f"{t:%Y-%m-%d %H:%M:%S} (UTC+5:30)"),
    "gmt-two-digits": ("America/Los_Angeles", lambda t: f"{t:%Y/%m/%d %I:%M %p} GMT{offset(t, '')[:3]}"),
    "gmt-with-colon": ("America/Chicago", lambda t: f"{t:%Y-%m-%dT%H:%M:%S} GMT{offset(t, ':')}"),
    "javascript": ("Europe/Berlin", lambda t: f"{t:%a %b %d %Y %H:%M:%S} GMT{offset(t, '')} (Central European Time)"),
    "javascript-west": ("America/New_York", lambda t: f"{t:%a %b %d %Y %H:%M:%S} GMT{offset(t, '')} (EST)"),
}
NAMED: dict[str, tuple[str, Write]] = {
    "cet": ("Europe/Berlin", lambda t: f"{t:%Y-%m-%d %H:%M %Z}"),
    "mez": ("Europe/Berlin", lambda t: f"{t:%d.%m.%Y %H:%M} {'MESZ' if t.dst() else 'MEZ'}"),
    "est": ("America/New_York", lambda t: f"{t:%B %d, %Y %I:%M %p %Z}"),
    "pst": ("America/Los_Angeles", lambda t: f"{t:%Y-%m-%d %H:%M:%S} ({t:%Z})"),
    "cst-and-cdt": ("America/Chicago", lambda t: f"{t:%Y-%m-%dT%H:%M %Z}"),
    "bst-and-gmt": ("Europe/London", lambda t: f"{t:%Y-%m-%d %H:%M %Z}"),
    "unix-date": ("Europe/Berlin", lambda t: f"{t:%a %b %d %H:%M:%S %Z %Y}"),
    "java": ("Europe/Berlin", lambda t: f"{t.isoformat()}[Europe/Berlin]"),
}


@pytest.mark.parametrize("name", OFFSETS)
def test_plus_means_ahead_of_utc(name: str) -> None:
    zone, write = OFFSETS[name]
    stamps = read_stamps(pd.Series(list(map(write, HOURS[zone]))))[0]
    assert list(stamps) == list(HOURS[zone])
    whole = read_stamps(pd.Series(list(map(write, HOURS[zone][:24]))))[0]
    assert str(whole[0]) == str(HOURS[zone][0]), "the same on the clock"


@pytest.mark.parametrize("name", NAMED)
def test_abbreviations_are_read_as_a_zone(name: str, tmp_path: Path) -> None:
    zone, write = NAMED[name]
    table = pd.DataFrame({"when": list(map(write, HOURS[zone])), "y": np.sin(np.arange(72.0))})
    table.to_csv(tmp_path / "zoned.csv", index=False)
    for source in (table, tmp_path / "zoned.csv"):
        data = femts.load_dataset(source)
        stamps = pd.DatetimeIndex(data.stamps)
        assert data.freq == "h" and list(stamps) == list(HOURS[zone]) and str(stamps.tz) == zone
        assert any(f"read as the time zone {zone}" in note for note in data.notes) == (name != "java")
    made = femts.train(table, "naive", 4, seq_len=8)
    if name != "cst-and-cdt":  # the last rows have CST alone
        assert made.predict(table)["when"].iloc[0] == HOURS[zone][-1] + pd.Timedelta("1h")


@pytest.mark.parametrize("name", ["CET", "EST", "JST", "MEZ"])
def test_one_abbreviation_in_all_seasons_is_one_offset(name: str) -> None:
    hours = pd.date_range("2024-01-01", periods=5000, freq="h")
    ahead = {"CET": 1, "MEZ": 1, "EST": -5, "JST": 9}[name]
    stamps, notes = read_stamps(pd.Series(hours.strftime(f"%Y-%m-%d %H:%M {name}")))
    says = "Asia/Tokyo" if name == "JST" else f"UTC{ahead:+03d}:00"
    assert notes == (f"'{name}' in its stamps is read as the time zone {says}",)
    assert list(stamps.tz_convert("UTC")) == list((hours - pd.Timedelta(hours=ahead)).tz_localize("UTC"))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["UTC", "GMT"])
@pytest.mark.parametrize("how", ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M"])
def test_utc_is_utc(name: str, how: str) -> None:
    hours = pd.date_range("2024-01-01", periods=100, freq="h", tz="UTC")
    stamps, notes = read_stamps(pd.Series(hours.strftime(f"{how} {name}")))
    assert list(stamps) == list(hours) and notes == ()


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (
            ["2024-07-01 00:00 BST", "2024-07-01 01:00 BST"],
            "'2024-07-01 00:00 BST' at data row 1, whose time zone may be",
        ),
        (["2024-07-01 00:00 CST", "2024-07-01 01:00 CST"], "the time of Chicago or of China; write the stamps in UTC"),
        (["2024-07-01 00:00 IST", "2024-07-01 01:00 IST"], "of India, of Israel or Irish"),
        (["2024-07-01 00:00 CET", "2024-07-01 01:00 EDT"], "zone differs from that of other stamps"),
        (["2024-07-01 00:00 CET", "2024-07-01 01:00"], "'2024-07-01 01:00' where data row 2"),
        (["2024-07-01 00:00 UTC+1", "soon"], "'soon' where data row 2"),
    ],
    ids=["bst", "cst", "ist", "two-zones", "one-without", "no-date"],
)
def test_unclear_zones_are_refused(cells: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("+", r"\+")):
        read_stamps(pd.Series(cells))


def test_other_words_are_no_zones() -> None:
    for cell in ("2024-01-01 00:00", "2024-01-01T00:00Z", "at 10:30 THE", "10:30 +5"):
        assert without_zone(cell) == cell


@pytest.mark.parametrize("start", ["2024-03-20", "2024-10-20"], ids=["spring", "autumn"])
def test_steps_of_the_clock_with_offsets_are_even(start: str) -> None:
    wall = pd.date_range(start, periods=60, freq="12h")
    zoned = wall.tz_localize("Europe/Berlin")
    stamps, notes = read_stamps(pd.Series([when.isoformat() for when in zoned]))
    assert list(stamps) == list(wall) and "even steps at several UTC offsets" in notes[0]
