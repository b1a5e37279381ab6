"""Tables from files, CSV or Parquet, with a header or without, whole or in pieces."""

from __future__ import annotations

import csv
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.form import USUAL, Form
from femts.data.frames import PARQUET, check_unique, check_values, parquet_library
from femts.errors import UsageError
from femts.text import shown

ALL = 2**40  # rows, more than any file has
GZIP = b"\x1f\x8b"
PACKED = (GZIP, b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")  # gzip, bzip2, xz, zip, zstd


def read_table(path: str | Path, form: Form = USUAL) -> pd.DataFrame:
    """A CSV file with a header, or a Parquet file, its cells not yet checked; stamps and series names of a CSV stay text.

    Raises:
        UsageError: missing, a folder, empty, not UTF-8 text, rows of different lengths, or column names that are
            missing or used twice.
    """
    (whole,) = table_pieces(path, form)
    return whole


def table_pieces(path: str | Path, form: Form = USUAL, cells: int | None = None) -> Iterator[pd.DataFrame]:
    """The table of `read_table`, about `cells` cells at a time and at least one piece; by default all at once.

    What is wrong with a row is raised when its piece is read.
    """
    path = Path(path)
    if path.suffix.lower() in PARQUET:
        yield from _parquet_pieces(path, cells)
        return
    _check_text(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next((row for row in csv.reader(file) if row), [])
        stamps_and_names = dict.fromkeys(("date", "ds", form.series, form.time), str)
        rows = ALL if cells is None else max(1, cells // max(1, len(header)))
        with pd.read_csv(
            path,
            encoding="utf-8-sig",
            compression=None,  # by its name a plain file would count as packed
            index_col=False,
            low_memory=False,
            dtype=stamps_and_names,
            chunksize=rows,
        ) as reader:
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header, cut short
                    piece = next(reader, None)
                if piece is None:
                    return
                _check_header(header, path)
                yield piece
    except UnicodeDecodeError as error:
        raise UsageError(f"File {path} is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        detail = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if "out of memory" in detail:
            raise MemoryError(detail) from error
        raise UsageError(f"File {path} is not a table ({shown(detail)}); give every row the header's cells.") from error


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
        packed = path.suffix == ".gz"
        if not packed:
            _check_text(path)
        how: Any = {"header": None, "encoding": "utf-8-sig", "compression": "gzip" if packed else None}
        width = 1 if cells is None else pd.read_csv(path, nrows=1, **how).shape[1]
        rows = ALL if cells is None else max(1, cells // width)
        with pd.read_csv(path, chunksize=rows, **how) as reader:
            yield from reader
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        reason = shown(str(error).strip())
        raise UsageError(f"File {path} cannot be read as a matrix of numbers ({reason}); get it anew.") from error


def _parquet_pieces(path: Path, cells: int | None) -> Iterator[pd.DataFrame]:
    _check_file(path)
    try:
        with parquet_library(path):
            if cells is None:
                yield pd.read_parquet(path)
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


def _check_header(header: Sequence[str], path: Path) -> None:
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise UsageError(f"File {path} does not separate its columns by commas; save it with ',' between the cells.")
    if "" in header:
        raise UsageError(f"File {path} has no name for column {header.index('') + 1}; name it or leave it out.")
    check_unique(header, f"File {path}")


def _check_text(path: Path) -> None:
    head = _check_file(path)
    if head.startswith(PACKED):
        raise UsageError(f"File {path} is binary, a packed file; unpack it and name the CSV file in it.")
    if b"\0" in head:
        raise UsageError(f"File {path} is binary; save it as CSV text in UTF-8.")


def _check_file(path: Path) -> bytes:
    """The first bytes of a file that can be read and is not empty."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name the file in it.")
        with path.open("rb") as file:
            head = file.read(8192)
    except FileNotFoundError as error:
        raise UsageError(f"File {path} does not exist; check its name.") from error
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"File {shown(path)} cannot exist ({error}); check its name.") from error
    except OSError as error:
        raise UsageError(f"File {path} cannot be opened ({error.strerror}); check its name and its rights.") from error
    if not head.strip():
        raise UsageError(f"File {path} is empty; give a table with a header and rows.")
    return head
