"""Tables with a year in each row and its twelve months beside it, as weather services publish them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from femts.data.column_names import ROW, ColumnNames
from femts.data.describe import are, count
from femts.data.describe import names as listed
from femts.data.month_names import month_number
from femts.data.name_words import calendar_field, words_in
from femts.data.stamps import as_text, plain_dates, without_revisions
from femts.text import quote

VALUE = "value"  # name of the column of values, of which the table has only the months
_YEARS = frozenset("year yr years jahr ano annee anno rok jaar ar yil yillar".split())
_EAST_ASIAN_YEARS = ("\u5e74", "\u5e74\u5ea6", "\u5e74\u4efd", "\ub144", "\uc5f0\ub3c4")
_TWELVE, _MOST_TURNED = list(range(1, 13)), 24  # months, and rows of a table with a column for each year
_GAP = r"(?i)[*.\-\u2013?:]*|n/?a|nan|null|none"


def months_in_rows(frame: pd.DataFrame, names: ColumnNames) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table with a row for each month, and a note; unchanged if it does not have a year in each row, and columns
    named by the twelve months.

    Other numbers, such as means of the year, are left out; text names series. Rows without a year are left out, except
    for a number alone, which stands for missing values. Months after the last value are left out.
    """
    given, of_years = frame, "each row is a year with its months beside it"
    found = _year_and_months(frame, names)
    if found is None and (turned := _turned(frame, names)) is not None:
        frame, of_years = turned, "each column is a year with its months below it"
        found = _year_and_months(frame, names)
    if found is None:
        return given, ()
    year, months = found
    written = plain_dates(as_text(frame[year]).str.strip())
    text = without_revisions(written)
    dated = text.str.fullmatch(r"[12]\d{3}(\.0+)?").fillna(False).to_numpy(dtype=bool)
    if 2 * dated.sum() < len(frame):
        return given, ()
    rows = frame[dated]
    years = text[dated].str[:4].astype(np.int64).to_numpy()
    keys = [name for name in frame.columns if name not in (year, *months) and _names_series(rows[name])]
    counted = pd.DataFrame({name: rows[name] for name in keys}).assign(**{year: years})
    if counted.duplicated().any():
        return given, ()
    if not all(map(_are_numbers, (rows[name] for name in months))):
        return given, ()  # refused later
    values = np.column_stack([_numbers(rows[name]) for name in months])
    rest = pd.to_numeric(text[~dated], errors="coerce")
    missing = rest.dropna().to_numpy(dtype=np.float64)
    values[np.isin(values, missing)] = np.nan
    stamps = pd.Series([f"{year:04d}-{month:02d}-01" for year in years for month in range(1, 13)], dtype=str)
    made = pd.DataFrame({"date": stamps})
    for name in keys:
        made[name] = rows[name].repeat(12).to_numpy()
    made[VALUE] = values.ravel()
    filled = ~np.isnan(made[VALUE].to_numpy())
    if filled.any():
        made = made[(stamps <= stamps[filled].max()).to_numpy()].reset_index(drop=True)
    made.attrs = given.attrs
    notes = [f"{of_years} (column '{quote(year)}'), which are read as rows"]
    left = [str(name) for name in frame.columns if name not in (year, *months, *keys)]
    if left:
        notes.append(f"{listed(tuple(left))} {are(len(left))} left out, since the months hold the values")
    without = text[~dated][rest.isna().to_numpy()].dropna()
    if len(without):
        of = count(len(without), "row")
        notes.append(f"{of} without a year {are(len(without))} left out ({listed(tuple(without))})")
    if (revised := written != text)[dated].any():
        notes.append(f"marks behind years, as in '{quote(written[revised & dated].iloc[0])}', are left out")
    if len(missing):
        notes.append(f"the number {missing[0]:g} below its rows stands for missing values")
    return made, tuple(notes)


def _year_and_months(frame: pd.DataFrame, names: ColumnNames) -> tuple[str, list[str]] | None:
    """The column of years and those of the twelve months."""
    columns = [str(name).strip() for name in frame.columns]
    if len(columns) < 13 or len(set(columns)) < len(columns) or {"ds", ROW} & set(columns):
        return None
    if names.time is not None and names.time not in ("date", *columns):
        return None
    months = [_month_of(name) for name in columns]
    first = next((n for n in range(1, len(columns) - 11) if months[n : n + 12] == _TWELVE), None)
    places = list(range(first, first + 12)) if first is not None else _by_name(columns)
    if places is None:
        return None
    others = [n for n in range(len(columns)) if n not in places]
    named = [n for n in others if columns[n] in _EAST_ASIAN_YEARS or not _YEARS.isdisjoint(words_in(columns[n]))]
    if "date" in columns:  # the name of a first column without one, unless 1 to 12 are names of series
        named = [columns.index("date")] if all(map(month_number, (columns[n] for n in places))) else []
    year = min(named, key=lambda n: len(words_in(columns[n])), default=None)
    return None if year is None else (str(frame.columns[year]), [str(frame.columns[n]) for n in places])


def _turned(frame: pd.DataFrame, names: ColumnNames) -> pd.DataFrame | None:
    """The table with a row for each year, if it has a column for each and the names of the months in its first column."""
    columns = [str(name).strip() for name in frame.columns]
    if len(columns) < 3 or not 12 <= len(frame) <= _MOST_TURNED or names.time not in (None, "date", columns[0]):
        return None
    years = [bool(re.fullmatch(r"[12]\d{3}", name)) for name in columns[1:]]
    of = _month_of if calendar_field(columns[0]) == "month" else month_number  # 1 to 12 may as well be shops
    months = [of(cell) for cell in as_text(frame.iloc[:, 0]).fillna("").str.strip()]
    if 2 * sum(years) < len(years) or months[:12] != _TWELVE or len(set(columns)) < len(columns):
        return None
    turned = frame.iloc[:, 1:].T.set_axis(as_text(frame.iloc[:, 0]).str.strip(), axis=1)
    turned.insert(0, "Year", columns[1:], allow_duplicates=True)
    return turned.reset_index(drop=True)


def _month_of(name: str) -> int | None:
    """The month that a name such as January, Jan (mm), 01, M01 or 1\u6708 means; None if it means none."""
    digits = re.fullmatch(r"[mM]?0?(\d{1,2}) ?[\u6708\uc6d4]?", name)
    if digits:
        return int(digits[1])
    return month_number(next(iter(words_in(name)), ""))


def _by_name(columns: Sequence[str]) -> list[int] | None:
    """Places of the twelve months in another order, such as that of the alphabet; None unless each is named once."""
    named = [month_number(name) if name.isalpha() else None for name in columns]
    return [named.index(month) for month in _TWELVE] if all(named.count(month) == 1 for month in _TWELVE) else None


def _names_series(column: pd.Series) -> bool:
    """Return whether a column of text names several series, and no cell is a number or missing."""
    if is_numeric_dtype(column) or column.isna().any():
        return False
    cells = as_text(column.drop_duplicates())
    if cells.str.strip().str.fullmatch(_GAP).any() or not 1 < len(cells) < len(column):
        return False
    return bool(pd.to_numeric(cells, errors="coerce").isna().all())


def _are_numbers(column: pd.Series) -> bool:
    if is_numeric_dtype(column):
        return True
    cells = as_text(column.drop_duplicates().dropna()).str.strip()
    return bool((pd.to_numeric(cells, errors="coerce").notna() | cells.str.fullmatch(_GAP)).all())


def _numbers(column: pd.Series) -> np.ndarray:
    """Numbers of a column, NaN for marks of missing values such as `***`."""
    if is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.to_numeric(as_text(column).str.strip(), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
