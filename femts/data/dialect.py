"""Marks of a text table: what stands between its cells, and before the decimals of its numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pandas as pd

from femts.data.opening import TextBytes, place
from femts.errors import UsageError
from femts.text import shown

OTHERS = ";\t|"  # separators beside the comma
SAMPLE = 2**20  # characters at the beginning, of which rows are looked at
ROWS = 1000
_DECIMAL = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_ROUND = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # decimals, or thousands
_ENGLISH = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+|[+-]?\d{1,3}(,\d{3}){2,}")
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}(?:(,\d{3})+\.\d+|(\.\d{3})+,\d+|([.,]\d{3}){2,}|([ '\u00a0\u202f]\d{3})+([.,]\d+)?)"
)


@dataclass(frozen=True)
class Dialect:
    """Marks of a text table.

    Attributes:
        separator: between cells; a comma, semicolon, tab or bar.
        decimal: before the decimals of a number; a comma is one only where it separates no cells.
    """

    separator: str = ","
    decimal: str = "."


COMMAS = Dialect()


def text_of(stream: TextBytes) -> io.TextIOWrapper:
    """The text of a stream of bytes, in UTF-8, its ends of lines as they are."""
    return io.TextIOWrapper(cast(BinaryIO, stream), encoding="utf-8-sig", newline="")


def dialect_of(sample: str, path: Path) -> tuple[Dialect, list[str]]:
    """Marks of the table that begins with `sample`, and its header.

    The separator is the one that comes first in the header and gives each row as many cells as the
    header. Where none does, it is the comma, if there is one in the header.

    Raises:
        UsageError: a comma in its numbers could stand before decimals or between thousands.
    """
    tables = {mark: _rows(sample, mark) for mark in f",{OTHERS}"}
    in_order = sorted((mark for mark in tables if len(tables[mark][0]) > 1), key=lambda mark: len(tables[mark][0][0]))
    even = (mark for mark in in_order if all(len(row) == len(tables[mark][0]) for row in tables[mark]))
    separator = next(even, "," if "," in in_order else next(iter(in_order), ","))
    header = tables[separator][0]
    if separator == ",":
        return COMMAS, header
    cells = [cell.strip() for row in tables[separator][1:] for cell in row]
    numbers = [cell for cell in cells if _DECIMAL.fullmatch(cell)]
    if not numbers or any(_ENGLISH.fullmatch(cell) for cell in cells):
        return Dialect(separator), header
    if separator != ";" and all(_ROUND.fullmatch(cell) for cell in numbers):
        raise UsageError(
            f"{place(path)} has '{shown(numbers[0])}', in which the comma could stand before decimals or between "
            "thousands; leave out marks between thousands, or write decimals after a point."
        )
    return Dialect(separator, ","), header


def check_numbers(piece: pd.DataFrame, dialect: Dialect, stamps: Sequence[str], path: Path) -> None:
    """Refuse numbers with marks between thousands, or with a point where others have a comma, with a UsageError.

    Args:
        piece: rows of a table whose marks are `dialect`; their index counts the rows of the file.
        dialect: not that of commas, which keeps its own way.
        stamps: columns of other things than numbers.
        path: the file.
    """
    for name in piece.columns:
        if name in stamps or pd.api.types.is_numeric_dtype(piece[name]):
            continue
        for cell in piece[name].unique():
            text = cell.strip() if isinstance(cell, str) else ""
            thousands = _THOUSANDS.fullmatch(text) is not None
            if not thousands and (dialect.decimal == "." or not re.fullmatch(r"[+-]?\d*\.\d+", text)):
                continue
            row = piece.index[int(np.argmax(piece[name] == cell))] + 1
            says = f"{place(path)} has '{shown(text)}' in column '{shown(name)}' at data row {row}"
            if thousands:
                raise UsageError(f"{says}; leave out marks between thousands.")
            raise UsageError(f"{says}, but other numbers with decimals after a comma; write all of them in one way.")


def _rows(sample: str, mark: str) -> list[list[str]]:
    """Cells of the first rows that are not empty, the last one left out where the sample cuts it."""
    lines = io.StringIO(sample if len(sample) < SAMPLE else sample[: sample.rfind("\n") + 1], newline="")
    rows: list[list[str]] = []
    for row in csv.reader(lines, delimiter=mark):
        if row:
            rows.append(row)
        if len(rows) > ROWS:
            break
    return rows or [[]]
