"""Tables from files that are no text: Parquet, and Excel workbooks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.parsers import TextParser

from femts.data.opening import check_columns, check_file, check_room
from femts.errors import UsageError
from femts.text import shown

PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
PLACE = 16  # bytes that a cell takes while it is read, in two forms at once
UNPACKED = 3  # bytes of cells for each of their XML
ROOM, MOST_EMPTY = 2**24, 100  # places that the rows of a sheet may span, in all and for each cell with something in it


def parquet_pieces(path: Path, cells: int | None) -> Iterator[pd.DataFrame]:
    """The table of a Parquet file, about `cells` cells at a time; None takes all at once."""
    check_file(path)
    try:
        with parquet_library(path):
            _check_size(path, cells is None)
            if cells is None:
                table = pd.read_parquet(path)
                table.attrs = {}  # a file keeps those of the frame that it was made of
                yield table
                return
            from pyarrow.parquet import ParquetFile
        with ParquetFile(path) as file:
            schema = file.schema_arrow
            yield schema.empty_table().to_pandas()
            for batch in file.iter_batches(max(1, cells // max(1, len(schema.names)))):
                yield batch.to_pandas()
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        reason = shown(str(error).strip().partition("\n")[0])
        raise UsageError(f"File {path} cannot be read as Parquet ({reason}); write it anew, or as CSV.") from error


def _check_size(path: Path, whole: bool) -> None:
    """Refuse a file of more columns than any has, or, where it is read `whole`, of more cells than memory holds: packed
    by runs and dictionaries, they may take next to nothing of the file."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        facts = file.metadata
        check_columns(facts.num_columns, path)
        if whole:
            unpacked = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
            check_room(max(unpacked, PLACE * facts.num_rows * facts.num_columns), path)


@contextmanager
def parquet_library(path: Path) -> Iterator[None]:
    """Turn a missing pyarrow into a UsageError that says so."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"{path} needs pyarrow, which is not installed; run pip install pyarrow, or use CSV."
        ) from error


def excel_table(path: Path) -> pd.DataFrame:
    """The first sheet with cells in it, whose first row with cells is the header; `attrs["notes"]`
    names it among others.

    Raises:
        UsageError: no workbook, without a cell or with a nameless column, or openpyxl is missing.
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
                raise UsageError(f"File {path} is empty; give a table with a header and rows.")
            table = _sheet_table(full[0], path)
    except ImportError as error:
        raise UsageError(
            f"{path} needs openpyxl, which is not installed; run pip install openpyxl, or use CSV."
        ) from error
    except UsageError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        SyntaxError,
        zipfile.BadZipFile,
    ) as error:
        reason = shown(str(error).strip().partition("\n")[0])
        raise UsageError(
            f"File {path} cannot be read as an Excel workbook ({reason}); save it anew, or as CSV."
        ) from error
    if len(full) > 1:
        table.attrs["notes"] = (f"of its {len(full)} sheets the first, '{shown(full[0].title)}', is read",)
    return table


def _has_cells(sheet: Any) -> bool:
    sheet.reset_dimensions()  # what a file says of them may be wrong
    return any(cell.value is not None for row in sheet.iter_rows() for cell in row)


def _sheet_table(sheet: Any, path: Path) -> pd.DataFrame:
    """The table in a sheet, without empty rows and columns; memory goes by its cells, wherever they are."""
    rows, first, spanned, filled = list[tuple[tuple[int, ...], list[Any]]](), dict[int, str](), 0, 0
    for row in sheet.iter_rows():
        columns = tuple(column for column, cell in enumerate(row) if cell.value is not None)
        spanned, filled = spanned + len(row), filled + len(columns)
        if spanned > max(ROOM, MOST_EMPTY * filled):
            raise UsageError(f"File {path} has a sheet that is nearly empty; clear the cells far from its table.")
        if not columns:
            continue
        if rows and rows[-1][0] == columns:
            columns = rows[-1][0]
        else:
            first = {column: row[column].coordinate for column in columns} | first
        rows.append((columns, [_value(row[column]) for column in columns]))
    used = sorted(first)
    check_room(PLACE * len(rows) * len(used), path)
    place = {column: number for number, column in enumerate(used)}
    full = [[""] * len(used) for _ in rows]
    for line, (columns, values) in zip(full, rows, strict=True):
        for column, value in zip(columns, values, strict=True):
            line[place[column]] = value
    cells = TextParser(full, header=None).read()
    header = cells.iloc[0]
    if header.isna().any():
        column = used[int(header.isna().argmax())]
        raise UsageError(
            f"File {path} has no name for column {column - used[0] + 1}, in which is the cell {first[column]}; name it "
            "or clear it."
        )
    return cells.iloc[1:].reset_index(drop=True).set_axis([_name(cell) for cell in header], axis=1).infer_objects()


def _value(cell: Any) -> Any:
    """What a cell holds: a whole number as such, and nothing for a failed formula."""
    if cell.data_type == "e":
        return np.nan
    if cell.data_type != "n":
        return cell.value
    return int(cell.value) if cell.value == int(cell.value) else float(cell.value)


def _name(cell: object) -> str:
    """A cell of the header as text; a whole number, such as a year, without the fraction that empty
    cells below give it."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
