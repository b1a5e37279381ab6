"""Columns that hold stamps, series and values in a table whose names do not say so."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from femts.data.codes import named_parts, times_of
from femts.data.form import Form
from femts.data.periods import first_days
from femts.data.timestamps import are_clocks, as_text, like_dates, read_dates
from femts.errors import UsageError
from femts.text import shown

SAMPLE = 20  # cells of a column that are looked at
_NAMES = (
    *("year", "quarter", "month", "week", "day", "date", "datetime", "time", "timestamp", "period", "epoch"),
    *("jahr", "quartal", "monat", "woche", "tag", "datum", "zeit", "année", "año"),
)
_WORDS = re.compile(
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?|"
    r"(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?|[tz]|am|pm|utc|gmt|st|nd|rd|th"
)


def settle(
    table: pd.DataFrame, form: Form, where: str = "The frame", long: bool = True
) -> tuple[Form, tuple[str, ...]]:
    """The form of a table, where its names and its cells make that clear, else `form`; and notes on
    what was taken for what.

    The stamps are in the column that `form` names, or `date`, or the first one where it holds
    dates, or the only one that does. Beside them, one column of words and one of numbers are the
    series and the values, where stamps repeat or there is one word.

    Args:
        table: of a user, not yet checked; `date` and value columns, or one row for each series and stamp.
        form: what the user says on it.
        where: what the table is, to begin a message with.
        long: whether series may be found in a column.

    Raises:
        UsageError: the first row is not a header, but has a date in it.
    """
    names = [str(column) for column in table.columns]
    table = table.set_axis(names, axis=1)
    if len(set(names)) < len(names) or form.is_long(table):
        return form, ()
    if form.time is None and {form.series, "ds"} <= set(names):  # a long table with further columns
        return form, ()
    time = form.time or ("date" if "date" in names else _dated(table))
    if time is None or time not in names:
        return form, ()
    notes: tuple[str, ...] = ()
    if time not in (form.time, "date"):
        if _are_dates(pd.Series([time])):
            raise UsageError(
                f"{where} has '{shown(time)}' for the name of its first column; put a row of names above the cells."
            )
        form = replace(form, time=time)
        notes = (f"column '{shown(time)}' holds dates, so it is taken for the stamps",)
    if long and len(names) == 3 and (guessed := _series_and_value(table.drop(columns=time), table[time], form)):
        series, value = guessed
        form = Form(time, series, value)
        notes = (
            *notes,
            f"column '{shown(series)}' is taken for the names of series, and '{shown(value)}' for their values",
        )
    return form, notes


def form_again(table: pd.DataFrame, form: Form) -> Form:
    """The form of a table at prediction, where `form` is that of the training: its stamps may be
    called something else."""
    names = [str(column) for column in table.columns]
    if form.time_of(table) in names:
        return form
    return settle(table, replace(form, time=None), long=False)[0]


def holds_dates(column: pd.Series) -> bool:
    """Tell whether a column of any name can only hold dates; whole numbers do where they are years or days in order."""
    if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return True
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_complex_dtype(column):
        return False
    text = as_text(column.dropna().head(SAMPLE))
    if pd.api.types.is_numeric_dtype(column) or text.str.fullmatch(r"-?\d+(\.\d+)?").any():
        return _are_counted(column)
    return _are_dates(text)


def _are_dates(text: pd.Series) -> bool:
    """Tell whether at least half of the cells are dates, with or without doubt which of their numbers is the day."""
    return bool(len(text)) and (first_days(text) is not None or 2 * sum(map(_is_date, text)) >= len(text))


def _is_date(cell: str) -> bool:
    words = re.findall(r"[^\W\d_]+", cell.lower())
    if not all(_WORDS.fullmatch(word) for word in words) or not re.search(r"[-/. ]", cell):
        return False
    try:
        read_dates(pd.Series([cell]))
    except UsageError as error:
        return "could be the month" in str(error)
    return True


def _are_counted(column: pd.Series) -> bool:
    """Tell whether numbers are years, months (202412), days (20241231), Unix time and the like: in order, or under
    a name that says so, as days of a spreadsheet are."""
    numbers = pd.to_numeric(as_text(column), errors="coerce").to_numpy()
    if not len(numbers) or not np.isfinite(numbers).all():
        return False
    named = str(column.name).lower() in _NAMES
    whole = numbers.astype(np.int64) if (numbers == np.floor(numbers)).all() else None
    read = whole is not None and (like_dates(whole) or named_parts(whole) is not None)
    if not read and times_of(numbers, days=named) is None:
        return False
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all()) or named


def _dated(table: pd.DataFrame) -> str | None:
    """The first column where it holds dates, else the only one that holds them as such; None where
    that is not clear."""
    if not len(table.columns):
        return None
    if holds_dates(table.iloc[:, 0]):
        return str(table.columns[0])
    others = [
        name
        for name in table.columns[1:]
        if not pd.api.types.is_numeric_dtype(table[name]) and holds_dates(table[name])
    ]
    return str(others[0]) if len(others) == 1 else None


def _series_and_value(rest: pd.DataFrame, stamps: pd.Series, form: Form) -> tuple[str, str] | None:
    """The column of words and that of numbers; None where they are not one each, or each stamp has
    a word of its own."""
    words = [name for name in rest if name == form.series or _are_words(rest[name])]
    numbers = [name for name in rest if name not in words and pd.api.types.is_numeric_dtype(rest[name])]
    if len(words) != 1 or len(numbers) != 1:
        return None
    try:
        repeated = bool(stamps.duplicated().any()) or rest[words[0]].nunique() == 1
    except TypeError:  # cells that cannot be compared, such as lists
        return None
    return (str(words[0]), str(numbers[0])) if repeated else None


def _are_words(column: pd.Series) -> bool:
    """Tell whether a column holds text without a number or a time of day in it, and nothing is missing."""
    if pd.api.types.is_numeric_dtype(column) or column.isna().any() or not len(column) or are_clocks(column):
        return False
    text = column.head(SAMPLE)
    return (
        all(isinstance(cell, str) for cell in text) and pd.to_numeric(column.astype(str), errors="coerce").isna().all()
    )
