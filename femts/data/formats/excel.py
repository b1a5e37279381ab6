"""Excel workbooks."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.parsers import TextParser

from femts.data.column_names import ColumnNames
from femts.data.columns import NOTES
from femts.data.first_column import name_of_first, with_first
from femts.data.formats.registry import Format, ReadOptions, damaged, register_format
from femts.data.unpack import CELL_ROOM, check_file, check_room
from femts.errors import UsageError
from femts.text import quote

UNPACKED = 3  # bytes of cells per byte of a workbook's XML
ROOM, MOST_EMPTY = 2**24, 100  # most positions of a sheet, always and per non-empty cell


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    yield _excel_table(path, options.names)


def _excel_table(path: Path, names: ColumnNames) -> pd.DataFrame:
    """Read the first sheet with cells, whose first row with cells is the header; if there are several sheets, a note in
    `attrs` names it.

    Raises:
        UsageError: The file is not a workbook, is empty or has an unnamed column, or openpyxl is missing.
    """
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_room(
                UNPACKED * sum(part.file_size for part in archive.infolist() if part.filename.endswith(".xml")), path
            )
        with pd.ExcelFile(path, engine="openpyxl") as book:
            full = [sheet for sheet in book.book.worksheets if _has_cells(sheet)]
            if not full:
                raise UsageError(f"File {path} is empty; provide a table with a header and rows.")
            table = _sheet_table(full[0], path, names)
    except (UsageError, ImportError):
        raise
    except Exception as error:  # openpyxl parses arbitrary XML
        if isinstance(error, MemoryError):
            raise
        raise damaged(path, "an Excel workbook", error, "save") from error
    if len(full) > 1:
        note = f"the first of its {len(full)} sheets, '{quote(full[0].title)}', was read"
        table.attrs[NOTES] = (note, *table.attrs.get(NOTES, ()))
    return table


def _has_cells(sheet: Any) -> bool:
    sheet.reset_dimensions()  # stored dimensions may be wrong
    return any(cell.value is not None for row in sheet.iter_rows() for cell in row)


def _sheet_table(sheet: Any, path: Path, names: ColumnNames) -> pd.DataFrame:
    """The table in a sheet, without empty rows and columns; memory depends on the number of its cells, not their
    position."""
    rows, first, spanned, filled = list[dict[int, Any]](), dict[int, str](), 0, 0
    for row in sheet.iter_rows():
        cells = {column: cell for column, cell in enumerate(row) if cell.value is not None}
        spanned, filled = spanned + len(row), filled + len(cells)
        if spanned > max(ROOM, MOST_EMPTY * filled):
            raise UsageError(f"File {path} has a sheet that is nearly empty; clear the cells far from its table.")
        if cells:
            rows.append({column: _value(cell) for column, cell in cells.items()})
            for column in cells.keys() - first.keys():
                first[column] = cells[column].coordinate
    used = sorted(first)
    check_room(CELL_ROOM * len(rows) * len(used), path)
    table = TextParser([[row.get(column, "") for column in used] for row in rows], header=None).read()
    header = table.iloc[0]
    # A whole number, such as a year, is read as a float if cells below it are empty.
    named = [str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell) for cell in header]
    made = table.iloc[1:].reset_index(drop=True).set_axis(named, axis=1).infer_objects()
    nameless = header.isna().to_numpy().nonzero()[0]
    if not len(nameless):
        return made
    name = name_of_first(made, names) if list(nameless) == [0] else ""
    if not name:
        column = used[nameless[0]]
        raise UsageError(
            f"File {path} has no name for column {column - used[0] + 1}, which contains the cell {first[column]}; "
            "name the column or clear the cell."
        )
    return with_first(made, name)


def _value(cell: Any) -> object:
    """Value of a cell: whole numbers as int, and None for a formula error."""
    if cell.data_type == "e":
        return np.nan
    if cell.data_type != "n":
        return cell.value
    return int(cell.value) if cell.value == int(cell.value) else float(cell.value)


def _write(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    zoned = frame.select_dtypes("datetimetz")  # which workbooks do not have
    frame.assign(**{name: zoned[name].map(lambda stamp: stamp.isoformat()) for name in zoned}).to_excel(
        file, index=False, engine="openpyxl"
    )
    return file.getvalue()


register_format("excel", Format((".xlsx", ".xlsm"), _read, _write, library="openpyxl"))
