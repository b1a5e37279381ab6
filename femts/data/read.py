"""Opening tables: files of any registered format, with or without a header, whole or in pieces, and tables in memory."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.check import check_values, words_of
from femts.data.column_names import ROW, USUAL, ColumnNames
from femts.data.columns import NOTES, infer_columns, is_table, to_frame
from femts.data.describe import names as listed
from femts.data.first_column import counts
from femts.data.formats.registry import ReadOptions, format_of
from femts.data.formats.text import ALL, csv_pieces
from femts.data.marks import known_marks, without_marks
from femts.data.numbering import with_numbers
from femts.data.series_rows import dated_columns, dates_among
from femts.data.unpack import STDIN, name_of, open_text, place, raw, too_large
from femts.data.write import write_table as write_table
from femts.errors import TableFault, UsageError, nearest, suggest
from femts.files import file_sha256
from femts.text import Message, argument, arguments, quote

HEAD = 2**16  # cells at the beginning of a table that are judged before all are read
_NUMBER, _FRACTION = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*"), re.compile(r"\s*(-\d+(\.\d*)?|[+-]?\d+\.\d*)\s*")


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """A table in memory whose cells are not checked: as it was read, from `read_source`, or with its time stamps in a
    column, from `open_table`.

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


def read_source(source: Any, names: ColumnNames) -> LoadedTable:
    """Read a table as it is, or the file at a path.

    Args:
        source: a table of pandas, polars or pyarrow, a path, or `-` for standard input.
        names: column names given by the user.

    Raises:
        UsageError: The table cannot be read, or is not of a kind that has the sheet or the lines that the user named.
    """
    path = Path(source).expanduser() if isinstance(source, str | Path) else None
    if path is None and not is_table(source):
        raise UsageError(f"The data are a {type(source).__name__}; give a name, the path of a file, or a DataFrame.")
    where, known = ("The frame", ()) if path is None else (place(path), format_of(path).layout)
    for name, parts in (("sheet", "sheets"), ("skip_rows", "lines above its header")):
        given = getattr(names.layout, name)
        if given and name not in known:
            advice = f"; remove {arguments({name: given})}."
            raise TableFault(f"{where} has no {parts}", advice, {name: None}, argument=name, value=given)
    if path is None:
        return LoadedTable(to_frame(source, where, None), names, "frame", where)
    frame = read_table(path, names)
    if path == STDIN:
        return LoadedTable(frame, names, name_of(path), where, (), hashlib.sha256(raw(path).read()).hexdigest())
    return LoadedTable(frame, names, name_of(path), where, (), file_sha256(path), str(path.resolve()))


def open_table(given: LoadedTable) -> LoadedTable:
    """The table with its time stamps in a column, and the names of its columns as far as they are known.

    Raises:
        UsageError: A column that the user named is absent, or the table has no header.
    """
    frame, names, where = given.frame, given.form, given.where
    columns = list(map(str, frame.columns))
    absent = next((name for name in names.layout.drop if name not in columns), None)
    if absent is not None:
        others = [name for name in names.layout.drop if name != absent]
        others += [meant] if (meant := nearest(absent, columns)) is not None and meant not in others else []
        fault = f"{where} has no column '{quote(absent)}' to drop"
        drop = list(names.layout.drop)
        raise TableFault(fault, suggest(absent, columns), {"drop": others or None}, argument="drop", value=drop)
    frame, noted = to_frame(frame, where, names), tuple[str, ...]()
    if words := known_marks(frame):
        marked = listed(tuple(dict.fromkeys(name for having in words.values() for name in having)))
        quoted = ", ".join(f"'{quote(word)}'" for word in words)
        noted = (f"{quoted} in {marked} is read as missing",)
        names = replace(names, missing=tuple(dict.fromkeys((*names.missing, *words))))
        frame = without_marks(frame, names.missing, (names.time, names.series, *names.keys))
    _check_names(frame, names, where)
    found, notes = infer_columns(frame, names, where)
    if names.time is None and found.time not in (None, *map(str, frame.columns[:1])) and dated_columns(frame, names):
        found, notes = names, ()  # each row is a series, in which that is one date among others
    names = found
    if names.time is None and not {"date", "ds", names.series} & set(map(str, frame.columns)):
        frame, names, more = _counted(frame, names)
        notes = (*notes, *more)
    return replace(given, frame=frame, form=names, notes=(*given.notes, *frame.attrs.get(NOTES, ()), *noted, *notes))


def _check_names(frame: pd.DataFrame, names: ColumnNames, where: str) -> None:
    """Raise UsageError if the column names are numbers of a data row rather than names, or if the user named a column for
    time stamps, series or values that is not among them."""
    columns = list(map(str, frame.columns))
    if all(map(_NUMBER.fullmatch, columns)) and any(map(_FRACTION.fullmatch, columns)):
        raise UsageError(f"{where} has numbers such as '{quote(columns[0])}' as column names; add a header row.")
    named = {"time": [names.time], "series": names.keys or [names.series], "value": [names.value]}
    if names.series in columns:
        named["series"] = []
    if not {"date", "ds", names.time} & set(columns):
        named["value"] = []  # it may be a table of one series per row, which has no column of values
    for key, wanted in named.items():
        absent = next((name for name in wanted if name not in (None, ROW, getattr(USUAL, key), *columns)), None)
        if absent is None:
            continue
        given = names.given()
        meant = nearest(absent, columns)
        if key == "series" and names.keys and meant is None:
            given[key] = "+".join(name for name in names.keys if name != absent)
        elif meant is not None:
            given[key] = given[key].replace(absent, meant)
        else:
            given.pop(key)
        fault = f"{where} has no column '{quote(absent)}' for {arguments({'columns': {key: getattr(names, key)}})}"
        advice, wrong = suggest(absent, columns), names.given()
        raise TableFault(fault, advice, {"columns": given or None}, argument="columns", value=wrong)


def _counted(frame: pd.DataFrame, names: ColumnNames) -> tuple[pd.DataFrame, ColumnNames, tuple[str, ...]]:
    """Number the rows of a table without time stamps, by its first column if that is a counter. Tables with text
    columns are unchanged, because one of these may hold unreadable time stamps."""
    if not frame.size or not frame.columns.is_unique or words_of(frame):
        return frame, names, ()
    first, dated = str(frame.columns[0]), dates_among(list(map(str, frame.columns[1:])))
    if len(frame.columns) > 1 and counts(frame.iloc[:, 0]) and (first == ROW or not dated):
        note = f"column '{quote(first)}' numbers the rows and is used as time stamps"
        return frame, replace(names, time=first), (note,)
    if ROW in map(str, frame.columns) or dated:  # a series in each row
        return frame, names, ()
    note = Message(
        f"it has no date column, so its rows are numbered; set the season length with {argument('season=N')}"
    )
    return with_numbers(frame), replace(names, time=ROW), (note,)


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


def table_pieces(
    path: str | Path, names: ColumnNames = USUAL, cells: int | None = None
) -> Generator[pd.DataFrame, None, None]:
    """Read the table of `read_table` in pieces of about `cells` cells; at least one piece, and by default only one.

    Errors in a row are raised when its piece is read.
    """
    path = Path(path)
    try:
        found = format_of(path)
        yield from found.read(path, ReadOptions(names, cells))
    except MemoryError as error:
        raise too_large(path) from error
    except ImportError as error:
        if found.library is None:
            raise
        library = (error.name or found.library).partition(".")[0]  # a format may have several
        raise UsageError(
            f"{path} needs {library}, which is not installed; run pip install {library}, or use CSV."
        ) from error


def first_rows(given: LoadedTable) -> LoadedTable:
    """The first rows of a table, some `HEAD` cells."""
    rows = max(1, HEAD // max(1, given.frame.shape[1]))
    if len(given.frame) < rows:
        return given
    return replace(given, frame=given.frame.iloc[:rows].copy(), where=f"{given.where} (its first {rows} rows)")


def read_first_rows(source: Any, names: ColumnNames) -> LoadedTable | None:
    """As `first_rows`, without reading the rest; None for a file of a format that is read at once."""
    if not isinstance(source, str | Path):
        return first_rows(read_source(source, names))
    path = Path(source).expanduser()
    if not format_of(path).in_pieces:
        return None
    with closing(table_pieces(path, names, HEAD)) as pieces:
        head = next((piece for piece in pieces if len(piece)), None)
    return None if head is None else first_rows(LoadedTable(head, names, name_of(path), place(path)))


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
        yield from (piece for piece, _ in csv_pieces(path, cells, header=None, chunksize=rows))
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError, csv.Error) as error:
        reason = quote(str(error).strip())
        raise UsageError(f"File {path} cannot be read as a matrix of numbers ({reason}); download it again.") from error
