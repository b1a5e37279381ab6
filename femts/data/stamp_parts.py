"""Time stamps that several columns of a table form together: years and months, dates and times of day."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from femts.data.column_names import ColumnNames
from femts.data.stamps import are_clocks, as_text, read_dates, whole_numbers
from femts.errors import UsageError
from femts.text import quote

Dated = Callable[[pd.DataFrame], str | None]

_SAMPLE = 20  # rows that are compared with dates in another column
_PARTS = {  # components of a time stamp, with the smallest and largest value of each
    **{"year": (1678, 2261), "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "hour": (0, 23)},
    "week": (0, 53),  # week 0 is refused later, with its row number
}
_IN_PARTS = (  # columns that form a time stamp together, finest first
    *(("year", "month", "day", "hour"), ("year", "month", "day")),
    *(("year", "week"), ("year", "month"), ("year", "quarter")),
)
_WITH_CLOCK = (("date", "time"), ("datum", "uhrzeit"), ("datum", "zeit"))
_HOURS = ("hour", "hr", "stunde", "hour ending")


def joined(frame: pd.DataFrame, names: ColumnNames, dated: Dated) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with the columns that form time stamps together replaced by a first column `date`, and notes; unchanged
    if there are none. `dated` names the column of a table that holds dates, if that is clear."""
    parts = stamp_parts(frame, names, dated)
    if not parts:
        return frame, ()
    first, *others = (frame[name] for name in parts)
    if parts[0].lower() != "year":
        days = _days(first).str.replace(r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3", regex=True)
        if parts[1].lower() in _HOURS:
            clocks = others[0].astype(float).astype(int).map("{:02d}:00:00".format)
        else:
            clocks = as_text(others[0]).str.strip()
        stamps = days + " " + clocks.str.replace(r"^(\d):", r"0\1:", regex=True)
    else:
        stamps = first.astype(float).astype(int).map("{:04d}".format)
        for name, column in zip(parts[1:], others, strict=True):
            part, numbers = name.lower(), column.astype(float).astype(int)
            numbers = numbers * 3 - 2 if part == "quarter" else numbers
            stamps += numbers.map({"week": "-W{:02d}", "hour": " {:02d}:00:00"}.get(part, "-{:02d}").format)
        if parts[-1].lower() in ("month", "quarter"):
            stamps += "-01"
    rest = frame.drop(columns=parts)
    rest.insert(0, "date", stamps)
    quoted = ", ".join(f"'{quote(name)}'" for name in parts[:-1])
    note = f"columns {quoted} and '{quote(parts[-1])}' are combined into time stamps"
    rest.attrs = frame.attrs
    return rest, (note,)


def stamp_parts(frame: pd.DataFrame, names: ColumnNames, dated: Dated) -> list[str]:
    """Columns of `frame` that form a time stamp together, the year or date first; none if a single column holds it, from
    which they may have been derived."""
    columns = set(map(str, frame.columns))
    if names.time not in (None, "date") or "ds" in columns:
        return []
    by_part = {name.lower(): name for name in frame.columns if isinstance(name, str)}
    for pair in _WITH_CLOCK:
        parts = [by_part.get(part, "") for part in pair]
        if set(parts) <= columns and "date" not in columns - set(parts) and _are_days_and_clocks(frame[parts]):
            return parts
    hour = next((by_part[name] for name in _HOURS if name in by_part), None)
    if hour is not None:
        day = next((by_part[name] for name in ("date", "datum") if name in by_part), dated(frame.drop(columns=hour)))
        if day is not None and "date" not in columns - {day} and _are_days_and_hours(frame, day, hour, names):
            return [day, hour]
    if "date" in columns:
        return []
    for way in _IN_PARTS:
        if set(way) <= set(by_part) and all(_are_parts(frame[by_part[part]], part) for part in way):
            found = {part: by_part[part] for part in way}
            return [] if _derived_from_dates(frame, found, dated) else list(found.values())
    return []


def _derived_from_dates(frame: pd.DataFrame, parts: dict[str, str], dated: Dated) -> bool:
    """Return whether the columns of year, month and so on are features made from the dates in another column."""
    rest = frame.head(_SAMPLE).drop(columns=list(parts.values()))
    time = dated(rest)
    if time is None:
        return False
    try:
        stamps = read_dates(rest[time])
    except UsageError:
        return False
    # calendar weeks belong to years of their own
    each = [part for part in parts if part != "week"] if isinstance(stamps, pd.DatetimeIndex) else []
    return bool(each) and all(
        (getattr(stamps, part) == frame[parts[part]].head(_SAMPLE).astype(float)).all() for part in each
    )


def _days(column: pd.Series) -> pd.Series:
    """Cells as text, without the midnight that some programs append to dates."""
    return as_text(column).str.strip().str.replace(r" 00:00(:00)?$", "", regex=True)


def _are_days_and_clocks(columns: pd.DataFrame) -> bool:
    """Return whether all cells of the first of two columns are dates without time, and those of the second times of
    day."""
    if columns.shape[1] != 2 or not are_clocks(columns.iloc[:, 1]):
        return False
    return _are_days(columns.iloc[:, 0])


def _are_days(column: pd.Series) -> bool:
    days = _days(column)
    return bool((days.str.contains(r"^\d{8}$|\d\D+\d") & ~days.str.contains(":")).all())


def _are_days_and_hours(frame: pd.DataFrame, day: str, hour: str, names: ColumnNames) -> bool:
    """Return whether the cells of the column `day` are dates without time, several rows for each and each series, and
    those of `hour` whole numbers up to 24, the midnight at the end of a day."""
    if len(set(map(str, frame.columns))) < frame.shape[1]:  # duplicate names are refused later
        return False
    numbers = whole_numbers(frame[hour])
    if numbers is None or not len(numbers) or numbers.min() < 0 or numbers.max() > 24:
        return False
    keys = [c for c in frame if c in (names.series, *names.keys) or not pd.api.types.is_numeric_dtype(frame[c])]
    try:
        several = len(frame) < 3 or bool(frame[list({day, *keys} - {hour})].duplicated().any())
    except TypeError:  # cells that cannot be compared, such as lists
        return False
    return several and _are_days(frame[day])


def _are_parts(column: pd.Series | pd.DataFrame, part: str) -> bool:
    """Return whether all cells are whole numbers in the range of the time stamp component `part`."""
    if isinstance(column, pd.DataFrame) or not len(column):
        return False
    numbers, (least, most) = whole_numbers(column), _PARTS[part]
    return numbers is not None and bool(((numbers >= least) & (numbers <= most)).all())
