"""Excel workbooks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from femts.data.column_names import ColumnNames
from femts.data.columns import CODE, NOTES, infer_columns, is_named_date, to_frame
from femts.data.first_column import name_of_first, with_first
from femts.data.formats.registry import FORMATS, TEXT, Format, ReadOptions, damaged, register_format
from femts.data.formats.sheets import NEW, OLD, Sheet, open_book
from femts.data.formats.text import MISSING
from femts.data.header import SHOWN, find_header, is_data, is_plain, is_year, without_footer
from femts.data.stamps import read_dates
from femts.data.unpack import CELL_ROOM, check_file, check_room
from femts.errors import UsageError, nearest, suggest
from femts.text import Message, argument, quote

LOOK, LEAST_YEARS = 200, 3  # rows of a sheet that show where its table is, and years as columns
_FORECASTS = re.compile(r"forecast|predict|budget|plan|prognos|scenario|target", re.IGNORECASE)  # in a title
ALIKE = 0.9  # share of column names that sheets of one table have in common
DAYS = (pd.Timestamp("1990-01-01"), pd.Timestamp("2050-01-01"))  # of cells that may be days without a date format
STEPS = (1, 7, 14, 28, 29, 30, 31, 90, 91, 92, 365, 366)  # plausible distances of such days; hours are below 1
ROOM, MOST_EMPTY = 2**24, 100  # most positions of a sheet, always and per non-empty cell


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    if check_file(path).startswith((OLD, NEW)):
        yield _excel_table(path, options.names)
    else:  # many a CSV is named like a workbook
        yield from FORMATS[TEXT].read(path, options)


def _excel_table(path: Path, names: ColumnNames) -> pd.DataFrame:
    """Read the sheet that the user names, or else that whose first rows have most dates and numbers; notes in `attrs`
    name it if there are several, and tell which rows are left out.

    Raises:
        UsageError: The file is not a workbook, is empty or has an unnamed column, or the sheet does not exist.
    """
    layout = names.layout
    try:
        with open_book(path) as book:
            sheets = {sheet.title: sheet for sheet in book.sheets}
            full = {title: sheet for title, sheet in sheets.items() if _has_cells(sheet)}
            if layout.sheet is not None and layout.sheet not in full:
                what = "is empty" if layout.sheet in sheets else f"does not exist{suggest(layout.sheet, list(sheets))}"
                near = nearest(layout.sheet, sheets)
                remedy = {"sheet": None if near in (None, layout.sheet) else near}
                text = f"Sheet '{quote(layout.sheet)}' of file {path} {what.rstrip('.')}."
                raise UsageError(text, argument="sheet", value=layout.sheet, remedy=remedy)
            if not full:
                raise UsageError(f"File {path} is empty; provide a table with a header and rows.")
            chosen = layout.sheet or _best(full)
            table = _sheet_table(full[chosen], path, names)
            joined = () if layout.sheet is not None or len(full) < 2 else _continued(full, chosen, table, path, names)
            if joined:
                table = _together(table, joined)
            table = _with_days(table, book.epoch)
    except (UsageError, ImportError):
        raise
    except Exception as error:  # libraries parse arbitrary content
        if isinstance(error, MemoryError):
            raise
        raise damaged(path, "an Excel workbook", error, "save") from error
    if len(full) > 1 and layout.sheet is None and not joined:
        what = f"the first of its {len(full)} sheets, '{quote(chosen)}', was read"
        if chosen != next(iter(full)):
            what = f"of its {len(full)} sheets, '{quote(chosen)}' was read, as it looks most like a table"
        note = Message(f"{what}; choose another with {argument('sheet=NAME')}")
        table.attrs[NOTES] = (note, *table.attrs.get(NOTES, ()))
    return table


def _with_days(table: pd.DataFrame, first: pd.Timestamp) -> pd.DataFrame:
    """The table with dates in columns that are named for them and hold numbers of days since `first`, as cells without a
    date format do."""
    made, notes = table.copy(deep=False), list[str]()
    for place, name in enumerate(map(str, table.columns)):
        numbers = table.iloc[:, place]
        if not is_named_date(name) or not is_numeric_dtype(numbers) or is_bool_dtype(numbers) or not len(numbers):
            continue
        low, high = ((each - first) / pd.Timedelta("1D") for each in DAYS)
        steps = np.diff(np.unique(numbers.dropna()))
        usual = float(np.median(steps)) if len(steps) else 1.0
        if not numbers.between(low, high, inclusive="left").all() or (usual >= 1 and usual not in STEPS):
            continue
        days = first + pd.to_timedelta((numbers.astype(np.float64) * 86_400).round(), unit="s")
        made.isetitem(place, days.astype("M8[ns]"))
        notes.append(
            f"column '{quote(name)}' is read as day numbers of a workbook ({numbers.iloc[0]:g} is {days.iloc[0]})"
        )
    if notes:
        made.attrs = {**table.attrs, NOTES: (*table.attrs.get(NOTES, ()), *notes)}
    return made


def _continued(
    sheets: Mapping[str, Sheet], chosen: str, table: pd.DataFrame, path: Path, names: ColumnNames
) -> tuple[tuple[str, pd.DataFrame], ...]:
    """Titles and tables of the sheets with about the columns of the `chosen` one, in their order, if their dates do not overlap;
    none otherwise, because they hold the same or different things then."""
    made, spans = list[tuple[str, pd.DataFrame]](), list[tuple[pd.Timestamp, pd.Timestamp]]()
    header = [name for name in map(str, table.columns) if not name.startswith("Unnamed:")]
    for title, sheet in sheets.items():
        if title != chosen and not _has_row(sheet, header):
            continue
        if _FORECASTS.search(title):
            return ()
        try:
            part = table if title == chosen else _sheet_table(sheet, path, names)
        except UsageError:
            return ()
        if not _are_alike(list(map(str, part.columns)), header):
            continue
        span = _span(part, names)
        if span is None:
            return ()
        made.append((title, part))
        spans.append(span)
    spans.sort()
    apart = all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    return tuple(made) if len(made) > 1 and apart and len(set(spans)) == len(spans) else ()


def _has_row(sheet: Sheet, header: Sequence[str]) -> bool:
    rows = ([_text(cell) for cell in row] for row in sheet.rows(0, LOOK))
    return any(_are_alike([cell for cell in row if cell], header) for row in rows)


def _are_alike(names: Sequence[str], header: Sequence[str]) -> bool:
    """Whether the names of two tables are the same, or one has a column in ten more."""
    both = set(names) & set(header)
    return len(both) > 1 and len(both) >= ALIKE * len({*names, *header})


def _span(table: pd.DataFrame, names: ColumnNames) -> tuple[pd.Timestamp, pd.Timestamp] | None:
    """First and last date of a table; None if it has none."""
    try:
        frame = to_frame(table.copy(deep=False), names=names)
        found, _ = infer_columns(frame, names)
        time = found.time_among(list(map(str, frame.columns)))
        stamps = read_dates(frame[time]) if time in frame.columns else pd.Index([])
    except UsageError:
        return None
    return (stamps.min(), stamps.max()) if isinstance(stamps, pd.DatetimeIndex) and len(stamps) else None


def _together(table: pd.DataFrame, parts: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """The rows of several sheets, with a note."""
    whole = pd.concat([part for _, part in parts], ignore_index=True)
    *first, last = (f"'{quote(title)}'" for title, _ in parts)
    listed = ", ".join(first[:SHOWN]) + ", ..." * (len(first) > SHOWN)
    everywhere = set.intersection(*(set(part.columns) for _, part in parts))
    odd = [f"'{quote(name)}'" for name in whole.columns if name not in everywhere]
    same = f"the same columns, apart from {', '.join(odd)}," if odd else "the same columns"
    what = f"its {len(parts)} sheets {listed} and {last} have {same} and are joined"
    note = Message(f"{what}; choose one with {argument('sheet=NAME')}")
    notes = dict.fromkeys(each for _, part in parts for each in part.attrs.get(NOTES, ()))
    whole.attrs = {**table.attrs, NOTES: (note, *notes)}
    return whole


def _has_cells(sheet: Sheet) -> bool:
    return any(cell is not None for row in sheet.rows(0, None) for cell in row)


def _best(sheets: Mapping[str, Sheet]) -> str:
    """Title of the sheet whose first rows have most rows of numbers with a date, or below dates; the first of equals."""
    return max(sheets, key=lambda title: _rows_of_table(sheets[title])) if len(sheets) > 1 else next(iter(sheets))


def _rows_of_table(sheet: Sheet) -> int:
    rows = list(sheet.rows(0, LOOK))
    texts = [[_text(cell) for cell in row] for row in rows]
    below_dates = any(sum(map(is_year, row)) >= LEAST_YEARS for row in texts)
    count = 0
    for row, text in zip(rows, texts, strict=True):
        numbers = sum(isinstance(cell, int | float) and not isinstance(cell, bool) and cell == cell for cell in row)
        dates = sum(isinstance(cell, datetime | date) or (isinstance(cell, str) and is_data(cell)) for cell in row)
        dates += bool(text and is_year(text[0]) and numbers > 1)
        count += numbers > 0 and (dates > 0 or below_dates)
    return count


def _sheet_table(sheet: Sheet, path: Path, names: ColumnNames) -> pd.DataFrame:
    """The table in a sheet, without empty rows and columns; memory depends on the number of its cells, not their
    position."""
    rows, first, spanned, filled = list[dict[int, Any]](), dict[int, int](), 0, 0  # `first` rows of columns
    for number, row in enumerate(sheet.rows(names.layout.skip_rows, None), names.layout.skip_rows + 1):
        cells = {column: cell for column, cell in enumerate(row) if cell is not None}
        spanned, filled = spanned + len(row), filled + len(cells)
        if spanned > max(ROOM, MOST_EMPTY * filled):
            raise UsageError(f"File {path} has a sheet that is nearly empty; clear the cells far from its table.")
        if cells:
            rows.append(cells)
            first.update(dict.fromkeys(cells.keys() - first.keys(), number))
    if not rows:
        raise UsageError(f"File {path} has no rows after the first {names.layout.skip_rows}; skip fewer.")
    used = sorted(first)
    check_room(CELL_ROOM * len(rows) * len(used), path)
    top = [[_text(row.get(column)) for column in used] for row in rows[:LOOK]]
    found = None if is_plain(top) else find_header(top)
    header, data, notes = (top[0], 1, ()) if found is None else (found.names, found.data, found.notes)
    made = pd.DataFrame({n: _column([row.get(column) for row in rows[data:]]) for n, column in enumerate(used)})
    made = made.set_axis([name or f"Unnamed: {n}" for n, name in enumerate(header)], axis=1)
    nameless = [n for n, name in enumerate(header) if not name]
    made = without_footer(made)
    empty = [n for n in nameless if made.iloc[:, n].isna().all()]
    nameless = [n for n in nameless if n not in empty]
    made = made.iloc[:, [n for n in range(len(header)) if n not in empty]] if empty else made
    if notes:
        made.attrs[NOTES] = (*notes, *made.attrs.get(NOTES, ()))
    if not nameless:
        return made
    name = name_of_first(made, names) if nameless == [0] else ""
    if not name:
        column = used[nameless[0]]
        raise UsageError(
            f"File {path} has no name for column {column - used[0] + 1}, which contains the cell "
            f"{_letters(column)}{first[column]}; name the column or clear the cell."
        )
    return with_first(made, name)


def _letters(column: int) -> str:
    """Letters of a column of a sheet, counted from 0: A to Z, AA, AB and so on."""
    before, last = divmod(column, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _text(value: object) -> str:
    """A cell as text; empty for a missing one."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def _column(cells: list[Any]) -> pd.Series:
    """A column of cells; text that is all numbers or missing becomes numbers, unless one begins with a zero."""
    words = {cell.strip() for cell in cells if isinstance(cell, str)}
    if words:
        cells = [None if isinstance(cell, str) and cell.strip() in MISSING else cell for cell in cells]
        numeric = words - STR_NA_VALUES
        if all(cell is None or isinstance(cell, str | int | float) for cell in cells):
            numbers = pd.to_numeric(pd.Series(sorted(numeric), dtype=object), errors="coerce")
            if numbers.notna().all() and not any(re.fullmatch(CODE, word) for word in numeric):
                cells = [None if cell in STR_NA_VALUES else cell for cell in cells]
                return pd.to_numeric(pd.Series(cells, dtype=object))
    return pd.Series(cells, dtype=object).infer_objects()


register_format("excel", Format((".xlsx", ".xlsm", ".xls"), _read, library="openpyxl", layout=("sheet", "skip_rows")))
