"""The end of a table that may be larger than memory: what a forecast is made from, kept while the rest passes by."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
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

    if given.dates is not None:  # by which all rows are put in order
        whole = to_frame(read_table(path, given), where, given)
        return _with_earlier(last_steps(whole, steps, freq, given), partial(iter, [whole]), names, freq, schema)
    pieces = all_pieces()
    first = next(pieces)
    columns, again = match_columns(first, given), all_pieces
    if columns.time_of(first) not in map(str, first.columns):
        if columns.series in map(str, first.columns):  # a series in each row
            return read_table(path, given)
        return _last_rows(chain([first], pieces), steps)
    try:
        recent = last_stamps(chain([first], pieces), steps, freq, columns, where)
    except _Stamps:
        whole = to_frame(read_table(path, columns), where, columns)
        recent, again = last_steps(whole, steps, freq, columns, where), partial(iter, [whole])
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
    if freq is not None and (schema.form.is_long(rows) or getattr(stamps, "tz", None) is None):
        rows = rows.assign(**{time: rows.index})
    return pd.concat([rows, recent], ignore_index=freq is not None)


def last_stamps(
    pieces: Iterable[pd.DataFrame], count: int, freq: str, names: ColumnNames = USUAL, where: str = "The history"
) -> pd.DataFrame:
    """Of a table that comes in pieces, in any order, the rows of the last `count` different stamps, these read.

    Those of a wide table come in order of time; stamps of a time zone stay as they are. A series of a long table
    without a row among them gets one for the last stamp, without a value.

    Raises:
        UsageError: a stamp cannot be read, or stamps of several kinds or time zones; the text says which.
    """
    recent, stamps, series, long = pd.DataFrame(), pd.Index([]), dict[str, None](), False
    for piece in pieces:
        time, long = names.time_of(piece), names.is_long(piece)
        try:
            new = read_dates(piece[time], where, freq)
        except UsageError as error:
            raise _Stamps(str(error)) from error
        series |= dict.fromkeys(as_text(piece[names.series]).unique()) if long else {}
        if long or getattr(new, "tz", None) is None:  # a summer's rows alone, as they are written, have one offset
            piece = piece.assign(**{time: new})
        if not len(stamps):  # an empty piece has the names of columns, but no stamps of any kind
            recent, stamps = piece, new
        elif len(piece):
            kinds = [getattr(each, "tz", None) if isinstance(each, pd.DatetimeIndex) else int for each in (stamps, new)]
            if kinds[0] != kinds[1]:
                raise _Stamps(f"{where} has stamps of several kinds or time zones; write them all in one way.")
            recent, stamps = pd.concat([recent, piece]), stamps.append(new)
        distinct = stamps.unique()
        if not long and (len(stamps) - len(distinct)) * piece.shape[1] > MOST_REPEATED:
            break  # who checks these rows says so, and more of them would take all memory
        if len(distinct) > count:
            kept = np.asarray(stamps >= distinct.sort_values()[-count])
            recent, stamps = recent[kept].infer_objects(), stamps[kept]  # one cell of text may be gone
    if not long:
        return recent if stamps.is_monotonic_increasing else recent.iloc[np.argsort(stamps, kind="stable")]
    here = set(as_text(recent[names.series]))
    ended = [name for name in series if name not in here]
    if not ended:
        return recent
    last = pd.DataFrame({names.series: ended, time: stamps.max(), names.value: np.nan})
    return pd.concat([recent, last.reindex(columns=recent.columns)])


def last_steps(
    history: pd.DataFrame, count: int, freq: str, names: ColumnNames = USUAL, where: str = "The history"
) -> pd.DataFrame:
    """What `last_stamps` gives of a table in memory; of a wide one with earlier stamps that cannot be read its last
    rows: what lies before them is nobody's concern."""
    try:
        return last_stamps([history], count, freq, names, where)
    except UsageError:
        recent, in_order = history.tail(count), not names.is_long(history)
        with suppress(UsageError):  # who checks these rows says what is wrong with them
            in_order &= read_dates(recent[names.time_of(recent)], freq=freq).is_monotonic_increasing
        if not in_order:
            raise
        return recent


def _last_rows(pieces: Iterable[pd.DataFrame], count: int) -> pd.DataFrame:
    """The last `count` rows of a table that comes in pieces."""
    recent = pd.DataFrame()
    for piece in pieces:
        recent = pd.concat([recent, piece]) if len(recent) else piece
        recent = recent.tail(count).copy().infer_objects()  # a copy lets go of the rest
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
