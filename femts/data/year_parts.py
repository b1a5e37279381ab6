"""Stamps in several columns: a year beside a quarter, an ISO week, or a month, a day and an hour; a date beside a time
of day."""

from __future__ import annotations

import numpy as np
import pandas as pd

from femts.data.form import Form
from femts.data.timestamps import are_clocks, as_text
from femts.text import shown

_LAST = {"year": 2261, "quarter": 4, "month": 12, "week": 53, "day": 31, "hour": 23}  # of each part
_MARK = "columns of its stamps"
_WAYS = (  # the finest first
    *(("year", "month", "day", "hour"), ("year", "month", "day")),
    *(("year", "week"), ("year", "month"), ("year", "quarter")),
)
_CLOCKS = (("date", "time"), ("datum", "uhrzeit"), ("datum", "zeit"))


def year_parts(frame: pd.DataFrame, form: Form) -> list[str]:
    """Columns of `frame` that make a stamp together, the year or the date first; none where one column
    is named for it."""
    names = set(map(str, frame.columns))
    if form.time not in (None, "date") or "ds" in names:
        return []
    by_part = {name.lower(): name for name in frame.columns if isinstance(name, str)}
    for pair in _CLOCKS:
        parts = [by_part.get(part, "") for part in pair]
        if set(parts) <= names and "date" not in names - set(parts) and _are_days_and_clocks(frame[parts]):
            return parts
    if "date" in names:
        return []
    for way in _WAYS:
        if set(way) <= set(by_part) and all(_are_parts(frame[by_part[part]], part) for part in way):
            return [by_part[part] for part in way]
    return []


def joined(frame: pd.DataFrame, form: Form) -> pd.DataFrame:
    """The frame with stamps in its first column, `date`, in the place of the columns that make them
    together; as it is where none do."""
    parts = year_parts(frame, form)
    if not parts:
        return frame
    rest = frame.drop(columns=parts)
    rest.insert(0, "date", _dated(frame, parts))
    rest.attrs = {_MARK: tuple(parts)}
    return rest


def _dated(frame: pd.DataFrame, parts: list[str]) -> pd.Series:
    if parts[0].lower() != "year":
        days = _days(frame[parts[0]]).str.replace(r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3", regex=True)
        return days + " " + as_text(frame[parts[1]]).str.strip().str.replace(r"^(\d):", r"0\1:", regex=True)
    numbers = {name.lower(): frame[name].astype(float).astype(int) for name in parts}
    if "week" in numbers:
        return numbers["year"].map("{:04d}-W".format) + numbers["week"].map("{:02d}".format)
    month = numbers["quarter"] * 3 - 2 if "quarter" in numbers else numbers["month"]
    stamps = numbers["year"].map("{:04d}".format) + month.map("-{:02d}".format)
    stamps += numbers["day"].map("-{:02d}".format) if "day" in numbers else "-01"
    return stamps + (numbers["hour"].map(" {:02d}:00:00".format) if "hour" in numbers else "")


def joined_notes(frame: pd.DataFrame) -> tuple[str, ...]:
    """A note on the columns that `joined` took together, if it did."""
    parts = frame.attrs.get(_MARK)
    if not parts:
        return ()
    names = ", ".join(f"'{shown(name)}'" for name in parts[:-1])
    return (f"columns {names} and '{shown(parts[-1])}' are taken together for the stamps",)


def _days(column: pd.Series) -> pd.Series:
    """Cells as text, without the midnight that a program adds to a day."""
    return as_text(column).str.strip().str.replace(r" 00:00(:00)?$", "", regex=True)


def _are_days_and_clocks(columns: pd.DataFrame) -> bool:
    """Tell whether every cell of the first of two columns looks like a day alone, and of the second is a time."""
    if columns.shape[1] != 2 or not are_clocks(columns.iloc[:, 1]):
        return False
    days = _days(columns.iloc[:, 0])
    return bool((days.str.contains(r"^\d{8}$|\d\D+\d") & ~days.str.contains(":")).all())


def _are_parts(column: pd.Series | pd.DataFrame, part: str) -> bool:
    """Tell whether every cell is a whole number that `part` of a stamp may have."""
    if isinstance(column, pd.DataFrame) or pd.api.types.is_bool_dtype(column) or not len(column):
        return False
    try:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        return False
    first = {"year": 1678, "hour": 0, "week": 0}.get(part, 1)  # week 0 of a year is refused by its row
    return bool(((numbers >= first) & (numbers <= _LAST[part]) & (numbers == np.floor(numbers))).all())
