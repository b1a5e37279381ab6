"""Text files with a separator between cells, compressed or not."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from femts.data.check import check_thousands, check_unique
from femts.data.columns import NAMELESS, NOTES
from femts.data.first_column import name_of_first, with_first
from femts.data.formats.registry import TEXT, Format, ReadOptions, register_format
from femts.data.growing import Growing
from femts.data.stamps import as_text
from femts.data.unpack import WINDOWS, check_columns, open_bytes, open_text, place
from femts.errors import UsageError
from femts.text import quote

SUFFIXES = (".csv", ".txt", ".tsv", ".tab", ".dat")
SEPARATORS = ",;\t|"
SAMPLE, SAMPLE_ROWS = 2**20, 1000  # leading characters and rows from which separators are inferred
MOST_COMMENTS = 100  # leading comment lines
ALL = 2**40  # more rows than any file has
PIECE = 2**22  # cells parsed at a time if the whole file is read
AGAIN = 2**12  # rows parsed at a time to inspect their text
_DECIMAL = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_COMMA = r"^\s*([+-]?\d*),(\d*(?:[eE][+-]?\d+)?)\s*$"
_ROUND = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # could be a decimal or a thousands separator
_ENGLISH = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+|[+-]?\d{1,3}(,\d{3}){2,}")
_POINT = re.compile(r"[+-]?(\d*\.\d+|\d{1,3}(\.\d{3})+(,\d+)?)")


def read_text(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    """Read a table with a header from a text file in pieces; text is categorical if the file is read at once."""
    names, cells = options.names, options.cells
    try:
        comments = _comments(path)
        with open_text(path) as file:
            header = next((row for row in csv.reader(islice(file, comments, None)) if row), [])
            encoding = file.buffer.raw.encoding  # type: ignore[attr-defined]
        separator, decimal = ",", "."
        if any(mark in cell for cell in header for mark in SEPARATORS[1:]):
            with open_text(path) as file:
                _ = [file.readline(SAMPLE) for _ in range(comments)]
                separator, decimal, header = _marks(file.read(SAMPLE), path)
        check_columns(len(header), path)
        nameless = header[:1] == [""] and "" not in header[1:]
        words = {"date", "ds", names.series, *names.keys, *([] if names.time is None else [names.time])}
        if not {"date", "ds", names.time} & set(header):
            words |= {NAMELESS if nameless else name for name in header[:1]}
        how: dict[str, Any] = {"sep": separator, "decimal": decimal, "skiprows": comments}
        settled, first = set[str](), ""
        if cells is None:
            pieces: Iterable[pd.DataFrame] = [_whole_csv(path, words, max(1, PIECE // max(1, len(header))), how)]
        else:
            rows = max(1, cells // max(1, len(header)))
            pieces = csv_pieces(path, cells, chunksize=rows, dtype=dict.fromkeys(words, str), **how)
        for piece in pieces:
            if nameless:
                first = first if first in ("date", NAMELESS) else name_of_first(piece, names)
                piece, given = with_first(piece, first), header[1:] if first else header
            else:
                given = header
            if "" in given:
                raise UsageError(
                    f"{place(path)} has no name for column {given.index('') + 1}; name the column or remove it."
                )
            check_unique(given, place(path))
            if decimal == ",":
                _check_points(piece.drop(columns=words, errors="ignore"), path)
                piece = _with_points(piece, words)
            doubtful = [name for name in piece.columns if name not in settled and _may_be_thousands(piece[name])]
            if doubtful:
                again = csv_pieces(path, AGAIN, chunksize=AGAIN, dtype=str, usecols=doubtful, **how)
                with warnings.catch_warnings(action="ignore"):  # later rows are checked in turn
                    check_thousands(again, place(path), decimal)
                settled.update(doubtful)
            if encoding == WINDOWS:
                note = "it is not UTF-8 and is read as Windows-1252"
                piece.attrs[NOTES] = (note, *piece.attrs.get(NOTES, ()))
            yield piece
    except UnicodeDecodeError as error:
        raise UsageError(f"{place(path)} is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        detail = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if "out of memory" in detail:
            raise MemoryError(detail) from error
        raise UsageError(
            f"{place(path)} is not a table ({quote(detail)}); give every row as many cells as the header."
        ) from error


def _whole_csv(path: Path, words: set[str], rows: int, how: dict[str, Any]) -> pd.DataFrame:
    """Read all rows of a text file piece by piece, because cells take much more memory as text than as numbers; the
    columns `words` and other text are categoricals. If a column is numeric in some pieces only, the file is read again
    at once, so that cells keep their text."""
    columns = dict[str, Growing]()
    for piece in csv_pieces(path, None, chunksize=rows, dtype=dict.fromkeys(words, "category"), **how):
        columns = columns or {name: Growing(piece[name].dtype) for name in piece}
        if not all(column.append(piece[name]) for name, column in columns.items()):
            columns.clear()
            (whole,) = csv_pieces(path, None, chunksize=ALL, dtype=dict.fromkeys(words, "category"), **how)
            return whole.astype({name: "category" for name in whole if not is_numeric_dtype(whole[name].dtype)})
    return pd.DataFrame({name: column.whole() for name, column in columns.items()}, copy=False)


def csv_pieces(path: Path, cells: int | None, **how: Any) -> Iterator[pd.DataFrame]:
    """Read a text file in pieces, each of which may take as much memory as the first."""
    # A plain file with a misleading name would otherwise be decompressed.
    how |= {"encoding": "utf-8-sig", "compression": None, "index_col": False, "low_memory": False}
    with open_bytes(path, cells) as source, pd.read_csv(source, **how) as reader:
        while True:
            # pandas truncates rows longer than the header, with this warning.
            with warnings.catch_warnings():
                if "usecols" not in how:
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                piece = next(reader, None)
            if piece is None:
                return
            if cells is not None:
                source.raw.start_piece()  # type: ignore[attr-defined]
            yield piece


def _comments(path: Path) -> int:
    """Number of lines before the header that begin with `#`; 0 if the last one has as many cells as the next line, and
    so is the header."""
    with open_text(path) as file:
        lines = [file.readline(SAMPLE)]
        while lines[-1].startswith("#") and len(lines) <= MOST_COMMENTS:
            lines.append(file.readline(SAMPLE))
    marks = (tuple(line.count(mark) for line in lines[-2:]) for mark in SEPARATORS)
    return 0 if any(0 < counts[0] == counts[-1] for counts in marks) else len(lines) - 1


def _marks(sample: str, path: Path) -> tuple[str, str, list[str]]:
    """Infer the separator, the decimal mark and the header from the beginning of a table.

    The separator is the first mark in the header that gives all rows as many cells as the header; if none does, it is
    the comma, provided that the header contains one. A comma is a decimal mark only if it is not the separator.

    Raises:
        UsageError: A comma in a number could be a decimal or a thousands separator.
    """
    whole = sample if len(sample) < SAMPLE else sample[: sample.rfind("\n") + 1]  # the last row may be incomplete
    tables = {}
    for mark in SEPARATORS:
        rows = filter(None, csv.reader(io.StringIO(whole, newline=""), delimiter=mark))
        tables[mark] = list(islice(rows, SAMPLE_ROWS + 1)) or [[]]
    in_order = sorted((mark for mark in tables if len(tables[mark][0]) > 1), key=lambda mark: len(tables[mark][0][0]))
    even = (mark for mark in in_order if len(set(map(len, tables[mark]))) == 1)
    separator = next(even, "," if "," in in_order else next(iter(in_order), ","))
    header, *rest = tables[separator]
    cells = [cell.strip() for row in rest for cell in row]
    numbers = [cell for cell in cells if _DECIMAL.fullmatch(cell)]
    if separator == "," or not numbers or any(_ENGLISH.fullmatch(cell) for cell in cells):
        return separator, ".", header
    if separator != ";" and all(_ROUND.fullmatch(cell) for cell in numbers):
        raise UsageError(
            f"{place(path)} has '{quote(numbers[0])}', in which the comma could be a decimal or a thousands "
            "separator; remove thousands separators, or use decimal points."
        )
    return separator, ",", header


def _with_points(piece: pd.DataFrame, words: set[str]) -> pd.DataFrame:
    """Convert decimal commas in columns that pandas left as text because of other cells, such as `-` for a missing
    value; the columns `words` are text."""
    text = [name for name in piece if name not in words and not is_numeric_dtype(piece[name])]
    made = {name: as_text(piece[name]).str.replace(_COMMA, r"\1.\2", regex=True) for name in text}
    return piece.assign(**made) if made else piece


def _check_points(piece: pd.DataFrame, path: Path) -> None:
    """Refuse numbers with a point if others have a decimal comma."""
    for name in piece.columns[[not is_numeric_dtype(kind) for kind in piece.dtypes]]:
        for cell in piece[name].dropna().unique():
            if _POINT.fullmatch(cell.strip()):
                row = piece.index[int(np.argmax(piece[name] == cell))] + 1
                raise UsageError(
                    f"{place(path)} has '{quote(cell.strip())}' in column '{quote(name)}' at data row {row}, but "
                    "other numbers use a decimal comma; remove thousands separators, and use one decimal separator "
                    "throughout."
                )


def _may_be_thousands(column: pd.Series) -> bool:
    """Return whether a column of numbers may come from text such as 1.027 next to 960: all are below 1000 with at most
    three decimals. Whole numbers of integer type cannot."""
    if not pd.api.types.is_float_dtype(column):
        return False
    values, filled, gaps, fractions = column.to_numpy(), False, False, False
    for first in range(0, len(values), PIECE):
        size = np.abs(values[first : first + PIECE])
        present = size[~np.isnan(size)]
        if (present >= 1000).any() or (np.abs(present * 1000 - np.round(present * 1000)) >= 1e-6).any():
            return False
        filled, gaps = filled or len(present) > 0, gaps or len(present) < len(size)
        fractions = fractions or bool((present != np.floor(present)).any())
    return filled and (fractions or not gaps)


def _write(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


register_format(TEXT, Format(SUFFIXES, read_text, _write))
