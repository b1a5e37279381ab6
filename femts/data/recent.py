"""The end of a table that may be larger than memory: what a forecast is made from, kept while the rest passes by."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.check import LARGEST, parsed
from femts.data.column_names import USUAL, ColumnNames
from femts.data.columns import match_columns, to_frame
from femts.data.read import headless_pieces, read_table, table_pieces
from femts.data.schema import PLAIN, Schema
from femts.data.stamps import as_text, read_dates
from femts.data.unpack import place
from femts.errors import UsageError

CELLS = 2**20  # read at a time
MOST_REPEATED = 2**24  # cells of rows that repeat a stamp
Pieces = Callable[[], Iterable[pd.DataFrame]]


class _Stamps(UsageError):
    """Stamps that cannot be read piece by piece."""


def read_recent(
    path: str | Path,
    steps: int,
    freq: str | None,
    schema: Schema = PLAIN,
    cells: int = CELLS,
    names: Sequence[str] = (),
) -> pd.DataFrame:
    """Of the file that `read_table` reads, or `read_headless`, the rows that the last `steps` steps
    are in, not yet checked.

    Memory does not grow with the file: it is that of `cells` cells and of `steps` stamps of every series. Only stamps
    that mean something else as a whole (12/11/2024, where a 13th follows) have it read whole.

    Args:
        path: any that `read_table` reads, wide or long.
        steps: steps that are wanted.
        freq: the step of its stamps; None for a matrix without header and stamps.
        schema: what the columns are called, and what stands for a missing value.
        cells: cells that are read at a time.
        names: channels whose gaps at the start of these steps are filled from before; it takes a second reading.

    Returns:
        Of a wide table the last `steps` rows in order of time, of a long one what `last_stamps` keeps; before them
        those of `rows_before`, where there are gaps to fill.

    Raises:
        UsageError: as `read_table`.
    """
    if freq is None:
        recent = _last_rows(headless_pieces(path, cells), steps)
        return _with_earlier(recent, lambda: headless_pieces(path, cells), names, None, schema)
    where, given = place(Path(path)), schema.form

    def all_pieces() -> Iterator[pd.DataFrame]:
        for piece in table_pieces(path, given, cells):
            yield to_frame(piece, where, given)
            del piece
            if pd.__version__ < "3":  # a column and its `str` hold each other
                gc.collect(1)

    pieces = all_pieces()
    first = next(pieces)
    columns = match_columns(first, given)
    if columns.time_of(first) not in map(str, first.columns):
        return _last_rows(chain([first], pieces), steps)
    long, again = columns.is_long(first), all_pieces
    try:
        if long:
            recent = last_stamps(chain([first], pieces), steps, freq, columns, where)
        else:
            recent = _last_by_time(chain([first], pieces), steps, freq, columns)
    except _Stamps:
        whole = to_frame(read_table(path, columns), where, columns)
        recent = last_stamps([whole], steps, freq, columns, where) if long else last_steps(whole, steps, freq, columns)
        again = partial(iter, [whole])
    return _with_earlier(recent, again, names, freq, replace(schema, form=columns))


def _with_earlier(
    recent: pd.DataFrame, pieces: Pieces, names: Sequence[str], freq: str | None, schema: Schema
) -> pd.DataFrame:
    """The `recent` rows of a table in `pieces`, after those that fill the gaps of `names` in the first of them."""
    time = schema.form.time_of(recent)
    try:
        stamps = recent.index if freq is None else read_dates(recent[time], freq=freq)
    except UsageError:
        return recent  # who checks these rows says so
    if not len(stamps) or not names:
        return recent
    first = numbers(recent.set_axis(stamps), names, schema).sort_index().iloc[0]
    rows = rows_before(pieces, stamps.min(), list(first.index[first.isna()]), freq, schema)
    if not len(rows):
        return recent
    if freq is not None:
        rows = rows.assign(**{time: rows.index}) if schema.form.is_long(rows) else _read(rows, time, rows.index)
    return pd.concat([rows, recent], ignore_index=freq is not None)


def last_steps(history: pd.DataFrame, count: int, freq: str, names: ColumnNames = USUAL) -> pd.DataFrame:
    """The last `count` rows of a wide table by time, this read, in order; by place, where earlier stamps cannot be.

    What is wrong with those rows is said by who checks them; what lies before them is nobody's concern.

    Raises:
        UsageError: stamps cannot be read, and rows are not in order.
    """
    time, recent = names.time_of(history), history.tail(count)
    try:
        stamps = read_dates(history[time], "The history", freq)
    except UsageError:
        try:
            in_order = read_dates(recent[time], "The history", freq).is_monotonic_increasing
        except UsageError:
            in_order = True  # who checks these rows says so
        if not in_order:
            raise
        return recent
    return _in_order(_read(history, time, stamps), stamps).tail(count)


def _last_by_time(pieces: Iterable[pd.DataFrame], count: int, freq: str, names: ColumnNames) -> pd.DataFrame:
    """The rows of the last `count` different stamps of a wide table that comes in pieces, in order."""
    recent, ends = None, pd.Index([])
    for piece in pieces:
        time = names.time_of(piece)
        stamps = _stamps_of(piece, time, freq, "The history")
        piece = _read(piece, time, stamps) if len(piece) else piece
        if recent is None or not len(ends):  # an empty piece has the names of columns, but no stamps of any kind
            recent, ends = piece, stamps
        elif len(piece):
            _check_kind(ends, stamps, "The history")
            recent, ends = pd.concat([recent, piece]), ends.append(stamps)
        distinct = ends.unique()
        if (len(ends) - len(distinct)) * piece.shape[1] > MOST_REPEATED:
            break  # who checks these rows says so, and more of them would take all memory
        if len(distinct) > count:
            here = ends >= distinct.sort_values()[-count]
            recent, ends = recent[here], ends[here]
    assert recent is not None, "a table comes in one piece at least"
    return _in_order(recent, ends)


def last_stamps(
    pieces: Iterable[pd.DataFrame], count: int, freq: str | None, names: ColumnNames = USUAL, where: str = "The history"
) -> pd.DataFrame:
    """Of a table that comes in pieces, in any order, the rows of the last `count` different stamps, these read.

    A series of a long table without a row among them gets one for the last stamp, without a value.

    Raises:
        UsageError: a stamp cannot be read, or stamps of several kinds or time zones; the text says which.
    """
    recent, series, time = pd.DataFrame(), dict[str, None](), ""
    for piece in pieces:
        time = names.time_of(piece)
        series |= dict.fromkeys(piece[names.series].astype(str).unique())
        piece = piece.assign(**{time: _stamps_of(piece, time, freq, where)})
        if len(recent) and len(piece):
            _check_kind(pd.Index(recent[time]), pd.Index(piece[time]), where)
        recent = pd.concat([recent, piece]) if len(recent) and len(piece) else recent if len(recent) else piece
        stamps = np.sort(recent[time].unique())
        if len(stamps) > count:
            recent = recent[recent[time] >= stamps[-count]]
    here = set(recent[names.series].astype(str))
    ended = [name for name in series if name not in here]
    if not ended:
        return recent
    last = pd.DataFrame({names.series: ended, time: recent[time].max(), names.value: np.nan})
    return pd.concat([recent, last[[*recent.columns]]])


def _stamps_of(piece: pd.DataFrame, time: str, freq: str | None, where: str) -> pd.Index:
    try:
        return read_dates(piece[time], where, freq)
    except UsageError as error:
        raise _Stamps(str(error)) from error


def _check_kind(stamps: pd.Index, others: pd.Index, where: str) -> None:
    """Refuse stamps of two kinds, which cannot be compared: of two time zones, or dates and numbers."""
    kinds = {getattr(each, "tz", None) if isinstance(each, pd.DatetimeIndex) else "number" for each in (stamps, others)}
    if len(kinds) > 1:
        raise _Stamps(f"{where} has stamps of several kinds or time zones; write them all in one way.")


def _read(table: pd.DataFrame, time: str, stamps: pd.Index) -> pd.DataFrame:
    """The table with its `stamps` read, for in some rows alone a day could be a month; those of a time zone as they
    are, for a summer's rows alone have one offset."""
    return table if getattr(stamps, "tz", None) is not None else table.assign(**{time: stamps})


def _in_order(table: pd.DataFrame, stamps: pd.Index) -> pd.DataFrame:
    return table if stamps.is_monotonic_increasing else table.iloc[np.argsort(stamps.to_numpy(), kind="stable")]


def _last_rows(pieces: Iterable[pd.DataFrame], count: int) -> pd.DataFrame:
    """The last `count` rows of a table that comes in pieces."""
    recent = None
    for piece in pieces:
        recent = piece if recent is None or len(piece) >= count else pd.concat([recent, piece])
        recent = recent.tail(count).copy()  # a copy lets go of the rest
    assert recent is not None, "a table comes in one piece at least"
    return recent


def rows_before(pieces: Pieces, start: Any, names: Sequence[str], freq: str | None, schema: Schema) -> pd.DataFrame:
    """Of a user's table in `pieces`, in any order, the rows with the last values before the stamp `start`.

    No more stay in memory than there are `names`. Nobody checks these rows: a cell that is no number is missing, and
    a table whose stamps cannot be read has none of them.

    Args:
        pieces: goes through the table anew each time it is called.
        start: the first stamp of the look-back, or its number for data without stamps.
        names: the columns, or series of a long table, whose last values are wanted.
        freq: the step; None for a table without stamps, whose index has the numbers of its rows.
        schema: what the columns are called, what stands for a missing value, and what is known in
            advance: a long table gets these series' rows at the same stamps, too.

    Returns:
        Rows of the table as they are, by their stamps; without columns where there are none.
    """
    columns, ahead, rows = schema.form, schema.roles.future, pd.DataFrame()
    if not names:
        return rows
    try:
        for gone in _gone(pieces, start, freq, columns):
            parts = [part for part in (rows, gone) if len(part)]
            rows = _last(pd.concat(parts).sort_index(kind="stable"), names, schema) if parts else rows
        if columns.is_long(rows) and ahead:
            own = (gone[as_text(gone[columns.series]).isin(ahead)] for gone in _gone(pieces, start, freq, columns))
            rows = pd.concat([rows, *(each[each.index.isin(rows.index)] for each in own)])
    except (UsageError, TypeError):  # stamps that are none, or of another kind
        return pd.DataFrame()
    return rows


def _gone(pieces: Pieces, start: Any, freq: str | None, names: ColumnNames) -> Iterator[pd.DataFrame]:
    """The rows before `start`, piece by piece, by their stamps in its time zone."""
    for piece in filter(len, pieces()):
        stamps = piece.index if freq is None else read_dates(piece[names.time_of(piece)], freq=freq)
        if getattr(start, "tz", None) is not None:
            stamps = pd.DatetimeIndex(stamps).tz_convert(start.tz)
        yield piece.set_axis(stamps)[np.asarray(stamps < start)]


def _last(rows: pd.DataFrame, names: Sequence[str], schema: Schema) -> pd.DataFrame:
    """Of `rows` in order of time, those that hold the last value of one of `names`."""
    columns = schema.form
    if columns.is_long(rows):
        series = as_text(rows[columns.series]).where(~np.isnan(_readable(rows[columns.value], schema.na)))
        return rows[(series.isin(names) & ~series.duplicated(keep="last")).to_numpy()]
    valid = (np.flatnonzero(column) for column in numbers(rows, names, schema).notna().to_numpy().T)
    return rows.iloc[sorted({int(last[-1]) for last in valid if len(last)})]


def numbers(rows: pd.DataFrame, names: Sequence[str], schema: Schema) -> pd.DataFrame:
    """The values of `rows` of a user's table by their stamps, a column for each of `names`, NaN for what is none."""
    columns, na = schema.form, schema.na
    if columns.is_long(rows):
        cells = pd.Series(_readable(rows[columns.value], na), [rows.index, as_text(rows[columns.series])])
        return cells.groupby(level=[0, 1]).last().unstack().reindex(columns=list(names))
    own = {str(column): _readable(rows[column], na) for column in rows.columns if str(column) in names}
    return pd.DataFrame(own, rows.index, list(names), dtype=np.float64)


def _readable(cells: pd.Series, na: Sequence[float]) -> NDArray[np.float64]:
    """The numbers of `cells`, NaN for all that is none."""
    read = parsed(cells, na)[0]
    return np.where(np.abs(read) <= LARGEST, read, np.nan)
