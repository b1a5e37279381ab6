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
from femts.data.name_words import words_in
from femts.data.stamps import as_text
from femts.text import quote

VALUE = "value"  # name of the column of values, of which the table has only the months
_YEARS = ("year", "yr", "years", "jahr", "año", "ano", "année", "annee")
_GAP = r"(?i)[*.\-\u2013?:]*|n/?a|nan|null|none"
_MONTHS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        *("jan.*|0?1|m0?1", "feb.*|fev.*|fév.*|0?2|m0?2", "m(a|ä)r.*|0?3|m0?3", "(a[pbv]r|avr).*|0?4|m0?4"),
        *("ma[iy].*|0?5|m0?5", "jui?n.*|0?6|m0?6", "jui?l.*|0?7|m0?7", "aug.*|ago.*|ao(u|û)t|0?8|m0?8"),
        *("se[pt].*|0?9|m0?9", "o[ck]t.*|out.*|10|m10", "nov.*|11|m11", "de[czs].*|déc.*|dic.*|12|m12"),
    )
)


def months_in_rows(frame: pd.DataFrame, names: ColumnNames) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table with a row for each month, and a note; unchanged if it does not have a year in each row, and columns
    named by the twelve months.

    Other numbers, such as means of the year, are left out; text names series. Rows without a year are left out, except
    for a number alone, which stands for missing values. Months after the last value are left out.
    """
    found = _year_and_months(frame, names)
    if found is None:
        return frame, ()
    year, months = found
    text = as_text(frame[year]).str.strip()
    dated = text.str.fullmatch(r"[12]\d{3}(\.0+)?").fillna(False).to_numpy(dtype=bool)
    if 2 * dated.sum() < len(frame):
        return frame, ()
    rows = frame[dated]
    years = text[dated].str[:4].astype(np.int64).to_numpy()
    keys = [name for name in frame.columns if name not in (year, *months) and _names_series(rows[name])]
    counted = pd.DataFrame({name: rows[name] for name in keys}).assign(**{year: years})
    if counted.duplicated().any():
        return frame, ()
    if not all(map(_are_numbers, (rows[name] for name in months))):
        return frame, ()  # refused later
    values = np.column_stack([_numbers(rows[name]) for name in months])
    rest = pd.to_numeric(text[~dated], errors="coerce")
    missing = rest.dropna().to_numpy(dtype=np.float64)
    values[np.isin(values, missing)] = np.nan
    stamps = pd.Series([f"{year:04d}-{month:02d}-01" for year in years for month in range(1, 13)], dtype=str)
    made = pd.DataFrame({"date": stamps})
    for name in keys:
        made[name] = rows[name].repeat(12).to_numpy()
    made[VALUE] = values.ravel()
    given = ~np.isnan(made[VALUE].to_numpy())
    if given.any():
        made = made[(stamps <= stamps[given].max()).to_numpy()].reset_index(drop=True)
    made.attrs = frame.attrs
    notes = [f"each row is a year with its months beside it (column '{quote(year)}'), which are read as rows"]
    left = [str(name) for name in frame.columns if name not in (year, *months, *keys)]
    if left:
        notes.append(f"{listed(tuple(left))} {are(len(left))} left out, since the months hold the values")
    without = text[~dated][rest.isna().to_numpy()].dropna()
    if len(without):
        of = count(len(without), "row")
        notes.append(f"{of} without a year {are(len(without))} left out ({listed(tuple(without))})")
    if len(missing):
        notes.append(f"the number {missing[0]:g} below its rows stands for missing values")
    return made, tuple(notes)


def _year_and_months(frame: pd.DataFrame, names: ColumnNames) -> tuple[str, list[str]] | None:
    """The column of years and those of the twelve months."""
    columns = [str(name).strip() for name in frame.columns]
    if len(columns) < 13 or len(set(columns)) < len(columns) or {"date", "ds", ROW} & set(columns):
        return None
    if names.time is not None and names.time not in ("date", *columns):
        return None
    first = next(
        (
            n
            for n in range(1, len(columns) - 11)
            if all(pattern.fullmatch(name) for pattern, name in zip(_MONTHS, columns[n : n + 12], strict=True))
        ),
        None,
    )
    places = list(range(first, first + 12)) if first is not None else _by_name(columns)
    if places is None:
        return None
    others = [n for n in range(len(columns)) if n not in places]
    exact = [n for n in others if columns[n].lower() in _YEARS]
    year = next(iter(exact or [n for n in others if not set(words_in(columns[n])).isdisjoint(_YEARS)]), None)
    return None if year is None else (str(frame.columns[year]), [str(frame.columns[n]) for n in places])


def _by_name(columns: Sequence[str]) -> list[int] | None:
    """Places of the twelve months in another order, such as that of the alphabet; None unless each is named once."""
    named = [[n for n, name in enumerate(columns) if name.isalpha() and each.fullmatch(name)] for each in _MONTHS]
    places = [each[0] for each in named if len(each) == 1]
    return places if len(set(places)) == 12 else None


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
