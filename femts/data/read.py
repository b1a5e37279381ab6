"""Reading tables from text, JSON, Parquet, Feather and Excel files, with or without a header, whole or in pieces."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from pandas.io.parsers import TextParser

from femts.data.check import check_thousands, check_unique, check_values, words_of
from femts.data.column_names import ROW, USUAL, ColumnNames
from femts.data.columns import (
    NAMELESS,
    NOTES,
    holds_dates,
    infer_columns,
    is_index,
    is_table,
    to_frame,
    whole_numbers,
)
from femts.data.json_table import SUFFIXES, read_json
from femts.data.monash import SUFFIX, read_tsf
from femts.data.numbering import with_numbers
from femts.data.stamps import MOST_NUMBER, as_text, from_1904
from femts.data.unpack import (
    STDIN,
    WINDOWS,
    check_columns,
    check_file,
    check_room,
    name_of,
    open_bytes,
    open_text,
    place,
    raw,
    too_large,
)
from femts.data.write import write_table as write_table
from femts.errors import UsageError
from femts.files import file_sha256
from femts.text import quote

PARQUET, FEATHER, EXCEL = (".parquet", ".pq"), (".feather", ".arrow"), (".xlsx", ".xlsm")
SEPARATORS = ",;\t|"
SAMPLE, SAMPLE_ROWS = 2**20, 1000  # leading characters and rows from which separators are inferred
MOST_COMMENTS = 100  # leading comment lines
ALL = 2**40  # more rows than any file has
PIECE = 2**22  # cells parsed at a time if the whole file is read
AGAIN = 2**12  # rows parsed at a time to inspect their text
PLACE = 16  # bytes per cell during parsing, with two copies at once
BATCH, COLUMN = 2**16, 2**13  # rows of a Parquet file per batch, and bytes of overhead per column
UNPACKED = 3  # bytes of cells per byte of a workbook's XML
ROOM, MOST_EMPTY = 2**24, 100  # most positions of a sheet, always and per non-empty cell
_DECIMAL = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_COMMA = r"^\s*([+-]?\d*),(\d*(?:[eE][+-]?\d+)?)\s*$"
_ROUND = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # could be a decimal or a thousands separator
_ENGLISH = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+|[+-]?\d{1,3}(,\d{3}){2,}")
_POINT = re.compile(r"[+-]?(\d*\.\d+|\d{1,3}(\.\d{3})+(,\d+)?)")


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """A table with unchecked cells.

    Attributes:
        frame: the table.
        form: names of its columns, as far as they are known.
        name: file name without extension, or `frame`.
        where: description of the table, to start messages with.
        notes: messages to show the user once.
        sha256: hash of the file; empty without a file.
        source: path of the file; None for a table in memory.
    """

    frame: pd.DataFrame
    form: ColumnNames
    name: str
    where: str
    notes: tuple[str, ...] = ()
    sha256: str = ""
    source: str | None = None

    def is_long(self, target: Sequence[str]) -> bool:
        """Return whether the table has one row per series and time stamp, possibly with further columns; `target` are
        the targets named by the user."""
        time = self.form.time or ("ds" if "ds" in self.frame.columns else "date")
        return {self.form.series, time, *(target or [self.form.value])} <= set(self.frame.columns)


def open_table(source: Any, names: ColumnNames, guess: bool = True) -> LoadedTable:
    """Open a table or the file at a path.

    Args:
        source: a table of pandas, polars or pyarrow, a path, or `-` for standard input.
        names: column names given by the user.
        guess: whether columns with series names and values may be inferred from their content.

    Raises:
        UsageError: The table cannot be read; the message says why.
    """
    name, where, sha256, path = "frame", "The frame", "", None
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        table, name, where = read_table(path, names), name_of(path), place(path)
        sha256 = hashlib.sha256(raw(path).read()).hexdigest() if path == STDIN else file_sha256(path)
    elif is_table(source):
        table = source
    else:
        raise UsageError(f"The data are a {type(source).__name__}; give a name, the path of a file, or a DataFrame.")
    frame = to_frame(table, where, names)
    names, notes = infer_columns(frame, names, where, long=guess)
    if names.time is None and not {"date", "ds", names.series} & set(map(str, frame.columns)):
        frame, names, more = _counted(frame, names)
        notes = (*notes, *more)
    file = None if path is None or path == STDIN else str(path.resolve())
    return LoadedTable(frame, names, name, where, (*frame.attrs.get(NOTES, ()), *notes), sha256, file)


def _counted(frame: pd.DataFrame, names: ColumnNames) -> tuple[pd.DataFrame, ColumnNames, tuple[str, ...]]:
    """Number the rows of a table without time stamps, by its first column if that is a counter. Tables with text
    columns are unchanged, because one of these may hold unreadable time stamps."""
    if not frame.size or not frame.columns.is_unique or words_of(frame):
        return frame, names, ()
    first = str(frame.columns[0])
    if len(frame.columns) > 1 and _counts(frame.iloc[:, 0]):
        note = f"column '{quote(first)}' numbers the rows and is used as time stamps"
        return frame, replace(names, time=first), (note,)
    if ROW in map(str, frame.columns):
        return frame, names, ()
    note = "it has no date column, so its rows are numbered; set the season length with season=N"
    return with_numbers(frame), replace(names, time=ROW), (note,)


def _counts(column: pd.Series) -> bool:
    """Return whether a column holds whole numbers that increase by a constant."""
    numbers = whole_numbers(column)
    steps = np.diff(() if numbers is None else numbers)
    return len(steps) > 1 and bool(steps[0] >= 1 and (steps == steps[0]).all())


def read_table(path: str | Path, names: ColumnNames = USUAL) -> pd.DataFrame:
    """Read a table with a header from a text or JSON file (compressed or not), a Parquet, Feather or Excel file, or
    standard input (`-`).

    Cells are not checked; text, which includes time stamps and series names of text files, is categorical. Notes are in
    `attrs`.

    Raises:
        UsageError: The file is missing, a folder, empty, damaged or not text, its rows have different lengths, or
            column names are missing or repeated.
    """
    (whole,) = table_pieces(path, names)
    return whole


def table_pieces(path: str | Path, names: ColumnNames = USUAL, cells: int | None = None) -> Iterator[pd.DataFrame]:
    """Read the table of `read_table` in pieces of about `cells` cells; at least one piece, and by default only one.

    Errors in a row are raised when its piece is read.
    """
    path = Path(path)
    kinds = set(map(str.lower, path.suffixes[-2:]))  # the last may be that of a compression
    try:
        if path.suffix.lower() in PARQUET:
            yield from _parquet_pieces(path, cells)
        elif path.suffix.lower() in EXCEL:
            yield _excel_table(path, names)
        elif path.suffix.lower() in FEATHER:
            yield _feather_table(path)
        elif SUFFIX in kinds:
            yield read_tsf(path)
        elif kinds & SUFFIXES or (path == STDIN and check_file(path).lstrip().startswith((b"[", b"{"))):
            yield read_json(path)
        else:
            yield from _text_pieces(path, names, cells)
    except MemoryError as error:
        raise too_large(path) from error


def read_headless(path: str | Path) -> pd.DataFrame:
    """Read a comma-separated matrix without header and dates, gzipped or not (as Solar); columns are `0`, `1`, ...

    Raises:
        UsageError: As in `read_table`, or a cell is text or infinite.
    """
    (whole,) = headless_pieces(path)
    return check_values(whole, where=f"File {path}")


def headless_pieces(path: str | Path, cells: int | None = None) -> Iterator[pd.DataFrame]:
    """Read the unchecked matrix of `read_headless` in pieces of about `cells` cells; by default all at once."""
    path = Path(path)
    try:
        rows = ALL
        if cells is not None:
            with open_text(path) as file:
                rows = max(1, cells // len(next(csv.reader(file), [""])))
        yield from _csv_pieces(path, cells, header=None, chunksize=rows)
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError, csv.Error) as error:
        reason = quote(str(error).strip())
        raise UsageError(f"File {path} cannot be read as a matrix of numbers ({reason}); download it again.") from error


def _text_pieces(path: Path, names: ColumnNames, cells: int | None) -> Iterator[pd.DataFrame]:
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
            pieces = _csv_pieces(path, cells, chunksize=rows, dtype=dict.fromkeys(words, str), **how)
        for piece in pieces:
            if nameless:
                first = first if first in ("date", NAMELESS) else _name_of_first(piece, names)
                piece, given = _with_first(piece, first), header[1:] if first else header
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
                again = _csv_pieces(path, AGAIN, chunksize=AGAIN, dtype=str, usecols=doubtful, **how)
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


def _name_of_first(frame: pd.DataFrame, names: ColumnNames) -> str:
    """Name for a first column without one: `date` if it holds time stamps, `row` if it numbers the rows of a table
    without any, that of pandas if it numbers those of a table that has some (`to_frame` leaves it out); empty if this is
    not clear."""
    first, others = frame.iloc[:, 0], set(map(str, frame.columns[1:]))
    if not {names.time, "date", "ds"} & others and holds_dates(first):
        return "date"
    if is_index(frame, names):
        return NAMELESS
    return ROW if ROW not in others and _counts(first) else ""


def _with_first(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with its first column renamed to the result of `_name_of_first`."""
    made = frame.rename(columns={frame.columns[0]: name}) if name else frame
    if name == "date":
        made.attrs[NOTES] = ("its first column has no name and contains dates and is used as time stamps",)
    return made


def _whole_csv(path: Path, words: set[str], rows: int, how: dict[str, Any]) -> pd.DataFrame:
    """Read all rows of a text file piece by piece, because cells take much more memory as text than as numbers; the
    columns `words` and other text are categoricals. If a column is numeric in some pieces only, the file is read again
    at once, so that cells keep their text."""
    columns = dict[str, _Growing]()
    for piece in _csv_pieces(path, None, chunksize=rows, dtype=dict.fromkeys(words, "category"), **how):
        columns = columns or {name: _Growing(piece[name].dtype) for name in piece}
        if not all(column.append(piece[name]) for name, column in columns.items()):
            columns.clear()
            (whole,) = _csv_pieces(path, None, chunksize=ALL, dtype=dict.fromkeys(words, "category"), **how)
            return whole.astype({name: "category" for name in whole if not is_numeric_dtype(whole[name].dtype)})
    return pd.DataFrame({name: column.whole() for name, column in columns.items()}, copy=False)


class _Growing:
    """A column read in pieces, in one block of memory that grows: pieces kept until the last is read would need as much
    again. Text is a categorical.

    Args:
        dtype: dtype of the first piece.
    """

    def __init__(self, dtype: Any) -> None:
        self._categories = None if is_numeric_dtype(dtype) else pd.Index([], dtype="str")
        self._rows, self._values = 0, np.empty(0, np.int32 if self._categories is not None else dtype)

    def append(self, piece: pd.Series) -> bool:
        """Append `piece`; return whether the column is then the same as if it were read at once."""
        if is_numeric_dtype(piece.dtype) != (self._categories is None):
            return False
        values = piece.to_numpy() if self._categories is None else self._codes(piece)
        if values.dtype != self._values.dtype:
            kinds = {values.dtype.kind, self._values.dtype.kind}
            whole = values if values.dtype.kind == "i" else self._values[: self._rows]
            if kinds != {"i", "f"} or np.abs(whole).max(initial=0) > MOST_NUMBER:
                return False
            self._values = self._values.astype(np.float64, copy=False)
        stop = self._rows + len(values)
        if stop > len(self._values):
            self._values.resize(max(stop, len(self._values) * 9 // 8), refcheck=False)
        self._values[self._rows : stop] = values
        self._rows = stop
        return True

    def _codes(self, piece: pd.Series) -> np.ndarray:
        assert self._categories is not None
        some = piece.astype("category").cat
        new = some.categories.difference(self._categories, sort=False)
        self._categories = self._categories.append(new)
        places = np.append(self._categories.get_indexer(some.categories), -1)  # a missing cell has code -1
        return places[some.codes.to_numpy()].astype(np.int32)

    def whole(self) -> Any:
        """The column; nothing can be appended afterwards."""
        self._values.resize(self._rows, refcheck=False)
        if self._categories is None:
            return self._values
        return pd.Categorical.from_codes(self._values, self._categories)  # type: ignore[arg-type]


def _csv_pieces(path: Path, cells: int | None, **how: Any) -> Iterator[pd.DataFrame]:
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


@contextmanager
def _library(name: str, path: Path) -> Iterator[None]:
    """Raise a UsageError that names a missing library."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{path} needs {name}, which is not installed; run pip install {name}, or use CSV.") from error


def _parquet_pieces(path: Path, cells: int | None) -> Iterator[pd.DataFrame]:
    """Read a Parquet file in pieces of about `cells` cells; None reads all at once."""
    check_file(path)
    try:
        with _library("pyarrow", path):
            from pyarrow import Table, compute, default_memory_pool, types
            from pyarrow.parquet import ParquetFile
        with ParquetFile(path) as file:
            facts, schema = file.metadata, file.schema_arrow
        check_columns(facts.num_columns, path)
        check_room(COLUMN * facts.num_columns, path)
        if cells is None:
            unpacked = sum(facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
            check_room(max(unpacked, PLACE * facts.num_rows * facts.num_columns), path)
        kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        words = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
        rows, taken, batches = BATCH if cells is None else max(1, cells // max(1, len(schema.names))), 0, []
        # Text columns are read as dictionaries, because a long string may be repeated in millions of rows.
        with ParquetFile(path, read_dictionary=words) as file:
            if cells is not None:
                yield _pandas(schema.empty_table())
            for batch in file.iter_batches(rows):
                columns = (batch.column(name) for name in words)
                lengths = (compute.binary_length(each.dictionary).take(each.indices) for each in columns)
                taken = taken * (cells is None) + sum(compute.sum(each).as_py() or 0 for each in lengths)
                check_room(taken, path)
                if cells is None:
                    batches.append(batch)
                else:
                    yield _pandas(batch.cast(schema))
        if cells is None:
            table = _pandas(Table.from_batches(batches) if batches else schema.empty_table())
            table.attrs = {}  # Parquet stores the attrs of the original frame
            # pyarrow keeps what it frees for later tables, which would be more than this one takes
            batches.clear()
            default_memory_pool().release_unused()
            table = table.copy()
            default_memory_pool().release_unused()
            yield table
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        reason = quote(str(error).strip().partition("\n")[0])
        raise UsageError(f"File {path} cannot be read as Parquet ({reason}); write it again, or as CSV.") from error


def _pandas(table: Any) -> pd.DataFrame:
    """Convert an Arrow table or batch to a frame, ignoring invalid pandas metadata."""
    try:
        return table.to_pandas()
    except MemoryError:
        raise
    except Exception:  # the metadata may hold anything, and pyarrow does not check it
        return table.replace_schema_metadata(None).to_pandas()


def _feather_table(path: Path) -> pd.DataFrame:
    check_file(path)
    with _library("pyarrow", path):
        from pyarrow import ArrowException, feather
    try:
        return _pandas(feather.read_table(path))
    except (ArrowException, OSError, ValueError) as error:
        reason = quote(str(error).strip().partition("\n")[0])
        raise UsageError(f"File {path} cannot be read as Feather ({reason}); write it again, or as CSV.") from error


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
        with _library("openpyxl", path), pd.ExcelFile(path, engine="openpyxl") as book:
            full = [sheet for sheet in book.book.worksheets if _has_cells(sheet)]
            if not full:
                raise UsageError(f"File {path} is empty; provide a table with a header and rows.")
            table = _sheet_table(full[0], path, names)
            if book.book.epoch.year == 1904:
                table = _with_days_from_1904(table)
    except UsageError:
        raise
    except Exception as error:  # openpyxl parses arbitrary XML
        if isinstance(error, MemoryError):
            raise
        reason = quote(str(error).strip().partition("\n")[0])
        raise UsageError(
            f"File {path} cannot be read as an Excel workbook ({reason}); save it again, or as CSV."
        ) from error
    if len(full) > 1:
        note = f"the first of its {len(full)} sheets, '{quote(full[0].title)}', was read"
        table.attrs[NOTES] = (note, *table.attrs.get(NOTES, ()))
    return table


def _with_days_from_1904(table: pd.DataFrame) -> pd.DataFrame:
    """The table with day numbers as in other workbooks; openpyxl converts only cells with a date format."""
    made = table.copy(deep=False)
    for number in range(table.shape[1]):
        days = from_1904(table.iloc[:, number])
        if holds_dates(days):
            made.isetitem(number, days)
    return made


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
    check_room(PLACE * len(rows) * len(used), path)
    table = TextParser([[row.get(column, "") for column in used] for row in rows], header=None).read()
    header = table.iloc[0]
    # A whole number, such as a year, is read as a float if cells below it are empty.
    named = [str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell) for cell in header]
    made = table.iloc[1:].reset_index(drop=True).set_axis(named, axis=1).infer_objects()
    nameless = header.isna().to_numpy().nonzero()[0]
    if not len(nameless):
        return made
    name = _name_of_first(made, names) if list(nameless) == [0] else ""
    if not name:
        column = used[nameless[0]]
        raise UsageError(
            f"File {path} has no name for column {column - used[0] + 1}, which contains the cell {first[column]}; "
            "name the column or clear the cell."
        )
    return _with_first(made, name)


def _value(cell: Any) -> object:
    """Value of a cell: whole numbers as int, and None for a formula error."""
    if cell.data_type == "e":
        return np.nan
    if cell.data_type != "n":
        return cell.value
    return int(cell.value) if cell.value == int(cell.value) else float(cell.value)
