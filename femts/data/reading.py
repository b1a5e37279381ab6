"""Tables from files of any kind, with a header or without, whole or in pieces."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.dialect import COMMAS, OTHERS, SAMPLE, check_numbers, dialect_of, text_of
from femts.data.form import USUAL, Form
from femts.data.formats import EXCEL, PARQUET, excel_table, parquet_pieces
from femts.data.frames import check_unique, check_values
from femts.data.naming import holds_dates
from femts.data.opening import MOST_LINE, check_columns, opened_text, place
from femts.errors import UsageError
from femts.text import shown

MOST_COMMENTS = 100  # lines
ALL = 2**40  # rows, more than any file has
MOST_BYTES = 2**10  # that a cell takes, on the average over many rows


def read_table(path: str | Path, form: Form = USUAL) -> pd.DataFrame:
    """A table with a header from a text file, packed or not, from a Parquet or Excel file, or from
    standard input (`-`).

    Its cells are not yet checked; stamps and series names of a text file stay text. Notes are in `attrs["notes"]`.

    Raises:
        UsageError: missing, a folder, empty, damaged, not UTF-8 text, rows of different lengths, or
            column names that are missing or used twice.
    """
    (whole,) = table_pieces(path, form)
    return whole


def table_pieces(path: str | Path, form: Form = USUAL, cells: int | None = None) -> Iterator[pd.DataFrame]:
    """The table of `read_table`, about `cells` cells at a time and at least one piece; by default all at once.

    What is wrong with a row is raised when its piece is read.
    """
    path = Path(path)
    if path.suffix.lower() in PARQUET:
        yield from parquet_pieces(path, cells)
    elif path.suffix.lower() in EXCEL:
        yield excel_table(path)
    else:
        yield from _text_pieces(path, form, cells)


def _text_pieces(path: Path, form: Form, cells: int | None) -> Iterator[pd.DataFrame]:
    try:
        comments = _comments(path)
        with text_of(opened_text(path)) as file:
            header = next((row for row in csv.reader(islice(file, comments, None)) if row), [])
        dialect = COMMAS
        if any(mark in cell for cell in header for mark in OTHERS):
            with text_of(opened_text(path)) as file:
                _ = [file.readline(SAMPLE) for _ in range(comments)]
                dialect, header = dialect_of(file.read(SAMPLE), path)
        check_columns(len(header), path)
        nameless = header[:1] == [""] and "" not in header[1:]
        words = ["date", "ds", form.series, *([] if form.time is None else [form.time])]
        if not {"date", "ds", form.time} & set(header):
            words += ["Unnamed: 0" if nameless else name for name in header[:1]]
        rows = ALL if cells is None else max(1, cells // max(1, len(header)))
        with ExitStack() as stack:
            source = stack.enter_context(opened_text(path, _most(cells)))
            reader = stack.enter_context(
                pd.read_csv(
                    source,
                    sep=dialect.separator,
                    decimal=dialect.decimal,
                    encoding="utf-8-sig",
                    compression=None,  # by its name a plain file would count as packed
                    index_col=False,
                    skiprows=comments,
                    low_memory=False,
                    dtype=dict.fromkeys(words, str),
                    chunksize=rows,
                )
            )
            dated = False
            while True:
                # A row longer than the header is cut short, with this warning.
                with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
                    piece = next(reader, None)
                if piece is None:
                    return
                source.start_piece()
                dated = dated or (nameless and not {"date", "ds"} & set(header) and holds_dates(piece.iloc[:, 0]))
                if dated:
                    piece = piece.rename(columns={piece.columns[0]: "date"})
                    piece.attrs["notes"] = (
                        "its first column has no name and holds dates, so it is taken for the stamps",
                    )
                _check_header(header[1:] if dated else header, path)
                if dialect != COMMAS:
                    check_numbers(piece, dialect, words, path)
                yield piece
    except UnicodeDecodeError as error:
        raise UsageError(f"{place(path)} is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        detail = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if "out of memory" in detail:
            raise MemoryError(detail) from error
        raise UsageError(
            f"{place(path)} is not a table ({shown(detail)}); give every row the header's cells."
        ) from error


def _most(cells: int | None) -> int | None:
    """Bytes that a piece of about `cells` cells may take; a few rows at least, of a table with many columns."""
    return None if cells is None else max(MOST_BYTES * cells, 16 * MOST_LINE)


def _comments(path: Path) -> int:
    """Lines before the header that begin with `#`; none where the last of them has as many cells as the next line."""
    with text_of(opened_text(path)) as file:
        lines = [file.readline(SAMPLE)]
        while lines[-1].startswith("#") and len(lines) <= MOST_COMMENTS:
            lines.append(file.readline(SAMPLE))
    marks = (tuple(line.count(mark) for line in lines[-2:]) for mark in f",{OTHERS}")
    return 0 if any(0 < counts[0] == counts[-1] for counts in marks) else len(lines) - 1


def read_headless(path: str | Path) -> pd.DataFrame:
    """A comma-separated matrix without header and dates, gzipped or not (the form of Solar); columns are `0`, `1`, ...

    Raises:
        UsageError: as `read_table`, or a cell that is text or infinite.
    """
    (whole,) = headless_pieces(path)
    return check_values(whole, where=f"File {path}")


def headless_pieces(path: str | Path, cells: int | None = None) -> Iterator[pd.DataFrame]:
    """The matrix of `read_headless`, not yet checked, about `cells` cells at a time; by default all at once."""
    path = Path(path)
    try:
        how: Any = {"header": None, "encoding": "utf-8-sig", "compression": None}
        width = 1
        if cells is not None:
            with opened_text(path) as source:
                width = pd.read_csv(source, nrows=1, **how).shape[1]
        rows = ALL if cells is None else max(1, cells // width)
        with opened_text(path, _most(cells)) as source, pd.read_csv(source, chunksize=rows, **how) as reader:
            for piece in reader:
                source.start_piece()
                yield piece
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = shown(str(error).strip())
        raise UsageError(f"File {path} cannot be read as a matrix of numbers ({reason}); get it anew.") from error


def _check_header(header: Sequence[str], path: Path) -> None:
    if "" in header:
        raise UsageError(f"{place(path)} has no name for column {header.index('') + 1}; name it or leave it out.")
    check_unique(header, place(path))
