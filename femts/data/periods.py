"""Quarters, weeks and months as people write them (`1956 Q1`, `2010-W05`, `Jan 1956`), turned into their first days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import date

import pandas as pd

_MONTHS = {
    name.lower(): n for names in (calendar.month_abbr, calendar.month_name) for n, name in enumerate(names) if name
}
_MONTHS["sept"] = 9
_GAP = r"[ \-/.:]?"


def _quarter(parts: dict[str, str]) -> str:
    return f"{parts['year']}-{int(parts['quarter']) * 3 - 2:02d}-01"


def _week(parts: dict[str, str]) -> str:
    try:
        return date.fromisocalendar(int(parts["year"]), int(parts["week"]), int(parts["day"] or 1)).isoformat()
    except ValueError:  # week 53 of a year that has 52
        return ""


def _month(parts: dict[str, str]) -> str:
    return f"{parts['year']}-{int(parts['month']):02d}-01"


def _named_month(parts: dict[str, str]) -> str:
    month = _MONTHS.get(parts["name"].lower())
    return "" if month is None else f"{parts['year']}-{month:02d}-01"


_KINDS: tuple[tuple[re.Pattern[str], Callable[[dict[str, str]], str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.ASCII), first_day)
    for pattern, first_day in (
        (rf"(?P<year>\d{{4}}){_GAP}Q(?P<quarter>[1-4])", _quarter),
        (rf"Q(?P<quarter>[1-4]){_GAP}(?P<year>\d{{4}})", _quarter),
        (rf"(?P<year>\d{{4}}){_GAP}W(?P<week>\d{{1,2}})(?:-?(?P<day>[1-7]))?", _week),
        (rf"(?P<year>\d{{4}}){_GAP}M(?P<month>\d{{1,2}})", _month),
        (r"(?P<year>\d{4})(?P<month>0[1-9]|1[0-2])", _month),
        (r"(?P<month>\d{1,2})[/.](?P<year>\d{4})", _month),
        (rf"(?P<name>[a-z]{{3,9}})\.?{_GAP}(?P<year>\d{{4}})", _named_month),
        (rf"(?P<year>\d{{4}}){_GAP}(?P<name>[a-z]{{3,9}})\.?", _named_month),
    )
)


def first_days(text: pd.Series) -> pd.Series | None:
    """The first day of each quarter, week or month that `text` names, as ISO text; None where its
    first cell names none.

    All are read as the first one is. What cannot be read so is empty text.
    """
    cells = text.str.strip()
    first = next((str(cell) for cell in cells if isinstance(cell, str) and cell), "")
    for pattern, first_day in _KINDS:
        match = pattern.fullmatch(first)
        if match is not None and first_day(match.groupdict()):
            days = {cell: _day(pattern, first_day, str(cell)) for cell in cells.unique()}
            return cells.map(days)
    return None


def _day(pattern: re.Pattern[str], first_day: Callable[[dict[str, str]], str], cell: str) -> str:
    match = pattern.fullmatch(cell)
    return "" if match is None else first_day(match.groupdict())
