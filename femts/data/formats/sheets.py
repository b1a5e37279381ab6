"""Sheets of Excel workbooks, by the library that reads their kind: openpyxl, or xlrd for the format before 2007."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.data.unpack import check_file, check_room
from femts.errors import UsageError

UNPACKED = 3  # bytes of cells per byte of a workbook's XML
OLD, NEW = b"\xd0\xcf\x11\xe0", b"PK"  # how workbooks before 2007 begin, and later ones
LOCKED = "EncryptedPackage".encode("utf-16-le")  # a part of later ones that have a password, which begin like old ones


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook.

    Attributes:
        title: its name.
        rows: iterates over the cells of rows, from the row after as many as are given and as far as the number of rows
            that is given, if any. A cell is None if it is empty, and NaN if it has the error of a formula; whole
            numbers are int.
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
        Exception: It cannot be read. Both libraries parse arbitrary content, so this may be any.
    """
    if check_file(path).startswith(OLD):
        if LOCKED in path.read_bytes():
            raise UsageError(f"File {path} is password-protected; save it without a password.")
        # xlrd prints to standard output what it finds odd.
        with pd.ExcelFile(path, engine="xlrd", engine_kwargs={"logfile": io.StringIO()}) as file:
            epoch = pd.Timestamp("1904-01-01" if file.book.datemode else "1899-12-30")
            read = [Sheet(sheet.name, partial(_old_rows, sheet, file.book.datemode)) for sheet in file.book.sheets()]
            yield Book(tuple(read), epoch)
        return
    with zipfile.ZipFile(path) as archive:
        check_room(
            UNPACKED * sum(each.file_size for each in archive.infolist() if each.filename.endswith(".xml")), path
        )
    with pd.ExcelFile(path, engine="openpyxl") as file:
        read = [Sheet(sheet.title, partial(_rows, sheet)) for sheet in file.book.worksheets]
        for sheet in file.book.worksheets:
            sheet.reset_dimensions()  # stored dimensions may be wrong
        yield Book(tuple(read), pd.Timestamp(file.book.epoch))


def _rows(sheet: Any, skip: int = 0, last: int | None = None) -> Iterator[list[Any]]:
    for row in sheet.iter_rows(min_row=skip + 1, max_row=last):
        yield [_value(cell) for cell in row]


def _value(cell: Any) -> object:
    if cell.data_type == "e":
        return np.nan
    return _number(cell.value) if cell.data_type == "n" and cell.value is not None else cell.value


def _old_rows(sheet: Any, datemode: int, skip: int = 0, last: int | None = None) -> Iterator[list[Any]]:
    for number in islice(range(sheet.nrows), skip, last):
        yield [_old_value(cell, datemode) for cell in sheet.row(number)]


def _old_value(cell: Any, datemode: int) -> object:
    from xlrd import XL_CELL_BOOLEAN, XL_CELL_DATE, XL_CELL_ERROR, XL_CELL_NUMBER
    from xlrd.xldate import xldate_as_datetime

    if cell.ctype == XL_CELL_DATE:
        return xldate_as_datetime(cell.value, datemode)
    if cell.ctype == XL_CELL_NUMBER:
        return _number(cell.value)
    if cell.ctype == XL_CELL_ERROR:
        return np.nan
    return bool(cell.value) if cell.ctype == XL_CELL_BOOLEAN else cell.value or None


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else float(value)
