"""Parsing time stamps as users write them (text, periods, Unix time, week codes, counters), refusing ambiguous ones."""

from __future__ import annotations

import datetime
import re
import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.column_names import ROW
from femts.data.describe import stamp
from femts.data.month_names import LETTERS, in_english, month_number
from femts.data.near_steps import near_midnights, onto_steps
from femts.data.pieces import slices
from femts.data.wall_clock import NANOSECONDS, instants
from femts.data.zone_names import Zoned, in_zone, note_on, split_zones
from femts.errors import TableFault, UsageError
from femts.text import arguments, quote

YEARS = (1678, 2261)  # full years in the range of 64-bit nanoseconds
MOST_NUMBER = 2**53  # largest numeric time stamp; beyond, float64 does not distinguish neighbours
WITHIN = 0.07  # months by which a fraction of a year may be rounded, as 0.08 for February
_CODE_YEARS = (1700, 2199)  # years of whole numbers that encode dates
_DIGITS = {10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # formats such as 2024123123, by length
# By the number of digits after the year: the unit, its largest number, and names of columns that hold such codes.
_CODES = {
    1: ("quarters", 4, {"quarter", "quarters", "qtr", "q", "quartal", "yearquarter"}),
    2: ("ISO weeks", 53, {"week", "weeks", "yearweek", "isoweek", "wk", "woche", "kw"}),
    3: ("days of a year", 366, {"day", "days", "doy", "yearday", "dayofyear", "tag"}),
}
_ENDS = {100: (12, 52, 53), 1000: (365, 366)}  # last number in a year, by the round number at which the next one starts
_PERIOD = re.compile(r"\d*([MQY])S(?:-([A-Z]{3}))?")  # steps whose time stamps are first days of periods
_LENGTHS = {"M": (1, "month"), "Q": (3, "quarter"), "Y": (12, "year")}  # in months
_UNIX = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_UNIX_SECONDS = (631_152_000, 4_102_444_800)  # from 1990 to 2100
_TICKS = {  # numbers of 100 ns, by the one at the beginning of 1970
    "ticks of .NET": 621_355_968_000_000_000,
    "file times of Windows": 116_444_736_000_000_000,
}

_USUAL_STEPS = {
    n * 10**9 for n in (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400)
}  # ns

EVEN, UNEVEN = (
    2.5,
    10.0,
)  # longest step, in usual ones, of dates read in the right order of day and month, and in others
SAMPLE = 20  # cells that are inspected first
MOST_TITLES = 5  # rows between a table and the header of another one below it
_WRITE = "write it as 2024-12-31 23:00:00"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_OFFSET = r"\s*(?:[zZ]|[+-]\d{2}(?::?\d{2}){0,2})$"
_DOTTED = r"\s*\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}\b"  # nobody writes the month before the first dot
_SHORT_YEAR = r"^\s*(\d{1,2})([-/.])\s?(\d{1,2})\2\s?(\d{2})(?!\d)\s*(.*)$"
_END_OF_DAY = r"(?<=[T ])24(?=:00(?::00)?\s*$)"  # ISO 8601: the midnight at the end of a day
_SEASON = r"(?i)(?<=\d)\s*\(?(?:DST|STD|(?:daylight|standard|summer|winter)(?: saving)?(?: time)?|(?:sommer|winter)zeit)\)?\s*$"
_DAY_AND_CLOCK = r"^\s*(\d{8})[:_](\d{4})\s*$"
_DOTTED_CLOCK = re.compile(  # after a date
    r"(.*(?:\d{4}|\d[-/.]\d{1,2}[-/.]\d+|[a-zA-Z]{3}.*\d).*?[\sT])((?:[01]?\d|2[0-4])\.[0-5]\d(?:\.[0-5]\d)?)\s*"
)
_AT = r",? (?:at|um|\u00e0) (?=\d)"  # between date and time, as in Sep 7, 2025 at 8:10 AM
_MARKED = r"^\s*(\d{1,2})([-/.])(\d{1,2})\2(?=\d{4}\b)"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
_PLAIN = re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}(:\d{2})?)?")
_PERIOD_OF_TIME = re.compile(rf"(.*\d{{1,2}}:\d{{2}}(?::\d{{2}})?)\s+[-\u2013]\s+\d.*{_CLOCK}.*")
_EAST_ASIAN = re.compile(  # Chinese, Japanese and Korean dates of a day, a month, a quarter or a year
    r"(\d{4})\s*[\u5e74\ub144](?:\u5ea6|\s*\u7b2c?\s*(?P<quarter>[1-4])\s*(?:\u5b63\u5ea6|\u56db\u534a\u671f|\ubd84\uae30)|"
    r"\s*(\d{1,2})\s*[\u6708\uc6d4](?:\s*(\d{1,2})\s*[\u65e5\uc77c])?)?"
)
_REVISED = r"(?i)(?<=\d)\s*(?:\*+|[\u2020\u2021\u00b9\u00b2\u00b3]|\((?:[a-z\d]|prov|prel|est|rev)[a-z]*\.?\))\s*$|(?<=^\d{4})[rpe]$"
_HALF_DAY = re.compile(r"(?<![\d.:])(\d{1,2})((?::\d{2}(?::\d{2}(?:\.\d+)?)?)?)\s*([aApP])\.?[mM]\b\.?")

_SHORT_MONTH = re.compile(rf"\s*({LETTERS}{{3,12}})\.?[ \-/']?(\d{{2}})\s*", re.IGNORECASE)  # as Excel shows months
_GAP, _YEAR = r"[ \-/.:]?", r"(?P<year>\d{4})"
_PERIODS = [  # names of periods, in the order in which they are tried
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}{_GAP}[QK](?P<quarter>[1-4])",
        rf"[QK](?P<quarter>[1-4]){_GAP}{_YEAR}",
        rf"{_YEAR}{_GAP}W(?P<week>\d{{1,2}})(?:-?(?P<day>[1-7]))?",
        rf"{_YEAR}{_GAP}M(?P<month>\d{{1,2}})",
        rf"{_YEAR}(?P<month>0[1-9]|1[0-2])",
        rf"(?P<month>\d{{1,2}})[/.]{_YEAR}",
        rf"(?P<name>{LETTERS}{{3,12}})\.?{_GAP}{_YEAR}",
        rf"{_YEAR}{_GAP}(?P<name>{LETTERS}{{3,12}})\.?",
    )
]


def read_dates(column: pd.Series, where: str = "The frame", freq: str | None = None) -> pd.Index:
    """Time stamps as in `read_stamps`, without the notes."""
    return read_stamps(column, where, freq)[0]


def read_stamps(
    column: pd.Series, where: str = "The frame", freq: str | None = None
) -> tuple[pd.Index, tuple[str, ...]]:
    """Parse a column of text, datetimes, periods or numbers as time stamps, in the given order.

    Whole numbers that may be years or days are read as such, unless the step `freq` is known to be a number. If it is a
    month, quarter or year, time stamps on other days are handled as in `first_of_periods`.

    Returns:
        The time stamps, with periods represented by their first day, and notes on conversions.

    Raises:
        UsageError: A cell is not a date, or is ambiguous; the message says which.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, cells = pd.factorize(column)
        with suppress(UsageError):  # its row would be that of a distinct cell; the row of the table is found below
            if (codes >= 0).all():
                stamps, notes = read_stamps(pd.Series(np.asarray(cells), name=column.name), where, freq)
                return stamps[codes], notes
        column = column.astype(column.dtype.categories.dtype)
    if isinstance(column.dtype, pd.PeriodDtype):
        with suppress(ValueError, OverflowError):  # outside the years that pandas supports; refused below as text
            column = column.dt.to_timestamp()
    dates, notes = column, tuple[str, ...]()
    if not pd.api.types.is_datetime64_any_dtype(column):
        text = plain_dates(as_text(column))
        if len(text) and _NUMBER.fullmatch(str(text.iloc[0])):
            if text.str.fullmatch(r"-?\d{1,18}\.0+").all():  # whole, but stored as fractions
                text = text.str.partition(".")[0]
            found = _numbered(text, freq, where, str(column.name))
            if found is not None:
                return found
        dates, notes = _parsed(text, where)
        if dates.isna().any() and (revised := text.str.contains(_REVISED)).any():
            plain = without_revisions(text).rename(column.name)
            dates, notes = read_stamps(plain, where, freq)
            first = quote(text[revised].iloc[0])
            return dates, (*notes, f"marks of revisions and footnotes behind dates, as in '{first}', are left out")
        if dates.isna().any() and (seasons := text.str.contains(_SEASON)).any():
            first, text = text[seasons].iloc[0], text.str.replace(_SEASON, "", regex=True)
            dates, notes = _parsed(text, where)
            what = f"{int(seasons.sum())} stamps" if seasons.sum() > 1 else "a stamp"
            notes = (*notes, f"{what} with a word for the season of clocks, as in '{quote(first)}', is read without it")
        if dates.isna().any() and (ends := text.str.contains(_END_OF_DAY)).any():
            dates, more = _parsed(text.str.replace(_END_OF_DAY, "00", regex=True), where)
            notes = (*notes, *more)
            dates = dates + pd.to_timedelta(ends.to_numpy(dtype=np.int64), unit="D")
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        year = re.match(r"\d{4}(?=-\d{2}(-\d{2}|$))", quote(column.iloc[row]))
        if (
            year and not YEARS[0] <= int(year[0]) <= YEARS[1]
        ):  # pandas 2 reads no years outside the range of nanoseconds
            raise _beyond(where, int(year[0]), row)
        cell = quote(column.iloc[row])
        fault = f"{where} has '{cell}' where data row {row + 1} should have a date"
        if (other := _other_period(column)) is not None:
            mixed = f"{where} has the dates '{quote(other[0])}' and '{quote(other[1])}', which are of different lengths"
            raise UsageError(f"{mixed}; keep the rows of one length, such as those of quarters, or of years.")
        if isinstance(column.name, str) and column.name in column.iloc[row : row + MOST_TITLES].tolist():
            raise UsageError(
                f"{where} has another table from data row {row + 1} on ('{cell}'); give each a file of its own."
            )
        if cell.replace(".", "").isdecimal():  # whose meaning depends on the other rows
            raise UsageError(f"{fault}; {_WRITE}.")
        raise TableFault(fault, f"; {_WRITE}.", column=str(column.name))
    stamps = _from_first_midnights(pd.DatetimeIndex(dates))
    if len(stamps) and (stamps.min().year < YEARS[0] or stamps.max().year > YEARS[1]):
        years = np.asarray(stamps.year)
        row = int(np.argmax((years < YEARS[0]) | (years > YEARS[1])))
        raise _beyond(where, int(years[row]), row)
    stamps, more = (stamps, ()) if freq is None else first_of_periods(stamps, freq)
    return stamps, (*notes, *more)


def _from_first_midnights(stamps: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Days in a time zone, all from the first midnight on where clocks are set back at midnight; other stamps are
    unchanged."""
    if (
        stamps.tz is None
        or not len(stamps)
        or (stamps[:3].tz_localize(None) != stamps[:3].tz_localize(None).normalize()).any()
    ):
        return stamps
    wall = stamps.tz_localize(None)
    days = wall.normalize()
    begins = instants(days, stamps.tz)
    return begins if ((wall == days) | (begins == stamps)).all() else stamps


def first_of_periods(dates: pd.DatetimeIndex, freq: str) -> tuple[pd.DatetimeIndex, tuple[str, ...]]:
    """First days of the months, quarters or years that contain `dates`, if that is the step `freq`, and a note;
    unchanged if a period contains two dates. For other steps, dates close to them, see `femts.data.near_steps`."""
    match = _PERIOD.fullmatch(freq)
    if match is None:
        moved, notes = onto_steps(dates, freq)
        return (moved, notes) if notes or freq not in ("D", "B") else _days_of(dates)
    months, kind = _LENGTHS[match[1]]
    distinct = dates.unique()
    days = near_midnights(distinct)
    count = np.asarray(days.year, dtype=np.int64) * 12 + np.asarray(days.month) - 1
    count -= (count - ((month_number(match[2]) or 1) - 1 if match[2] else 0)) % months
    first = pd.DatetimeIndex((count - 1970 * 12).astype("M8[M]").astype(f"M8[{dates.unit}]"))
    first = first if dates.tz is None else instants(first, dates.tz)
    if len(first.unique()) < len(first) or first.equals(distinct):
        return dates, ()
    odd = int(np.argmax(first != distinct))
    note = f"every stamp falls in a different {kind}, so stamps are read as {kind}s"
    example = f"{str(distinct[odd]).removesuffix(' 00:00:00')} as {str(first[odd]).removesuffix(' 00:00:00')}"
    return first[distinct.get_indexer(dates)], (f"{note} ({example})",)


def _days_of(dates: pd.DatetimeIndex) -> tuple[pd.DatetimeIndex, tuple[str, ...]]:
    """The days of `dates` at different times of the day, and a note; unchanged if a day contains two."""
    wall = dates if dates.tz is None else dates.tz_localize(None)
    times, day = wall.asi8, 24 * 3600 * 10**9 // NANOSECONDS[dates.unit]
    if all((times[rows] % day == times[0] % day).all() for rows in slices(len(times))):
        return dates, ()
    days = wall.normalize()
    if days.nunique() < dates.nunique():
        return dates, ()
    made = days if dates.tz is None else instants(days, dates.tz)
    note = f"every stamp falls on a different day, so stamps are read as days ({dates[0]} as {stamp(days[0])})"
    return made, (note,)


def _beyond(where: str, year: int, row: int) -> UsageError:
    return UsageError(
        f"{where} has a date in the year {year} at data row {row + 1}; supported years are {YEARS[0]} to {YEARS[1]}; "
        "number the steps instead."
    )


def as_text(column: pd.Series) -> pd.Series:
    """Cells as text; integers with thousands of digits, which Python refuses to print, stay as they are."""
    if isinstance(column.dtype, pd.CategoricalDtype) and len(column) < len(column.dtype.categories):
        column = column.astype(object)  # otherwise all categories would be converted, for a few cells
    try:
        return column.astype(str)
    except ValueError:
        return column.map(quote).astype(str)


def plain_dates(text: pd.Series) -> pd.Series:
    """Cells without the end of a period, as in `01.01.2024 00:00 - 01.01.2024 01:00`, and with hyphens in East Asian
    dates."""
    first = str(text.iloc[0]) if len(text) else ""
    if _PERIOD_OF_TIME.match(first):
        return text.str.replace(_PERIOD_OF_TIME, r"\1", regex=True)
    return text.str.replace(_EAST_ASIAN, _with_hyphens, regex=True) if _EAST_ASIAN.match(first) else text


def _with_hyphens(match: re.Match[str]) -> str:
    year, quarter, *parts = match.groups()
    return f"{year}Q{quarter}" if quarter else "-".join([year, *(part.zfill(2) for part in parts if part)])


def without_revisions(text: pd.Series) -> pd.Series:
    """Cells without a mark of a footnote or a revision behind the date, as in `2023(r)` or `2024-01*`."""
    return text.str.replace(_REVISED, "", regex=True)


def whole_numbers(column: pd.Series) -> NDArray[np.float64] | None:
    """The cells of a column, (N,); None if one is not a whole number, or if they are dates or booleans."""
    if column.dtype.kind in "bmM" or isinstance(column.dtype, pd.PeriodDtype):
        return None
    try:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if (numbers == np.floor(numbers)).all() else None


def are_clocks(column: pd.Series) -> bool:
    """Return whether all cells are times of day, such as 13:30 or 1:30 PM, and nothing else."""
    if column.dtype.kind == "M":  # dates, whose text takes long
        return False
    some = column.head(SAMPLE)  # most other columns show it
    return all(
        bool(len(cells)) and bool(as_text(cells).str.strip().str.fullmatch(rf"{_CLOCK}(\s*[aApP]\.?[mM]\.?)?").all())
        for cells in (some, column)
    )


class Times(NamedTuple):
    """Meaning of numeric time stamps: their kind, and the time of each, NaT for impossible ones such as week 53 of a
    year with 52 weeks. Times are None for `dates in digits`, which are parsed as text."""

    kind: str
    times: pd.DatetimeIndex | None = None


def times_of(numbers: NDArray[Any], freq: str | None = None, name: str = "") -> Times | None:
    """Times that numbers represent; None if they count steps or are unclear.

    Args:
        numbers: finite numbers in any order.
        freq: known step of calendar time; None if the kind has to be inferred.
        name: name of their column.
    """
    if not len(numbers):
        return None
    whole = np.issubdtype(numbers.dtype, np.integer)
    if whole and (found := _codes(numbers, name)) is not None:
        return found
    if whole and _are_dates_in_digits(numbers, freq is not None):
        return Times("dates in digits")
    if not whole and (found := _decimal_years(numbers)) is not None:
        return found
    low, high = numbers.min(), numbers.max()
    if whole and (ticks := _ticks(numbers)) is not None:
        return ticks
    for unit, per in zip(_UNIX, (1, 10**3, 10**6, 10**9), strict=True):
        if _UNIX_SECONDS[0] * per <= low and high < _UNIX_SECONDS[1] * per:
            times = pd.DatetimeIndex(pd.to_datetime(numbers, unit=unit)).as_unit("ns")  # type: ignore[call-overload]
            return Times(f"Unix {_UNIX[unit]} in UTC", times if whole else times.round("ms"))
    return None


def _decimal_years(numbers: NDArray[np.float64]) -> Times | None:
    """Months in years with a fraction, 1949.083 for February as in time series of R, or 1949.125 in its middle; years and
    months as in 1949.02; and days such as 1949.0877. None for others, such as 52 weeks a year, whose days are not known.
    """
    years = np.floor(numbers + WITHIN / 12)
    if years.min() < YEARS[0] or years.max() > YEARS[1]:
        return None
    parts, leap = numbers - years, (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    months, hundredths, days = 12 * parts, 100 * parts, parts * np.where(leap, 366, 365)
    begins = (years - 1970).astype(np.int64)

    def from_months(count: NDArray[np.float64]) -> pd.DatetimeIndex:
        return pd.DatetimeIndex((12 * begins + count.astype(np.int64)).astype("M8[M]").astype("M8[ns]"))

    found = dict[str, pd.DatetimeIndex]()
    if _near_whole(months, WITHIN):
        found["years with a fraction"] = from_months(np.round(months))
    elif _near_whole(months - 0.5, 2 * WITHIN):
        found["years with a fraction for the middle of a month"] = from_months(np.floor(months))
    if _near_whole(hundredths, 1e-3) and np.isin(np.round(hundredths), np.arange(1, 13)).all():
        found["years and months"] = from_months(np.round(hundredths) - 1)
    if not found and _near_whole(days, 0.05):
        since = begins.astype("M8[Y]").astype("M8[D]") + np.round(days).astype(np.int64)
        found["years with a fraction for the day"] = pd.DatetimeIndex(since.astype("M8[ns]"))
    found = {kind: times for kind, times in found.items() if len(times.unique()) == len(np.unique(numbers))}
    return Times(*next(iter(found.items()))) if len(found) == 1 else None


def _near_whole(numbers: NDArray[np.float64], within: float) -> bool:
    return bool((np.abs(numbers - np.round(numbers)) <= within).all())


def _ticks(numbers: NDArray[np.int64]) -> Times | None:
    """Numbers of 100 ns; None for others, among them Unix nanoseconds of 1990, if only these are at usual steps."""
    for kind, origin in _TICKS.items():
        since = numbers - origin
        if not (_UNIX_SECONDS[0] * 10**7 <= since.min() and since.max() < _UNIX_SECONDS[1] * 10**7):
            continue
        steps = np.diff(np.unique(numbers))
        usual = int(np.median(steps)) if len(steps) else 0
        if usual * 100 in _USUAL_STEPS or usual not in _USUAL_STEPS:
            return Times(kind, pd.DatetimeIndex((since * 100).view("M8[ns]")))
    return None


def _numbered(text: pd.Series, freq: str | None, where: str, name: str) -> tuple[pd.Index, tuple[str, ...]] | None:
    """Time stamps for a column of numbers that is not empty, with notes; None for anything else, and for dates in
    digits, which are parsed as text."""
    whole, counted = bool(text.str.fullmatch(r"-?\d{1,18}|[1-4]\d{18}").all()), freq is not None and freq.isdecimal()
    if not (whole or (not counted and text.str.fullmatch(r"\d{4,10}(\.\d+)?").all())):
        return None
    numbers: NDArray[Any] = text.astype("int64" if whole else "float64").to_numpy()
    found = None if counted else times_of(numbers, freq, name)
    if found is not None and found.times is None:
        return None
    jump = _jump_of_codes(numbers) if whole and freq is None else None
    coded = found is not None and found.kind in (kind for kind, *_ in _CODES.values())
    # Ten digits may also be short dates with a time.
    if found is not None and found.times is not None and (coded or jump is None or numbers.max() < 10**6):
        if found.times.hasnans:
            row = int(np.argmax(found.times.isna()))
            raise UsageError(
                f"{where} has '{numbers[row]}' at data row {row + 1} among stamps that are read as {found.kind}, but "
                "its year has fewer; write the first day of each, such as 2024-12-30."
            )
        first = str(found.times[0]).removesuffix(" 00:00:00")
        note = f"its stamps are read as {found.kind} ({numbers[0]} is {first}); number the steps from 0 if they only"
        return found.times, (f"{note} count",)
    if not whole:
        return None
    if jump is not None:
        row = int(np.argmax(numbers == jump[1]))
        raise UsageError(
            f"{where} has integer stamps that repeatedly jump past a round number, as from {jump[0]} to {jump[1]} "
            f"(data row {row + 1}), so they encode dates rather than count steps; write them as "
            "2024-12-31 23:00:00, or number the steps from 0."
        )
    beyond = np.abs(numbers) > MOST_NUMBER
    if beyond.any():
        row = int(np.argmax(beyond))
        raise UsageError(
            f"{where} has the stamp {numbers[row]} at data row {row + 1}, which exceeds {MOST_NUMBER}; number the "
            "steps from 0."
        )
    return pd.Index(numbers), ()


def _codes(numbers: NDArray[np.int64], name: str) -> Times | None:
    """Quarters, ISO weeks or days encoded in whole numbers such as 20243, 202431 or 2024212, in a column that is named
    for them; elsewhere, such numbers may count."""
    words = {*re.split(r"[\W\d_]+", name.lower())}
    for digits, (kind, most, known) in _CODES.items():
        years, parts = np.divmod(numbers, 10**digits)
        if words.isdisjoint(known) or years.min() < _CODE_YEARS[0] or years.max() > _CODE_YEARS[1]:
            continue
        if parts.min() < 1 or parts.max() > most:
            continue
        number, how = {
            1: (years * 100 + parts * 3 - 2, "%Y%m"),
            2: (numbers * 10 + 1, "%G%V%u"),
            3: (numbers, "%Y%j"),
        }[digits]
        times = pd.DatetimeIndex(pd.to_datetime(pd.Series(number).astype(str), format=how, errors="coerce"))
        if digits == 2:  # pandas 2 moves weeks and days that a year lacks to the next year
            times = times.where(times.isocalendar()["week"].to_numpy(dtype=np.float64, na_value=np.nan) == parts)
        return Times(kind, times.where(times.year == years) if digits == 3 else times)
    return None


def _jump_of_codes(numbers: NDArray[np.int64]) -> tuple[int, int] | None:
    """Two consecutive numbers between which the values jump to just past a round number, if that happens repeatedly.

    A counter without gaps passes 100 at its regular step; hours of 60 minutes or years of 53 weeks do not.
    """
    numbers = np.unique(numbers)
    if len(numbers) < 3 or numbers[0] < 0:
        return None
    steps = np.diff(numbers)
    lengths, counts = np.unique(steps, return_counts=True)
    usual = lengths[np.argmax(counts)]
    base = 10
    while (over := np.flatnonzero(np.diff(numbers // base))).size:
        parts = numbers % base
        landed = parts[over + 1] == parts.min()
        ended = len(over) == 1 and parts[0] == parts[over + 1] == 1 and parts[over[0]] in _ENDS.get(base, ())
        again = len(over) > 1 and 2 * landed.sum() > len(over)
        # Gaps of a counter may coincide with a few round numbers by chance.
        within = np.delete(steps, over) == usual
        often = len(over) > 11 or 10 * within.sum() > 9 * len(within)
        if (steps[over] > usual).all() and (ended or (again and often)):
            return int(numbers[over[0]]), int(numbers[over[0] + 1])
        base *= 10
    return None


def _are_dates_in_digits(numbers: NDArray[np.int64], sure: bool) -> bool:
    """Return whether whole numbers are years, days (20241231), hours (2024123123) and so on, or months (202412). Unless
    that is `sure`, there have to be several from several years."""
    low, high, (first, last) = numbers.min(), numbers.max(), _CODE_YEARS
    if first * 10_000 + 101 <= low and high < (last + 1) * 10_000 + 101:
        return True
    if first <= low and high <= last and (sure or _jump_of_codes(numbers) is None):
        return True
    if low >= 10**9 and _from_digits(pd.Series(numbers).astype(str)) is not None:
        return True
    year, month = np.divmod(numbers, 100)
    if not ((year >= first) & (year <= last) & (month >= 1) & (month <= 12)).all():
        return False
    return sure or (len(np.unique(year)) > 1 and len(np.unique(month)) > 1)


def _from_digits(text: pd.Series) -> pd.Series | None:
    """Time stamps from digits such as 2024123123; None if a tenth or more have another length, or an impossible month
    or hour."""
    length = len(str(text.iloc[0])) if len(text) else 0
    if length not in _DIGITS or not text.str.fullmatch(r"\d+", na=False).all():
        return None
    stamps = _stamps(text.where(text.str.fullmatch(rf"(?:19|20)\d{{{length - 2}}}")), format=_DIGITS[length])
    return stamps if stamps.notna().mean() > 0.9 else None


def first_days(text: pd.Series) -> pd.Series | None:
    """First day of each quarter, week or month in `text`, in ISO format; None if the first cell is not one.

    All cells have to have the format of the first; others become empty text.
    """
    cells = text.str.strip()
    first = next((str(cell) for cell in cells if isinstance(cell, str) and cell), "")
    pattern = next((pattern for pattern in _PERIODS if _first_day(pattern, first)), None)
    return None if pattern is None else cells.map({cell: _first_day(pattern, str(cell)) for cell in cells.unique()})


def _other_period(column: pd.Series) -> tuple[str, str] | None:
    """A year and a quarter, week or month from a column that has nothing but these; None for other columns."""
    cells = as_text(column).str.strip().drop_duplicates()
    years = cells.str.fullmatch(r"[12]\d{3}")
    if years.all() or not years.any():
        return None
    periods = first_days(cells[~years])
    return None if periods is None else (cells[years].iloc[0], cells[~years].iloc[0])


def _first_day(pattern: re.Pattern[str], cell: str) -> str:
    match = pattern.fullmatch(cell)
    if match is None:
        return ""
    part = match.groupdict()
    if "quarter" in part:
        return f"{part['year']}-{int(part['quarter']) * 3 - 2:02d}-01"
    if "week" in part:
        year, week, day = int(part["year"]), int(part["week"]), int(part["day"] or 1)
        try:
            return datetime.date.fromisocalendar(year, week, day).isoformat()
        except ValueError:  # week 53 of a year with 52 weeks
            return ""
    month = int(part["month"]) if "month" in part else month_number(part["name"])
    return "" if month is None else f"{part['year']}-{month:02d}-01"


def is_short_month(cell: str) -> bool:
    """Return whether a cell may be a month with a two-digit year, such as Jan-98, or else a day without a year."""
    match = _SHORT_MONTH.fullmatch(cell)
    return match is not None and month_number(match[1]) is not None


def short_months(cells: pd.Series) -> pd.Series | None:
    """First days of months such as Jan-98, in the given order; None for anything else, and where the numbers may be days.

    They are years if one cannot be a day, or if the usual step is then one month. The years are the shortest span that
    ends by 2068.
    """
    parts = as_text(cells).str.extract(f"^{_SHORT_MONTH.pattern}$", flags=re.IGNORECASE)
    months = parts[0].map(month_number, na_action="ignore")
    if not len(cells) or months.isna().any():
        return None
    numbers = parts[1].astype(np.int64).to_numpy()
    distinct = np.unique(numbers)
    first = int(distinct[np.argmax(np.diff(distinct, prepend=distinct[-1] - 100))])  # after the longest gap
    years = first + (numbers - first) % 100
    years += 2000 if years.max() <= 68 else 1900
    count = 12 * years + months.to_numpy(dtype=np.int64) - 1
    steps = np.abs(np.diff(pd.unique(count)))
    if not (distinct.min() == 0 or distinct.max() > 31) and not (len(steps) and np.median(steps) == 1):
        return None
    return pd.Series((count - 12 * 1970).astype("M8[M]").astype("M8[ns]"))


def _is_day_and_clock(cells: pd.Series) -> bool:
    """Return whether the first cell is like 20160101:0011, as solar radiation services write it."""
    return len(cells) > 0 and re.match(_DAY_AND_CLOCK, str(cells.iloc[0])) is not None


def _in_24_hours(clock: re.Match[str]) -> str:
    """`1:30 PM` as 13:30; unchanged if the hour is impossible."""
    hour = int(clock[1])
    if not 1 <= hour <= 12:
        return clock[0]
    return f"{hour % 12 + 12 * (clock[3] in 'pP'):02d}{clock[2] or ':00'}"


def _parsed(cells: pd.Series, where: str) -> tuple[pd.Series, tuple[str, ...]]:
    """Dates parsed from text, NaT for invalid cells, and notes."""
    if len(cells) and (plain := _PLAIN.fullmatch(str(cells.iloc[0]))):
        how = ("%Y-%m-%d", "%H:%M", "%S")[: 1 + sum(part is not None for part in plain.groups())]
        dates = _stamps(cells, format=" ".join(how[:2]) + (":%S" if how[2:] else ""))
        if dates.notna().all():
            return dates, ()
    days = first_days(cells)
    if days is not None:
        return _stamps(days, format="ISO8601"), ()
    months = short_months(cells)
    if months is not None:
        return months, ()
    digits = _from_digits(cells.str.replace(_DAY_AND_CLOCK, r"\1\2", regex=True) if _is_day_and_clock(cells) else cells)
    if digits is not None:
        return digits, ()
    if len(cells) and re.search(_AT, str(cells.iloc[0])):
        return _parsed(cells.str.replace(_AT, " ", regex=True), where)
    text = _with_colons(in_english(cells))
    zoned = split_zones(text, where)
    if zoned is not None:
        return _of_zones(zoned, where)
    # with AM or PM, pandas guesses the order of day and month for each cell
    text = text.str.replace(_HALF_DAY, _in_24_hours, regex=True)
    try:
        # pandas warns when it has to guess; guesses are compared below.
        with warnings.catch_warnings(action="ignore"):
            iso = _stamps(text, format="ISO8601")
            # Next to one ISO date, other formats are mistakes; a bare number would be completed from today's date.
            if iso.notna().any() or text.str.fullmatch(r"\d+(\.\d+)?").any():
                return iso, ()
            _check_years(text, where)
            read = _short_years(text)
            if read is None:
                first = text.iloc[:1]
                if all(_stamps(first, dayfirst=each).isna().all() for each in (True, False)):
                    return iso, ()  # it is refused, and guessing the format of every other cell takes long
                read = {"day": _stamps(text, dayfirst=True)}
                if read["day"].isna().any() or not text.str.match(_DOTTED).all():
                    read = {"month": _stamps(text)} | read
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        return _several_offsets(text, where, error)
    whole = [dates for dates in read.values() if dates.notna().all()]
    if not whole and (marks := text.str.extract(_MARKED)[1]).notna().all() and marks.nunique() > 1:
        dates, notes = _parsed(text.str.replace(_MARKED, r"\1/\3/", regex=True), where)
        other = cells.iloc[int(np.argmax(marks != marks.iloc[0]))]
        return dates, (
            *notes,
            f"its dates, such as '{quote(cells.iloc[0])}' and '{quote(other)}', are read in one order",
        )
    for other in whole[1:]:
        if not whole[0].equals(other) and not text.str.match(_DOTTED).all():
            even = [dates for dates in whole if _longest_step(dates) <= EVEN]
            if len(even) == 1 and min(_longest_step(dates) for dates in whole if dates is not even[0]) > UNEVEN:
                first = text.iloc[int(np.argmax(whole[0] != other))], even[0].iloc[int(np.argmax(whole[0] != other))]
                return even[0], (
                    f"its dates are read in the order that makes their steps even ({first[0]} is {first[1]})",
                )
            row = int(np.argmax(whole[0] != other))
            year = " or the year" * ("year" in read or len(read) > 2)
            raise UsageError(
                f"{where} has ambiguous dates such as '{quote(cells.iloc[row])}', whose day could be "
                f"the month{year}; {_WRITE}, or number the rows with {arguments({'columns': {'time': ROW}})}."
            )
    return min(read.values(), key=lambda dates: int(dates.isna().sum())), ()


def _longest_step(dates: pd.Series) -> float:
    """Longest distance between consecutive dates, relative to the usual one."""
    steps = np.diff(np.unique(dates.to_numpy().astype("M8[ns]").astype(np.int64)))
    return float(steps.max() / np.median(steps)) if len(steps) > 1 else 1.0


def _short_years(text: pd.Series) -> dict[str, pd.Series] | None:
    """Dates of text with two-digit years, by the component that may come first; None for four-digit years."""
    parts = text.str.extract(_SHORT_YEAR)
    if parts[0].isna().any():
        return None
    orders = {"day": "%d%m%y"}
    if not (parts[1] == ".").all():
        orders["month"] = "%m%d%y"
    if (parts[[0, 2]].map(len) == 2).all(axis=None):
        orders["year"] = "%y%m%d"
    digits = parts[0].str.zfill(2) + parts[2].str.zfill(2) + parts[3]
    clock = parts[4].str.replace(r"^(\d):", r"0\1:", regex=True)
    read = {}
    for first, how in orders.items():
        days = pd.to_datetime(digits, format=how, errors="coerce").dt.strftime("%Y-%m-%d")
        read[first] = _stamps((days + " " + clock).str.strip(), format="ISO8601")
    whole = {first: dates for first, dates in read.items() if dates.notna().all()}
    if "year" in whole and len(whole) > 1:  # 20/07/31: in the wrong order, every day falls in another year
        ordered = [first for first, dates in whole.items() if _in_order(dates)]
        if ordered == ["year"]:
            return {"year": read["year"]}
        if ordered and "year" not in ordered:
            del read["year"]
    return read


def _in_order(dates: pd.Series) -> bool:
    distinct = pd.Index(dates.unique())
    return distinct.is_monotonic_increasing or distinct.is_monotonic_decreasing


def _with_colons(text: pd.Series) -> pd.Series:
    """Times of day written as 18.00.00 after a date, with colons."""
    if len(text) and _DOTTED_CLOCK.fullmatch(str(text.iloc[0])):
        return text.str.replace(_DOTTED_CLOCK, _with_colon, regex=True)
    return text


def _with_colon(match: re.Match[str]) -> str:
    return match[1] + match[2].replace(".", ":")


def _of_zones(zoned: Zoned, where: str) -> tuple[pd.Series, tuple[str, ...]]:
    """Time stamps of clocks in zones that are written after the times."""
    local, notes = _parsed(zoned.local, where)
    if local.isna().any() or local.dt.tz is not None:
        return local.mask(np.isnan(zoned.minutes)), notes
    there = in_zone(local, zoned)
    if there is not None:
        return there, (*notes, *note_on(zoned.names, there))
    dates, more = _at_offsets(local, (local - pd.to_timedelta(zoned.minutes, unit="min")).dt.tz_localize("UTC"))
    return dates, (*notes, *more)


def _several_offsets(text: pd.Series, where: str, error: ValueError) -> tuple[pd.Series, tuple[str, ...]]:
    """Time stamps across daylight-saving changes, converted to UTC, or read as days if all are midnights."""
    refusal = UsageError(f"{where} has dates of several time zones; write them all in UTC.")
    if not text.str.contains(rf":\d{{2}}(?:\.\d+)?{_OFFSET}", regex=True).all():
        raise refusal from error
    try:
        local = _stamps(text.str.replace(_OFFSET, "", regex=True), format="ISO8601")
        utc = _stamps(text, format="ISO8601", utc=True)
    except ValueError:
        raise refusal from error
    return _at_offsets(local, utc)


def _at_offsets(local: pd.Series, utc: pd.Series) -> tuple[pd.Series, tuple[str, ...]]:
    """Time stamps at several UTC offsets: in UTC, or as on the clocks if these show even steps and UTC does not."""
    if local.notna().all():
        days = local.dt.normalize()
        order = np.argsort(utc.to_numpy(), kind="stable")
        ahead = (local - utc.dt.tz_localize(None)).iloc[order]
        # Where clocks are set forward at midnight, the day begins later.
        skipped = ((local - days).iloc[order] == ahead.diff()) & (days.iloc[order].diff() > pd.Timedelta(0))
        if ((local == days).iloc[order] | skipped).all() and not days.duplicated().any():
            return days, ("its stamps are midnights at several UTC offsets and are read as days",)
        if _is_even(local) and not _is_even(utc):
            return local, ("its stamps keep even steps at several UTC offsets and are read without these",)
    note = "its stamps have several UTC offsets and were converted to UTC, so calendar features are in UTC"
    return utc, (note,)


def _is_even(dates: pd.Series) -> bool:
    steps = np.diff(np.unique(dates.to_numpy()))
    return len(steps) == len(dates) - 1 and len(np.unique(steps)) == 1


def _check_years(text: pd.Series, where: str) -> None:
    """Raise UsageError for times without a date and dates without a year, which pandas completes from today's date."""
    day = text.str.replace(rf"{_CLOCK}|\b[aApP]\.?[mM]\b", " ", regex=True)
    year = day.str.contains(r"\d{4}", regex=True) | (day.str.count(r"\d+|[^\W\d_]+") >= 3)
    without = ~year & text.str.contains(r"\d", regex=True)
    if without.any():
        row = int(np.argmax(without))
        what = "a date without its year" if re.search(r"\w", day.iloc[row]) else "a time without its date"
        raise UsageError(f"{where} has '{quote(text.iloc[row])}' at data row {row + 1}, {what}; {_WRITE}.")


def _stamps(text: pd.Series, **how: Any) -> pd.Series:
    # Via an index: pandas 2 returns mixed time zones as objects, which an index refuses, as pandas 3 does directly.
    stamps = pd.Series(pd.DatetimeIndex(pd.to_datetime(text, errors="coerce", **how)))
    if stamps.dt.tz is not None and not how.get("utc"):
        zoned = text[stamps.notna().to_numpy()].str.contains(rf"[T ]\d{{2}}[\d:.]*{_OFFSET}", regex=True)
        if zoned.any() and not zoned.all():  # pandas 2 assumes the same zone for those without an offset
            raise ValueError("time stamps with and without a time zone")
    return stamps
