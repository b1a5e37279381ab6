"""Tables from files that are no text: Parquet, and Excel workbooks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.opening import check_file
from femts.errors import UsageError
from femts.text import shown

PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")


def parquet_pieces(path: Path, cells: int | None) -> Iterator[pd.DataFrame]:
    """The table of a Parquet file, about `cells` cells at a time; None takes all at once."""
    check_file(path)
    try:
        with parquet_library(path):
            from pyarrow.parquet import ParquetFile
        with ParquetFile(path) as file:
            if cells is None:
                yield _pandas(file.read())
                return
            schema = file.schema_arrow
            yield _pandas(schema.empty_table())
            for batch in file.iter_batches(max(1, cells // max(1, len(schema.names)))):
                yield _pandas(batch)
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        reason = shown(str(error).strip().partition("\n")[0])
        raise UsageError(f"File {path} cannot be read as Parquet ({reason}); write it anew, or as CSV.") from error


def _pandas(table: Any) -> pd.DataFrame:
    """An Arrow table or batch as a frame, without the pandas metadata that its writer left where that does not fit."""
    try:
        return table.to_pandas()
    except MemoryError:
        raise
    except Exception:  # the metadata may hold anything, and pyarrow does not check it
        return table.replace_schema_metadata(None).to_pandas()


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
        sheets = pd.read_excel(path, sheet_name=None, header=None)
    except ImportError as error:
        raise UsageError(
            f"{path} needs openpyxl, which is not installed; run pip install openpyxl, or use CSV."
        ) from error
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
    full = {str(name): cells for name, sheet in sheets.items() if len(cells := _without_margins(sheet))}
    if not full:
        raise UsageError(f"File {path} is empty; give a table with a header and rows.")
    name, cells = next(iter(full.items()))
    header = cells.iloc[0]
    if header.isna().any():
        column = int(header.isna().argmax()) + 1
        raise UsageError(f"File {path} has no name for column {column}; name it or leave it out.")
    table = cells.iloc[1:].reset_index(drop=True).set_axis([_name(cell) for cell in header], axis=1).infer_objects()
    if len(full) > 1:
        table.attrs["notes"] = (f"of its {len(full)} sheets the first, '{shown(name)}', is read",)
    return table


def _name(cell: object) -> str:
    """A cell of the header as text; a whole number, such as a year, without the fraction that empty
    cells below give it."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _without_margins(sheet: pd.DataFrame) -> pd.DataFrame:
    """The cells of a sheet without the empty rows and columns around them."""
    filled = sheet.notna().to_numpy()
    rows, columns = filled.any(axis=1).nonzero()[0], filled.any(axis=0).nonzero()[0]
    if not len(rows):
        return sheet.iloc[:0]
    return sheet.iloc[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
