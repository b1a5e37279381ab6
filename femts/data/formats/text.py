"""Text files with a separator between cells, compressed or not."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES
from pandas.api.types import is_numeric_dtype

from femts.data.check import check_thousands, with_decimal_points
from femts.data.columns import CALENDAR, CODE, DOUBTS, NAMELESS, NOTES
from femts.data.describe import names as listed
from femts.data.dialect import BLANKS, ROUND, Dialect, find_dialect
from femts.data.eurostat import is_eurostat, unjoined
from femts.data.first_column import name_of_first, with_first
from femts.data.formats.registry import TEXT, Format, ReadOptions, register_format
from femts.data.growing import Growing
from femts.data.header import ABOVE, MOST_FOOTERS, is_data, without_footer, without_headers
from femts.data.stamps import as_text
from femts.data.unpack import WINDOWS, TextBytes, check_columns, open_bytes, place
from femts.errors import UsageError
from femts.text import quote

SUFFIXES = (".csv", ".txt", ".tsv", ".tab", ".dat")
ALL = 2**40  # more rows than any file has
PIECE = 2**22  # cells parsed at a time if the whole file is read
MOST_MARKED = 1000  # columns for each of which pandas keeps a table of marks of missing values
AGAIN, AGAIN_CELLS = 2**12, 2**15  # most rows, and cells, parsed at a time to inspect their text
MISSING = ("", "#N/A", "<NA>", "N/A", "NULL", "NaN", "n/a", "nan", "null")  # in text; NA and None may be names there
_COMMA = r"^\s*([+-]?\d*),(\d*(?:[eE][+-]?\d+)?)\s*$"
_POINT = r"\s*[+-]?(\d*\.\d+|\d{1,3}(\.\d{3})+(,\d+)?)\s*"
_ROUND = r"\s*[+-]?[1-9]\d{0,2}\.\d{3}\s*"  # could be a decimal or a thousands separator
_LINE = re.compile(r"Expected \d+ fields in line (\d+)")


@dataclass(frozen=True)
class _File:
    """A text file that is being read.

    Attributes:
        path: the file.
        dialect: how it is read.
        words: columns that are read as text.
        names: names of all columns, in which one without is `Unnamed: 3`, as pandas names it.
        lax: whether rows with too many cells are left out, which are below the table.
    """

    path: Path
    dialect: Dialect
    words: frozenset[str]
    names: tuple[str, ...]
    lax: bool = False

    def how(self) -> dict[str, Any]:
        """Keywords of pandas."""
        dialect = self.dialect
        how: dict[str, Any] = {"sep": dialect.separator, "decimal": dialect.decimal, "skiprows": dialect.skip}
        if not dialect.plain:
            how |= {"header": None, "names": list(self.names)}
        else:  # without the blanks around them, and numbered in another way than that of pandas
            how |= {"header": 0, "names": list(self.names)}
        return how | {"comments": dialect.comments} | ({"on_bad_lines": "skip"} if self.lax else {})

    @property
    def nameless(self) -> list[str]:
        """Columns without a name in the file."""
        return [name for name, given in zip(self.names, self.dialect.header, strict=True) if not given]


def read_text(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    """Read a table with a header from a text file in pieces; text is categorical if the file is read at once."""
    names, yielded = options.names, 0
    try:
        dialect = find_dialect(path, names.layout.skip_rows)
        header = [name.strip() for name in dialect.header]
        dialect = replace(dialect, header=header)
        check_columns(len(header), path)
        if len(set(header)) < len(header) and all(map(is_data, header)):
            raise UsageError(
                f"{place(path)} has '{quote(header[0])}' as the name of its first column; add a header row."
            )
        columns = _unique([name or f"Unnamed: {n}" for n, name in enumerate(header)])
        again = [name for name, given in zip(columns, header, strict=True) if given and name != given]
        if again:
            note = f"names of columns that occur again are numbered: {listed(tuple(again))}"
            dialect = replace(dialect, notes=(*dialect.notes, note))
        words = {"date", "ds", names.series, *names.keys, *(each.column for each in names.categories)}
        words |= set() if names.time is None else {names.time}
        if not {"date", "ds", names.time} & set(header):
            words |= set(columns[:1])
        file = _File(path, dialect, frozenset(words), columns)
        try:
            for piece in _pieces(file, options):
                yield piece
                yielded += 1
        except pd.errors.ParserError as error:
            if not _is_below(file, error):
                raise
            for number, piece in enumerate(_pieces(replace(file, lax=True), options)):
                if number >= yielded:
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


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which those that occur again are numbered, as in `a (2)`."""
    made, taken = dict[str, None](), set(names)
    for name in names:
        unique, number = name, 2
        while unique in made or (unique != name and unique in taken):
            unique, number = f"{name} ({number})", number + 1
        made[unique] = None
    return tuple(made)


def _pieces(file: _File, options: ReadOptions) -> Iterator[pd.DataFrame]:
    """The table of a text file in pieces, with its columns named and its numbers converted."""
    names, cells, dialect = options.names, options.cells, file.dialect
    settled, first, notes = dict[str, str](), "", dialect.notes
    if dialect.encoding == WINDOWS:
        notes = ("it is not UTF-8 and is read as Windows-1252", *notes)
    if cells is None:
        whole, more = _whole(file)
        pieces, notes = iter([whole]), (*notes, *more)
    else:
        pieces = _parts(file, cells)
    for piece in pieces:
        made = without_headers(without_empty(_without_empty_rows(piece), file.nameless))
        missing = [name for name in file.nameless if name in made.columns]
        if missing and missing == [file.names[0]]:
            first = first if first in ("date", NAMELESS) else name_of_first(made, names)
            made = with_first(made, first)
            missing = [] if first else missing
        if missing and not first and len(missing) < len(file.names) - 1:
            numbered = {name: f"column {file.names.index(name) + 1}" for name in missing if name != file.names[0]}
            made, missing = made.rename(columns=numbered), [name for name in missing if name not in numbered]
            note = f"columns without a name are called {', '.join(map(repr, numbered.values()))}"
            notes = (*notes, note) if note not in notes and numbered else notes
        if missing:
            raise UsageError(
                f"{place(file.path)} has no name for column {file.names.index(missing[0]) + 1}; name the column or "
                "remove it."
            )
        made = _with_points(made, file) if dialect.decimal == "," or dialect.doubt else made
        made = _with_decimals(made, file, settled)
        made = unjoined(made) if is_eurostat(dialect.header) else made
        if notes:
            made.attrs[NOTES] = (*notes, *made.attrs.get(NOTES, ()))
        yield made


def without_empty(frame: pd.DataFrame, nameless: Sequence[str]) -> pd.DataFrame:
    """The frame without those of its `nameless` columns that have no cells, as a separator at the end of each row
    makes them."""
    empty = [name for name in nameless if frame[name].isna().all()]
    return frame.drop(columns=empty) if empty else frame


def _without_empty_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without rows of nothing but separators, as blank lines are none, if its first column is text; otherwise
    they may be missing steps."""
    first = frame.iloc[:, 0]
    if is_numeric_dtype(first) or not first.isna().any():
        return frame
    empty = first.isna() & frame.iloc[:, 1:].isna().all(axis=1)
    kept = frame[~empty]
    kept.attrs = frame.attrs
    return kept.reset_index(drop=True) if len(kept) < len(frame) else frame


def _is_below(file: _File, error: Exception) -> bool:
    """Return whether the row of an error and the few after it are remarks below the table."""
    found = _LINE.search(str(error))
    if found is None:
        return False
    with open_bytes(file.path, comments=file.dialect.comments) as source:
        lines = list(islice(source, int(found[1]) - 1, int(found[1]) + MOST_FOOTERS))
    if not lines or len(lines) > MOST_FOOTERS:
        return False
    mark = None if file.dialect.separator == BLANKS else file.dialect.separator
    firsts = [line.decode().strip().split(mark)[0].strip('" ') for line in lines if line.strip()]
    return bool(firsts) and not any(map(is_data, firsts))


def _parts(file: _File, cells: int) -> Iterator[pd.DataFrame]:
    """The rows of a file in pieces of about `cells` cells, of which the last is without what is below the table."""
    rows = max(1, cells // max(1, len(file.names)))
    how = file.how() | {"dtype": dict.fromkeys(file.words, str)}
    if len(file.names) <= MOST_MARKED:
        how |= _missing(file.names, file.words)
    above = list[str]()
    for piece, state in csv_pieces(file.path, cells, chunksize=rows, **how):
        yield without_footer(piece, file.words, above) if state.last else piece
        above = as_text(piece.iloc[-ABOVE:, 0].dropna()).tolist()


def _missing(names: Sequence[str], words: Collection[str]) -> dict[str, Any]:
    """Keywords of pandas for cells that are missing: fewer kinds of them in the columns `words`."""
    usual = list(STR_NA_VALUES)
    marks = {name: list(MISSING) if name in words else usual for name in names}
    return {"keep_default_na": False, "na_values": marks}


def _whole(file: _File) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """All rows of a file and notes, read piece by piece, because cells take much more memory as text than as numbers;
    text is categorical.

    Columns keep their text as it is written if any cell is neither a number nor missing, or begins with a zero as 0075
    does.
    """
    read, zeros, comments = _columns(file)
    odd = [name for name, column in read.items() if isinstance(column, pd.Categorical) and (column.codes < 0).any()]
    padded = [name for name, column in read.items() if zeros and _may_be_codes(name, column)]
    notes = [
        f"{comments} lines that begin with # are left out" if comments > 1 else "a line that begins with # is left out"
    ] * (comments > 0)
    if odd or padded:
        text = _columns(file, [*odd, *padded])[0]
        padded = [name for name in padded if text[name].categories.str.fullmatch(CODE).any()]
        read |= {name: text[name] for name in (*odd, *padded)}
        notes += [f"column '{quote(name)}' has leading zeros and is read as text" for name in padded]
    made = without_footer(pd.DataFrame(read, copy=False), file.words)
    return made, tuple(notes)


def _may_be_codes(name: str, column: Any) -> bool:
    """Return whether the numbers of a column may be codes written with leading zeros, unlike months or hours."""
    if isinstance(column, pd.Categorical) or column.dtype.kind not in "iuf" or name.lower() in CALENDAR:
        return False
    return column.dtype.kind != "f" or bool((np.isnan(column) | (column == np.floor(column))).all())


def _columns(file: _File, again: Sequence[str] | None = None) -> tuple[dict[str, Any], bool, int]:
    """The columns of a file; whether it has cells with leading zeros; and the number of its comments. Columns `again` are
    read alone, as text of which few kinds are missing values.

    Text is categorical. If a column has numbers in some pieces only, the file is read
    again.
    """
    rows, texts = max(1, PIECE // max(1, len(file.names))), set[str]()
    words = file.words if again is None else again
    how = file.how() | ({} if again is None else {"usecols": list(again), **_missing(again, again)})
    while True:
        columns, mixed = dict[str, Growing](), set[str]()
        dtype = dict.fromkeys(words, "category") | dict.fromkeys(texts, str)
        zeros, comments = False, 0
        for piece, state in csv_pieces(file.path, None, chunksize=rows, dtype=dtype, **how):
            columns = columns or {name: Growing(piece[name].dtype) for name in piece}
            mixed = {name for name, column in columns.items() if not column.append(piece[name])}
            texts |= {name for name in mixed if columns[name].is_text or not is_numeric_dtype(piece[name].dtype)}
            zeros, comments = state.zeros, state.comments
            del piece  # before the next is read
            if mixed:
                break
        if not mixed:
            return {name: column.whole() for name, column in columns.items()}, zeros, comments
        if not mixed <= texts:  # whole numbers beyond those of float64, and fractions
            rows = ALL
        columns.clear()


def csv_pieces(
    path: Path, cells: int | None, comments: bool = False, **how: Any
) -> Iterator[tuple[pd.DataFrame, TextBytes]]:
    """Read a text file in pieces, each of which may take as much memory as the first, with the state of its bytes.

    Attribute `last` of that state tells whether there are no more pieces.
    """
    # A plain file with a misleading name would otherwise be decompressed.
    how |= {"encoding": "utf-8-sig", "compression": None, "index_col": False, "low_memory": False}
    with open_bytes(path, cells, comments=comments) as source, ExitStack() as stack:
        state, held = source.raw, None
        assert isinstance(state, TextBytes)
        state.watched = cells is None
        reader = stack.enter_context(pd.read_csv(source, **how))
        while True:
            # pandas truncates rows longer than the header, with this warning.
            with warnings.catch_warnings():
                if "usecols" not in how:
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                piece = next(reader, None)
            if held is not None:
                state.last = piece is None
                yield held, state
                held = None
            if piece is None:
                return
            if cells is not None:
                state.start_piece()
            if state.ended:  # few rows are left, or none
                held = piece
            else:
                yield piece, state
            del piece  # before the next is read


def _with_points(piece: pd.DataFrame, file: _File) -> pd.DataFrame:
    """Convert decimal commas in columns that pandas left as text because of other cells, such as `-` for a missing
    value, or of points that certainly separate thousands. Numbers with a point in other columns of such a file are left
    as they are, with a doubt if the point could separate thousands."""
    made, doubts = dict[str, pd.Series](), dict[str, str]()
    for name in piece:
        if name in file.words or is_numeric_dtype(piece[name]):
            continue
        text = as_text(piece[name])
        cells = text.drop_duplicates().dropna()
        if file.dialect.doubt:
            if cells.str.fullmatch(ROUND.pattern).any():
                doubts[name], made[name] = file.dialect.doubt, text.str.replace(_COMMA, r"\1.\2", regex=True)
            continue
        if (plain := with_decimal_points(text)) is not None:
            made[name] = plain
            continue
        pointed = cells.str.fullmatch(_POINT)
        mixed = bool(cells.str.fullmatch(_COMMA).any())
        if mixed or not pointed.any():
            made[name] = text.str.replace(_COMMA, r"\1.\2", regex=True)
        if pointed.any() and (mixed or cells.str.fullmatch(_ROUND).any()):
            first = cells[pointed].iloc[0]
            row = int(np.argmax(text == first)) + int(piece.index[0])
            doubts[name] = (
                f"{place(file.path)} has '{quote(first.strip())}' in column '{quote(name)}' at data row {row + 1}, but "
                "other numbers use a decimal comma; remove thousands separators, and use one decimal separator "
                "throughout."
            )
    return _with_attrs(piece.assign(**made) if made else piece, doubts)


def _with_attrs(piece: pd.DataFrame, doubts: dict[str, str]) -> pd.DataFrame:
    if doubts:
        piece.attrs[DOUBTS] = {**piece.attrs.get(DOUBTS, {}), **doubts}
    return piece


def _with_decimals(piece: pd.DataFrame, file: _File, settled: dict[str, str]) -> pd.DataFrame:
    """The piece with columns as text whose mark could be a decimal or a thousands separator, and the doubt; `settled`
    holds that of each column inspected before, which is empty for most."""
    unseen = [name for name in piece.columns if name not in settled and _may_be_thousands(piece[name])]
    if unseen:
        settled |= dict.fromkeys(unseen, "")
        if _doubt(file, unseen):
            settled |= {name: _doubt(file, [name]) for name in unseen}
    doubts = {name: doubt for name, doubt in settled.items() if doubt and name in piece.columns}
    made = dict[str, pd.Series]()
    for name in doubts:
        numbers = pd.Series(piece[name].to_numpy(dtype=np.float64, na_value=np.nan), piece.index)
        cells = numbers.dropna().unique()
        written = {cell: f"{cell:.0f}" if cell == int(cell) else f"{cell:.3f}" for cell in cells}
        made[name] = numbers.map(written)
    return _with_attrs(piece.assign(**made), doubts) if doubts else piece


def _doubt(file: _File, names: Sequence[str]) -> str:
    """Why the marks in numbers of one of these columns may not be decimal separators; empty if they are."""
    rows = max(100, min(AGAIN, AGAIN_CELLS // len(names)))
    how = file.how() | {"chunksize": rows, "dtype": str, "usecols": list(names)}
    again = (piece for piece, _ in csv_pieces(file.path, AGAIN, **how))
    try:
        with warnings.catch_warnings(action="ignore"):  # later rows are checked in turn
            check_thousands(again, place(file.path), file.dialect.decimal)
    except UsageError as error:
        return str(error)
    return ""


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


register_format(TEXT, Format(SUFFIXES, read_text, in_pieces=True, layout=("skip_rows",)))
