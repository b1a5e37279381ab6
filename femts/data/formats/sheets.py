"""Sheets of Excel workbooks, by the library that reads their kind: openpyxl, or xlrd for the format before 2007."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.data.unpack import check_file, check_room
from femts.errors import UsageError

UNPACKED = 3  # bytes of cells per byte of a workbook's XML
OLD_ROOM = 8  # and per byte of an old workbook
OLD, NEW = b"\xd0\xcf\x11\xe0", b"PK"  # how workbooks before 2007 begin, and later ones
LOCKED = "EncryptedPackage".encode("utf-16-le")  # a part of later ones that have a password, which begin like old ones


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook.

    Attributes:
        title: its name.
        rows: iterates over its rows after the first `skip` up to row `last` (None: all), each with the values of its
            cells: None if empty, NaN for the error of a formula, and int for whole numbers.
    """

    title: str
    rows: Callable[[int, int | None], Iterator[Sequence[Any]]]


@dataclass(frozen=True)
class Book:
    """A workbook: its sheets, and the day from which it counts days."""

    sheets: tuple[Sheet, ...]
    epoch: pd.Timestamp


@contextmanager
def open_book(path: Path) -> Iterator[Book]:
    """Open a workbook.

    Raises:
        UsageError: There is no such file, it has a password, or it would not fit in memory.
        ImportError: The library that reads it is not installed.
        Exception: It cannot be read. Both libraries parse arbitrary content, so this may be any.
    """
    if check_file(path).startswith(OLD):
        with _old_book(path) as book:
            yield book
        return
    import openpyxl  # noqa: F401  # pandas would not say which module is missing

    with zipfile.ZipFile(path) as archive:
        check_room(
            UNPACKED * sum(each.file_size for each in archive.infolist() if each.filename.endswith(".xml")), path
        )
    with pd.ExcelFile(path, engine="openpyxl") as file:
        for sheet in file.book.worksheets:
            sheet.reset_dimensions()  # stored dimensions may be wrong
        sheets = (Sheet(sheet.title, partial(_rows, sheet)) for sheet in file.book.worksheets)
        yield Book(tuple(sheets), pd.Timestamp(file.book.epoch))


@contextmanager
def _old_book(path: Path) -> Iterator[Book]:
    content = path.read_bytes()
    if LOCKED in content:
        raise UsageError(f"File {path} is password-protected; save it without a password.")
    check_room(OLD_ROOM * len(content), path)
    import xlrd

    values: dict[int, Callable[[Any], object]] = {
        xlrd.XL_CELL_DATE: lambda value: xlrd.xldate_as_datetime(value, book.datemode),
        xlrd.XL_CELL_NUMBER: _number,
        xlrd.XL_CELL_ERROR: lambda _: np.nan,
        xlrd.XL_CELL_BOOLEAN: bool,
    }

    def rows(sheet: Any, skip: int, last: int | None) -> Iterator[list[Any]]:
        for row in range(sheet.nrows)[skip:last]:
            cells = zip(sheet.row_types(row), sheet.row_values(row), strict=True)
            yield [values[kind](value) if kind in values else value or None for kind, value in cells]

    # xlrd prints what it finds odd to standard output.
    with xlrd.open_workbook(file_contents=content, logfile=io.StringIO()) as book:
        sheets = (Sheet(sheet.name, partial(rows, sheet)) for sheet in book.sheets())
        yield Book(tuple(sheets), pd.Timestamp("1904-01-01" if book.datemode else "1899-12-30"))


def _rows(sheet: Any, skip: int, last: int | None) -> Iterator[list[Any]]:
    for row in sheet.iter_rows(min_row=skip + 1, max_row=last):
        yield [_value(cell) for cell in row]


def _value(cell: Any) -> object:
    if cell.data_type == "e":
        return np.nan
    return _number(cell.value) if cell.data_type == "n" and cell.value is not None else cell.value


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else float(value)
