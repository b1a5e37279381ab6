"""Tables from users: read, checked, and refused in one sentence that says what is wrong and where."""

from __future__ import annotations

import csv
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.data.dates import check_order, check_step, grid_of, read_dates, step_of
from femts.data.form import USUAL, Form
from femts.errors import RunFailure, UsageError

PARQUET = (".parquet", ".pq")


def read_table(path: str | Path, form: Form = USUAL) -> pd.DataFrame:
    """A CSV file with a header, or a Parquet file, its cells not yet checked; stamps and series names of a CSV stay text.

    Raises:
        UsageError: missing, a folder, empty, not UTF-8 text, rows of different lengths, or column names that are
            missing or used twice.
    """
    path = Path(path)
    if path.suffix.lower() in PARQUET:
        return _read_parquet(path)
    _check_text(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next((row for row in csv.reader(file) if row), [])
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header, cut short
            stamps_and_names = dict.fromkeys(("date", "ds", form.series, form.time), str)
            frame = pd.read_csv(path, encoding="utf-8-sig", index_col=False, low_memory=False, dtype=stamps_and_names)
    except UnicodeDecodeError as error:
        raise UsageError(f"File {path} is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        detail = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise UsageError(f"File {path} is not a table ({detail}); give every row the header's cells.") from error
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise UsageError(f"File {path} does not separate its columns by commas; save it with ',' between the cells.")
    if "" in header:
        raise UsageError(f"File {path} has no name for column {header.index('') + 1}; name it or leave it out.")
    _check_unique(header, f"File {path}")
    return frame


def read_headless(path: str | Path) -> pd.DataFrame:
    """A comma-separated matrix without header and dates, gzipped or not (the form of Solar); columns are `0`, `1`, ...

    Raises:
        UsageError: as `read_table`, or a cell that is text or infinite.
    """
    path = Path(path)
    try:
        if path.suffix != ".gz":
            _check_text(path)
        frame = pd.read_csv(path, header=None, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"File {path} cannot be read as a matrix of numbers ({str(error).strip()}).") from error
    return check_values(frame, where=f"File {path}")


def check_frame(
    frame: pd.DataFrame,
    columns: Sequence[str] | None = None,
    freq: str | None = None,
    where: str = "The frame",
    na: Sequence[float] = (),
    form: Form = USUAL,
) -> pd.DataFrame:
    """A wide table that can be trained on or forecast from: `date` first, then float64 columns; NaN where a value is missing.

    Rows that the step skips are put in, without values.

    Args:
        frame: wide (`date` and value columns), or long (`unique_id, ds, y`), which is made wide, one column a series.
        columns: the value columns that must be there, in the order in which they are returned; None takes what comes.
        freq: the step that the dates must have, a pandas frequency; None wants any even step, and three rows to see it.
        where: what the table is, to begin a message with.
        na: numbers that stand for a missing value.
        form: what the columns are called.

    Raises:
        UsageError: a column, date or cell is not as it must be; the text names it, its place and the remedy.
    """
    _check_unique([str(c) for c in frame.columns], where)
    time = form.time_of(frame)
    if time not in frame.columns:
        raise UsageError(
            f"{where} has no '{time}' column (it has {_few(frame.columns)}); "
            f"name the column of time stamps so, or give the columns {form.series}, {form.time or 'ds'}, {form.value}."
        )
    if time != "date" and "date" in frame.columns:
        raise UsageError(f"{where} has a column 'date' beside its time stamps in '{time}'; rename or drop it.")
    frame = _to_wide(frame, where, form) if form.is_long(frame) else frame.rename(columns={time: "date"})
    values = check_values(frame.drop(columns="date"), columns, where, na)
    dates = read_dates(frame["date"], where)
    check_order(dates, where)
    if freq is None:
        freq = step_of(dates, where)
    else:
        check_step(dates, freq, where)
    grid = grid_of(dates, freq)
    if len(grid) > len(dates):
        values = values.set_axis(dates).reindex(grid).reset_index(drop=True)
        dates = grid
    values.insert(0, "date", dates)
    return values


def check_values(
    frame: pd.DataFrame, columns: Sequence[str] | None = None, where: str = "The frame", na: Sequence[float] = ()
) -> pd.DataFrame:
    """The value columns alone, as float64 under names of text, in the order of `columns` when that is given.

    A missing value, and each of the numbers `na`, becomes NaN.

    Raises:
        UsageError: columns differ from `columns`, or a cell is text or infinite; the text says which.
    """
    frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
    _check_unique(frame.columns, where)
    if columns is not None:
        missing = [c for c in columns if c not in frame.columns]
        unknown = [c for c in frame.columns if c not in columns]
        if missing or unknown:
            found = [f"lacks {_few(missing)}"] * bool(missing) + [f"has {_few(unknown)} besides"] * bool(unknown)
            raise UsageError(f"{where} {' and '.join(found)}; give the columns of the training data, {_few(columns)}.")
        frame = frame[list(columns)]
    if not len(frame.columns):
        raise UsageError(f"{where} has no value columns; add at least one column of numbers.")
    checked = pd.DataFrame({c: _numbers(frame[c], c, where) for c in frame.columns})
    checked = checked.mask(checked.isin(list(na)))
    bad = np.isinf(checked.to_numpy())
    if bad.any():
        row, column = np.argwhere(bad)[0]
        first = f"the first in column '{checked.columns[column]}' at data row {row + 1}"
        raise UsageError(f"{where} has {int(bad.sum())} infinite cells, {first}; put numbers there, or leave them empty.")
    return checked


def write_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write `frame` without its index, as Parquet where `path` ends so, else as CSV: whole or not at all.

    Raises:
        UsageError: the folder is missing, or `path` is a folder.
        RunFailure: the disk did not take it.
    """
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        wrong = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise UsageError(f"The output {path} {wrong}; name a file in an existing folder.")
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.suffix.lower() in PARQUET:
            with _parquet(path):
                frame.to_parquet(partial, index=False)
        else:
            frame.to_csv(partial, index=False)
        os.replace(partial, path)
    except OSError as error:
        raise RunFailure(f"Cannot write {path} ({error.strerror or error}); make room or name another file.") from error
    finally:
        partial.unlink(missing_ok=True)
    return path


@contextmanager
def _parquet(path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{path} needs pyarrow, which is not installed; run pip install pyarrow, or use CSV.") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    _check_file(path)
    try:
        with _parquet(path):
            return pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
        raise UsageError(f"File {path} cannot be read as Parquet ({str(error).strip().splitlines()[0]}).") from error


def _check_text(path: Path) -> None:
    head = _check_file(path)
    if b"\0" in head:
        raise UsageError(f"File {path} is binary; save it as CSV text in UTF-8.")


def _check_file(path: Path) -> bytes:
    """The first bytes of a file that can be read and is not empty."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file in it.")
    try:
        with path.open("rb") as file:
            head = file.read(8192)
    except FileNotFoundError as error:
        raise UsageError(f"File {path} does not exist; check its name.") from error
    except OSError as error:
        raise UsageError(f"File {path} cannot be opened ({error.strerror}).") from error
    if not head.strip():
        raise UsageError(f"File {path} is empty; give a table with a header and rows.")
    return head


def _check_unique(names: Sequence[str], where: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UsageError(f"{where} has two columns named '{twice}'; rename one.")


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(f"'{name}'" for name in list(names)[:6]) or "nothing"
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def _numbers(column: pd.Series, name: str, where: str) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    text = column.astype(str)  # dates and the like would turn into whatever number stands behind them
    numbers = pd.to_numeric(text, errors="coerce")
    unread = (numbers.isna() & column.notna() & (text.str.strip().str.lower() != "nan")).to_numpy()
    if unread.any():
        row = int(np.argmax(unread))
        raise UsageError(
            f"{where} has the text '{column.iloc[row]}' in column '{name}' at data row {row + 1}; put a number there."
        )
    return numbers.to_numpy(dtype=np.float64)


def _to_wide(frame: pd.DataFrame, where: str, form: Form) -> pd.DataFrame:
    y = _numbers(frame[form.value], form.value, where)
    names = frame[form.series].astype(str).to_numpy()
    table = pd.DataFrame({"id": names, "date": read_dates(frame[form.time_of(frame)], where), "y": y})
    again = table.duplicated(["id", "date"]).to_numpy()
    if again.any():
        row = int(np.argmax(again))
        raise UsageError(
            f"{where} gives series '{table['id'][row]}' twice at {table['date'][row]} (data row {row + 1}); keep one."
        )
    wide = table.pivot(index="date", columns="id", values="y")[list(dict.fromkeys(names))]
    wide.columns.name = None
    return wide.reset_index()
