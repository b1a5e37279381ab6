"""Time zones as people write them after a time: `UTC+1`, `GMT+0100 (CET)`, `CEST`, `+01:00[Europe/Berlin]`."""

from __future__ import annotations

import datetime
import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.text import quote

# Abbreviations of standard time and of summer time, hours from UTC of both, and a place where both are in use.
_PAIRS = (
    *(("WET", "WEST", 0, 1, "Europe/Lisbon"), ("CET", "CEST", 1, 2, "Europe/Berlin")),
    *(("MEZ", "MESZ", 1, 2, "Europe/Berlin"), ("EET", "EEST", 2, 3, "Europe/Athens")),
    *(("GMT", "BST", 0, 1, "Europe/London"), ("GMT", "IST", 0, 1, "Europe/Dublin")),
    *(("IST", "IDT", 2, 3, "Asia/Jerusalem"), ("MSK", "MSK", 3, 3, "Europe/Moscow")),
    *(("EST", "EDT", -5, -4, "America/New_York"), ("CST", "CDT", -6, -5, "America/Chicago")),
    *(("MST", "MDT", -7, -6, "America/Denver"), ("PST", "PDT", -8, -7, "America/Los_Angeles")),
    *(("AKST", "AKDT", -9, -8, "America/Anchorage"), ("HST", "HST", -10, -10, "Pacific/Honolulu")),
    *(("AST", "ADT", -4, -3, "America/Halifax"), ("NST", "NDT", -3.5, -2.5, "America/St_Johns")),
    *(("AEST", "AEDT", 10, 11, "Australia/Sydney"), ("ACST", "ACDT", 9.5, 10.5, "Australia/Adelaide")),
    *(("AWST", "AWST", 8, 8, "Australia/Perth"), ("NZST", "NZDT", 12, 13, "Pacific/Auckland")),
    *(("JST", "JST", 9, 9, "Asia/Tokyo"), ("KST", "KST", 9, 9, "Asia/Seoul")),
    *(("SAST", "SAST", 2, 2, "Africa/Johannesburg"), ("HKT", "HKT", 8, 8, "Asia/Hong_Kong")),
)
_SEVERAL = {  # abbreviations that alone mean several zones
    "BST": "British Summer Time or the time of Bangladesh",
    "IST": "the time of India, of Israel or Irish Summer Time",
    "CST": "the time of Chicago or of China",
    "AST": "the time of Halifax or of Arabia",
}
_UTC = {"UTC", "GMT"}
_NAMES = "|".join(sorted(_UTC.union(*(pair[:2] for pair in _PAIRS)), key=len, reverse=True))
_CLOCK = r"(?P<local>.*\d:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[AaPp]\.?[Mm]\.?)?)"
_SIGNED = r"(?P<sign>[+\-\u2212])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?"
_ZONES = (
    re.compile(rf"{_CLOCK}\s*\(?(?:UTC|GMT)\s?{_SIGNED}\)?(?:\s*\([^)]*\))?\s*"),
    re.compile(rf"{_CLOCK}(?:(?P<utc>Z)|{_SIGNED})\[(?P<zone>[A-Za-z]+/[A-Za-z_/]+)\]\s*"),
    re.compile(rf"{_CLOCK}\s*\(?(?P<name>{_NAMES})\)?(?P<year>\s+\d{{4}})?\s*"),
)


class Zoned(NamedTuple):
    """Text of times without their zones.

    Attributes:
        local: times on the clocks of the zones.
        minutes: ahead of UTC, (N,), NaN for cells written in another way.
        zone: name of a time zone that may be that of all; None if none is told.
        names: abbreviations of zones in the cells.
    """

    local: pd.Series
    minutes: NDArray[np.float64]
    zone: str | None
    names: tuple[str, ...]


def without_zone(cell: str) -> str:
    """The text of a time without what names its zone; unchanged if nothing does."""
    match = next(filter(None, (pattern.fullmatch(cell) for pattern in _ZONES)), None)
    return cell if match is None else _local(match)


def split_zones(text: pd.Series, where: str) -> Zoned | None:
    """Separate times from zones that are written as the first cell writes its own; None if it names none, or only
    `+01:00` or `Z`, which pandas reads.

    Raises:
        UsageError: An abbreviation may mean several time zones.
    """
    first = str(text.iloc[0]) if len(text) else ""
    pattern = next((pattern for pattern in _ZONES if pattern.fullmatch(first)), None)
    if pattern is None:
        return None
    cells = pd.unique(text)
    matches = {cell: match for cell in cells if (match := pattern.fullmatch(str(cell)))}
    named = matches if "name" in pattern.groupindex else {}
    names = {match["name"]: cell for cell, match in reversed(named.items())}  # the first cell with each
    ahead, zone = _meaning(names, where, text) if names else ({}, None)
    zones = {match["zone"] for match in matches.values()} if "zone" in pattern.groupindex else {zone}
    zone = zones.pop() if len(zones) == 1 else None
    local = text.map({cell: _local(match) for cell, match in matches.items()})
    minutes = text.map({cell: _minutes(match, ahead) for cell, match in matches.items()})
    return Zoned(local.where(local.notna(), ""), minutes.to_numpy(dtype=np.float64), zone, tuple(sorted(names)))


def _local(match: re.Match[str]) -> str:
    return match["local"] + (match.groupdict().get("year") or "")


def _minutes(match: re.Match[str], ahead: dict[str, float]) -> float:
    part = match.groupdict()
    if part.get("name"):
        return ahead[part["name"]] * 60
    if part.get("utc"):
        return 0.0
    minutes = int(part["hours"]) * 60 + int(part["minutes"] or 0)
    return float(minutes if part["sign"] == "+" else -minutes)


def _meaning(names: dict[str, str], where: str, text: pd.Series) -> tuple[dict[str, float], str]:
    """Hours ahead of UTC of each abbreviation, and the place that uses all of them."""
    if set(names) <= _UTC:
        return dict.fromkeys(_UTC, 0.0), "UTC"
    fitting = [pair for pair in _PAIRS if set(names) <= set(pair[:2])]
    doubtful = [name for name in names if len(names) == 1 and name in _SEVERAL]
    if len(fitting) != 1 or doubtful:
        cell = names[doubtful[0]] if doubtful else list(names.values())[-1]
        row = int(np.argmax((text == cell).to_numpy()))
        means = f"may be {_SEVERAL[doubtful[0]]}" if doubtful else "differs from that of other stamps"
        raise UsageError(
            f"{where} has '{quote(cell)}' at data row {row + 1}, whose time zone {means}; write the stamps in UTC, as "
            "2024-12-31 23:00:00+00:00."
        )
    standard, summer, *hours, zone = fitting[0]
    return {standard: float(hours[0]), summer: float(hours[1])}, str(zone)


def note_on(names: tuple[str, ...], dates: pd.Series) -> tuple[str, ...]:
    """How the abbreviations `names` were read; nothing for UTC itself."""
    if not names or set(names) <= _UTC:
        return ()
    listed = " and ".join(f"'{name}'" for name in names)
    return (f"{listed} in its stamps {'are' if len(names) > 1 else 'is'} read as the time zone {dates.dt.tz}",)


def in_zone(local: pd.Series, zoned: Zoned) -> pd.Series | None:
    """Instants in the zone that all cells share, (N,); None if they are of several."""
    away = pd.to_timedelta(zoned.minutes, unit="min")
    utc = (local - away).dt.tz_localize("UTC")
    if zoned.zone is not None:
        try:
            there = utc.dt.tz_convert(zoned.zone)
        except (ValueError, LookupError, OSError):  # no zone of that name
            there = None
        if there is not None and there.dt.tz_localize(None).equals(local):
            return there
    offsets = np.unique(zoned.minutes)
    if len(offsets) > 1:
        return None
    return utc.dt.tz_convert(datetime.timezone(datetime.timedelta(minutes=float(offsets[0]))))
