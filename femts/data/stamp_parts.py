"""Time stamps that several columns of a table form together: years and months, dates and times of day or hours."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.column_names import ColumnNames
from femts.data.describe import are
from femts.data.describe import names as listed
from femts.data.month_names import month_number
from femts.data.name_words import words_in
from femts.data.stamps import are_clocks, as_text, read_dates, whole_numbers
from femts.errors import UsageError
from femts.text import quote

Dated = Callable[[pd.DataFrame], str | None]

_SAMPLE = 20  # rows that are compared with dates in another column
PARTS = {  # components of a time stamp, with the smallest and largest value of each
    **{"year": (1678, 2261), "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59)},
    "week": (0, 53),  # week 0 is refused later, with its row number
}
_IN_PARTS = (  # columns that form a time stamp together, finest first
    *(("year", "month", "day", "hour", "minute"), ("year", "month", "day", "hour"), ("year", "month", "day")),
    *(("year", "week"), ("year", "month"), ("year", "quarter")),
)
_OTHER_NAMES = {  # of components
    **{
        "yr": "year",
        "yyyy": "year",
        "jahr": "year",
        "mo": "month",
        "mon": "month",
        "m": "month",
        "d": "day",
        "dy": "day",
    },
    **dict.fromkeys(("ano", "a\u00f1o", "ann\u00e9e", "annee", "anno"), "year"),
    **dict.fromkeys(("monat", "mes", "m\u00eas", "mois", "mese"), "month"),
    **dict.fromkeys(("tag", "dia", "d\u00eda", "jour", "giorno"), "day"),
    **dict.fromkeys(("rok", "y\u0131l", "\u5e74", "\u5e74\u4efd", "\ub144"), "year"),
    **dict.fromkeys(("miesi\u0105c", "ay", "\u6708", "\u6708\u4efd", "\uc6d4"), "month"),
    **dict.fromkeys(("dzie\u0144", "g\u00fcn", "\u65e5", "\uc77c"), "day"),
    **dict.fromkeys(("date of month", "day of month", "dayofmonth", "dom", "mday"), "day"),
}
_WITH_CLOCK = (
    *(("date", "time"), ("datum", "uhrzeit"), ("datum", "zeit"), ("date", "hour")),
    *(("fecha", "hora"), ("data", "ora"), ("date", "heure")),
)
HOURS = ("hour", "hr", "stunde", "hora", "heure", "ora")
_STARTS = frozenset("start begin from beginn anfang von debut inicio desde inizio".split())
_ENDS = ("he", "hour ending", "hourending", "hr ending", "hour end")  # hour 1 ends at 01:00
_CLOCKS = ("time", "hhmm", "clock", "uhrzeit", "zeit")  # numbers such as 1330
_DAYS = ("date", "datum", "fecha", "data", "delivery date")
_ZONES = frozenset(("utc", "gmt", "lst", "local"))  # beside the names of components
_DOTTED = r"(?:[01]?\d|2[0-4])([.-])[0-5]\d\1[0-5]\d"
_DIGITS = re.compile(r"([01]\d|2[0-4])([0-5]\d) ?(?:UTC|GMT|Z|h)", re.IGNORECASE)
_ENDING = re.compile(r"(?:HE|hour ending)[ _-]?(\d{1,2})(?::00)?", re.IGNORECASE)
_CLOCK_COLUMN = re.compile(r"(\d{1,2}):(\d{2})(?::00)?(?:\s?[-\u2013]\s?\d{1,2}:\d{2}(?::00)?)?")
_FULL_HOUR = re.compile(r"(\d{1,2}):00(?::00)?")


def joined(frame: pd.DataFrame, names: ColumnNames, dated: Dated) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with the columns that form time stamps together replaced by a first column `date`, and notes; unchanged
    if there are none. `dated` names the column of a table that holds dates, if that is clear."""
    frame, notes = _with_days_above(frame, names)
    frame, more = _with_rows_of_clocks(*_with_rows_of_hours(frame, names, dated), names, dated)
    notes += more
    parts = stamp_parts(frame, names, dated)
    if not parts:
        return frame, notes
    first, *others = (frame[name] for name in parts)
    ends = False
    if _part(parts[0]) != "year":
        days = _days(first).str.replace(r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3", regex=True)
        read = _minutes(others[0], parts[1])
        if read is not None:
            minutes, ends = read
            clock = {each: f"{each // 60:02d}:{each % 60:02d}:00" for each in np.unique(minutes).tolist()}
            stamps = days + " " + pd.Series(minutes, first.index).map(clock)
        else:
            clocks = as_text(others[0]).str.strip()
            clocks = clocks.str.replace(r"[.-]", ":", regex=True) if _are_dotted(others[0]) else clocks
            stamps = days + " " + clocks.str.replace(r"^(\d):", r"0\1:", regex=True)
    else:
        stamps = _numbers(first, "year").astype(int).map("{:04d}".format)
        for name, column in zip(parts[1:], others, strict=True):
            if are_clocks(column):
                stamps += " " + as_text(column).str.strip().str.replace(r"^(\d):", r"0\1:", regex=True)
                continue
            part, numbers = _part(name), _numbers(column, _part(name)).astype(int)
            numbers = numbers * 3 - 2 if part == "quarter" else numbers
            stamps += numbers.map(
                {"week": "-W{:02d}", "hour": " {:02d}", "minute": ":{:02d}"}.get(part, "-{:02d}").format
            )
        if _part(parts[-1]) == "hour":
            stamps += ":00"
        if _part(parts[-1]) in ("month", "quarter"):
            stamps += "-01"
    rest = frame.drop(columns=parts)
    rest.insert(0, "date", stamps)
    quoted = ", ".join(f"'{quote(name)}'" for name in parts[:-1])
    note = f"columns {quoted} and '{quote(parts[-1])}' are combined into time stamps"
    rest.attrs = frame.attrs
    return rest, (*notes, note + "; hour 1 is read as 00:00 to 01:00" * ends)


def stamp_parts(frame: pd.DataFrame, names: ColumnNames, dated: Dated) -> list[str]:
    """Columns of `frame` that form a time stamp together, the year or date first; none if a single column holds it, from
    which they may have been derived."""
    columns = set(map(str, frame.columns))
    if names.time not in (None, "date") or "ds" in columns:
        return []
    texts = [name for name in frame.columns if isinstance(name, str)]
    by_part = {_part(name): name for name in texts} | {name.lower(): name for name in texts}
    if "yyyy" in by_part:  # elsewhere, mm are millimetres
        by_part = {part: by_part[name] for name, part in (("mm", "month"), ("dd", "day")) if name in by_part} | by_part
    for pair in _WITH_CLOCK:
        parts = [by_part.get(part, "") for part in pair]
        if set(parts) <= columns and "date" not in columns - set(parts) and _are_days_and_clocks(frame[parts]):
            return parts
    hour = next((by_part[name] for name in (*_ENDS, *HOURS, *_CLOCKS) if name in by_part), None)
    if hour is not None:
        day = next((by_part[name] for name in _DAYS if name in by_part), dated(frame.drop(columns=hour)))
        if day is not None and "date" not in columns - {day} and _are_days_and_hours(frame, day, hour, names):
            return [day, hour]
    if len(set(texts)) < len(texts):  # refused later
        return []
    words = [name for name in texts if not pd.api.types.is_numeric_dtype(frame[name])]
    clocks = [name for name in words if are_clocks(frame[name]) or _are_dotted(frame[name])]
    if len(clocks) > 1:  # of the periods in the rows
        clocks = [name for name in clocks if not _STARTS.isdisjoint(words_in(name))]
    if len(clocks) == 1:
        day = dated(frame.drop(columns=clocks))
        if day is not None and "date" not in columns - {day} and _are_days_and_clocks(frame[[day, *clocks]]):
            return [day, *clocks]
    if "date" in columns:
        return []
    by_part["hour"] = next((by_part[name] for name in HOURS if name in by_part), "")
    for way in _IN_PARTS:
        if all(by_part.get(part) for part in way) and all(_are_parts(frame[by_part[part]], part) for part in way):
            found = {part: by_part[part] for part in way}
            if _derived_from_dates(frame, found, dated):
                return []
            return [*found.values(), *(clocks if len(clocks) == 1 and way[-1] == "day" else [])]
    return []


def is_clock(name: str) -> bool:
    """Return whether a column is named for hours or times of day."""
    return _part(name) in (*HOURS, *_ENDS, *_CLOCKS)


def _part(name: str) -> str:
    """The name of a column without marks and what is in parentheses, as the components are named here."""
    words = re.sub(r"\(.*?\)|[_.-]", " ", name.lower()).split()
    plain = " ".join(word for word in words if word not in _ZONES or len(words) == 1)
    return _OTHER_NAMES.get(plain, plain)


def _with_days_above(frame: pd.DataFrame, names: ColumnNames) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with dates before the times of day in its first column, and a note, if each day has a row of its own with
    nothing but its date, above those of its times."""
    if frame.shape[1] < 2 or not len(frame) or frame.iloc[0, 1:].notna().any():  # as in most tables
        return frame, ()
    first = str(frame.columns[0])
    if names.time not in (None, first) or pd.api.types.is_numeric_dtype(frame.dtypes.iloc[0]):
        return frame, ()
    alone = frame.iloc[:, 1:].isna().all(axis=1)
    if not are_clocks(frame.iloc[:, 0][~alone]):
        return frame, ()
    cells = as_text(frame.iloc[:, 0]).str.strip()
    if not _are_days(cells[alone]):
        return frame, ()
    made = frame[~alone].copy()
    made.isetitem(0, (cells.where(alone).ffill() + " " + cells)[~alone])
    made = made.reset_index(drop=True)
    made.attrs = frame.attrs
    return made, (f"rows with a date alone in column '{quote(first)}' are read as the days of the times below them",)


def _with_rows_of_hours(frame: pd.DataFrame, names: ColumnNames, dated: Dated) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with a row per hour instead of a day, if its columns are a date and HE1 to HE24, and notes."""
    hours = [(name, int(match[1])) for name in map(str, frame.columns) if (match := _ENDING.fullmatch(name))]
    if sorted(hour for _, hour in hours) != list(range(1, 25)) or names.time not in (None, "date"):
        return frame, ()
    columns = [name for name, _ in sorted(hours, key=lambda each: each[1])]
    others = frame.drop(columns=columns)
    day = next((str(name) for name in others if _part(str(name)) in _DAYS), dated(others))
    if day is None or {"y", "HE"} & set(map(str, others.columns)) or not _are_days(others[day]):
        return frame, ()
    rows = others.loc[others.index.repeat(24)].reset_index(drop=True)
    rows["HE"], rows["y"] = np.tile(np.arange(1, 25), len(frame)), frame[columns].stack(future_stack=True).to_numpy()
    rows.attrs = frame.attrs
    return rows, (f"columns '{quote(columns[0])}' to '{quote(columns[-1])}' are read as hours of the column 'y'",)


def _minutes(column: pd.Series, name: str) -> tuple[NDArray[np.int64], bool] | None:
    """Minutes since midnight at which steps begin, for hours (1, HE01) or clocks in digits (1330), and whether the hours
    were named by their ends; None for anything else."""
    kind, numbers = _part(name), whole_numbers(column)
    ends = kind in _ENDS
    if numbers is None and not pd.api.types.is_numeric_dtype(column):
        codes, cells = pd.factorize(as_text(column).str.strip())
        for pattern in (_ENDING, _FULL_HOUR)[: 1 + ends]:
            matches = [pattern.fullmatch(str(cell)) for cell in cells]
            if all(matches):
                numbers, ends = np.array([float(match[1]) for match in matches if match])[codes], True
                break
        digits = [_DIGITS.fullmatch(str(cell)) for cell in cells] if numbers is None else [None]
        if all(digits):
            numbers = np.array([float(match[1] + match[2]) for match in digits if match])[codes]
    if numbers is None or kind not in (*HOURS, *_ENDS, *_CLOCKS) or not len(numbers) or numbers.min() < 0:
        return None
    whole = numbers.astype(np.int64)
    if whole.max() <= 24:
        if kind in _CLOCKS and not ends and len(np.unique(whole)) < 24:  # a few numbers may be anything
            return None
        minutes = whole * 60
    else:
        minutes = whole // 100 * 60 + whole % 100
        several = len(whole) < 3 or len(np.unique(whole)) >= 3
        if not 100 <= whole.max() <= 2400 or (whole % 100 >= 60).any() or not several:
            return None
    ends = ends and bool(minutes.min() >= 60)
    return minutes - 60 * ends, ends


def _with_rows_of_clocks(
    frame: pd.DataFrame, notes: tuple[str, ...], names: ColumnNames, dated: Dated
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame with a row for each part of a day instead of a day, if its columns are a date and clocks at even steps,
    such as 00:00 to 23:30 or 00:00 - 00:30 to 23:30 - 24:00, and notes."""
    found = [(name, match) for name in map(str, frame.columns) if (match := _CLOCK_COLUMN.fullmatch(name))]
    parts = len(found)
    if parts < 24 or 1440 % parts or names.time not in (None, "date"):
        return frame, notes
    clocks = [60 * int(match[1]) + int(match[2]) for _, match in found]
    begins = list(range(0, 1440, 1440 // parts))
    ends = clocks in ([*begins[1:], 1440], [*begins[1:], 0])
    columns, others = [name for name, _ in found], frame.drop(columns=[name for name, _ in found])
    day = dated(others)
    if not (ends or clocks == begins) or day is None or {"y", "time"} & set(map(str, others.columns)):
        return frame, notes
    if not _are_days(others[day]):
        return frame, notes
    totals = [str(name) for name in others if pd.api.types.is_float_dtype(others[name])]
    rows = others.drop(columns=totals).loc[others.index.repeat(parts)].reset_index(drop=True)
    rows["time"] = [f"{minutes // 60:02d}:{minutes % 60:02d}" for minutes in begins] * len(frame)
    rows["y"] = frame[columns].stack(future_stack=True).to_numpy()
    rows.attrs = frame.attrs
    note = f"columns '{quote(columns[0])}' to '{quote(columns[-1])}' are read as times of day of the column 'y'"
    note += f"; {quote(columns[0])} is read as the end of a step" * ends
    left = f"{listed(tuple(totals))} {are(len(totals))} left out, since the times of day hold the values"
    return rows, (*notes, note, *([left] if totals else []))


def _derived_from_dates(frame: pd.DataFrame, parts: dict[str, str], dated: Dated) -> bool:
    """Return whether the columns of year, month and so on are features made from the dates in another column."""
    rest = frame.head(_SAMPLE).drop(columns=list(parts.values()))
    time = dated(rest)
    if time is None or pd.api.types.is_float_dtype(rest[time]):  # years with a fraction are made from the others
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
    if columns.shape[1] != 2:
        return False
    clocks = columns.iloc[:, 1]
    return (are_clocks(clocks) or _are_dotted(clocks)) and _are_days(columns.iloc[:, 0])


def _are_dotted(column: pd.Series) -> bool:
    """Return whether all cells are times of day such as 18.00.00 or 18-00-00."""
    if pd.api.types.is_numeric_dtype(column) or not len(column):
        return False
    some = column.head(_SAMPLE)  # most other columns show it
    return all(as_text(cells).str.strip().str.fullmatch(_DOTTED).all() for cells in (some, column))


def _are_days(column: pd.Series) -> bool:
    days = _days(column)
    return bool((days.str.contains(r"^\d{8}$|\d\D+\d") & ~days.str.contains(":")).all())


def _are_days_and_hours(frame: pd.DataFrame, day: str, hour: str, names: ColumnNames) -> bool:
    """Return whether the cells of the column `day` are dates without time, several rows for each and each series, and
    those of `hour` hours or clocks, up to 24, the midnight at the end of a day."""
    if len(set(map(str, frame.columns))) < frame.shape[1]:  # duplicate names are refused later
        return False
    if _minutes(frame[hour], hour) is None:
        return False
    keys = [c for c in frame if c in (names.series, *names.keys) or not pd.api.types.is_numeric_dtype(frame[c])]
    try:
        keys = [c for c in keys if frame[c].nunique() < len(frame)]  # others number the rows
        several = len(frame) < 3 or bool(frame[list({day, *keys} - {hour})].duplicated().any())
    except TypeError:  # cells that cannot be compared, such as lists
        return False
    return several and _are_days(frame[day])


def _are_parts(column: pd.Series | pd.DataFrame, part: str) -> bool:
    """Return whether all cells are whole numbers in the range of the time stamp component `part`."""
    if isinstance(column, pd.DataFrame) or not len(column):
        return False
    numbers, (least, most) = whole_numbers(_numbers(column, part)), PARTS[part]
    return numbers is not None and bool(((numbers >= least) & (numbers <= most)).all())


def _numbers(column: pd.Series, part: str) -> pd.Series:
    """The cells of a column as numbers, also of months by name, if all of them are."""
    if part == "month" and not pd.api.types.is_numeric_dtype(column):
        months = as_text(column).map(month_number)
        column = column if months.isna().any() else months
    if whole_numbers(column) is None:
        return column
    return (as_text(column) if isinstance(column.dtype, pd.CategoricalDtype) else column).astype(float)
