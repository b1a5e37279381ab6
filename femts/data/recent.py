"""The end of a table that may be larger than memory, from which forecasts are made."""

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

from femts.data.aggregation import by_step, is_aggregated
from femts.data.check import LARGEST, parsed
from femts.data.column_names import USUAL, ColumnNames
from femts.data.columns import match_columns, to_frame
from femts.data.read import headless_pieces, read_table, table_pieces
from femts.data.schema import PLAIN, Schema
from femts.data.stamps import as_text, read_dates
from femts.data.unpack import place
from femts.errors import UsageError

CELLS = 2**20  # cells read at a time
MOST_REPEATED = 2**24  # cells of rows that repeat a time stamp
Pieces = Callable[[], Iterable[pd.DataFrame]]


class _Stamps(UsageError):
    """Time stamps that cannot be read piece by piece."""


def read_recent(
    path: str | Path,
    steps: int,
    freq: str | None,
    schema: Schema = PLAIN,
    cells: int = CELLS,
    names: Sequence[str] = (),
) -> pd.DataFrame:
    """Read the rows of the last `steps` steps of a file, as `read_table` or `read_headless` does, without checking
    them.

    Memory does not grow with the file: it depends on `cells` and on `steps` time stamps of each series. A file is read
    at once only if its time stamps are ambiguous piece by piece (12/11/2024, until a 13th follows).

    Args:
        path: wide or long table in any format that `read_table` supports.
        steps: number of steps to read.
        freq: step between time stamps; None for a matrix without header and time stamps.
        schema: column names and numbers that mean "missing".
        cells: number of cells to read at a time.
        names: channels whose gaps at the start of these steps are filled from earlier rows, which requires a second
            pass.

    Returns:
        For a wide table, its last `steps` rows in order of time; for a long one, the result of `last_stamps`. If there
        are gaps to fill, they follow the rows of `rows_before`.

    Raises:
        UsageError: As in `read_table`.
    """
    if freq is None:
        recent = _last_rows(headless_pieces(path, cells), steps)
        return _with_earlier(recent, lambda: headless_pieces(path, cells), names, None, schema)
    where, given = place(Path(path)), schema.form

    def all_pieces() -> Iterator[pd.DataFrame]:
        for piece in table_pieces(path, given, cells):
            yield to_frame(piece, where, given)
            del piece
            if pd.__version__ < "3":  # a column and its `str` accessor form a reference cycle
                gc.collect(1)

    if given.dates is not None:  # sorting by date needs all rows
        whole = to_frame(read_table(path, given), where, given)
        return _with_earlier(last_steps(whole, steps, freq, given), partial(iter, [whole]), names, freq, schema)
    pieces = all_pieces()
    first = next(pieces)
    columns, again = match_columns(first, given), all_pieces
    if columns.time_of(first) not in map(str, first.columns):
        if columns.series in map(str, first.columns):  # each row is a series
            return read_table(path, given)
        return _last_rows(chain([first], pieces), steps)
    schema = replace(schema, form=columns)
    with suppress(UsageError):  # the error is raised when the rows are checked
        if is_aggregated(first, schema, where):  # which needs all rows
            return by_step(to_frame(read_table(path, columns), where, columns), schema, where)[0]
    try:
        recent = last_stamps(chain([first], pieces), steps, freq, columns, where)
    except _Stamps:
        whole = to_frame(read_table(path, columns), where, columns)
        recent, again = last_steps(whole, steps, freq, columns, where), partial(iter, [whole])
    return _with_earlier(recent, again, names, freq, schema)


def _with_earlier(
    recent: pd.DataFrame, pieces: Pieces, names: Sequence[str], freq: str | None, schema: Schema
) -> pd.DataFrame:
    """The `recent` rows of a table in `pieces`, preceded by rows that fill the gaps of `names` at their start."""
    time = schema.form.time_of(recent)
    try:
        stamps = recent.index if freq is None else read_dates(recent[time], freq=freq)
    except UsageError:
        return recent  # the error is raised when these rows are checked
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
    """Keep the rows of the last `count` different time stamps of a table in pieces, which may be in any order, and
    parse the time stamps.

    Rows of a wide table are sorted by time; time zones are kept. A series of a long table without a row among them gets
    an empty one at the last time stamp.

    Raises:
        UsageError: A time stamp cannot be read, or their types or time zones differ; the message says which.
    """
    recent, stamps, series, long = pd.DataFrame(), pd.Index([]), dict[str, None](), False
    for piece in pieces:
        time, long = names.time_of(piece), names.is_long(piece)
        try:
            new = read_dates(piece[time], where, freq)
        except UsageError as error:
            raise _Stamps(str(error)) from error
        series |= dict.fromkeys(as_text(piece[names.series]).unique()) if long else {}
        if (
            long or getattr(new, "tz", None) is None
        ):  # otherwise unparsed: summer rows alone would show a single UTC offset
            piece = piece.assign(**{time: new})
        if not len(stamps):  # an empty piece has column names, but no type of time stamps
            recent, stamps = piece, new
        elif len(piece):
            kinds = [getattr(each, "tz", None) if isinstance(each, pd.DatetimeIndex) else int for each in (stamps, new)]
            if kinds[0] != kinds[1]:
                raise _Stamps(f"{where} has stamps of several kinds or time zones; write them all in one way.")
            recent, stamps = pd.concat([recent, piece]), stamps.append(new)
        distinct = stamps.unique()
        if not long and (len(stamps) - len(distinct)) * piece.shape[1] > MOST_REPEATED:
            break  # the error is raised when these rows are checked; reading on could exhaust memory
        if len(distinct) > count:
            kept = np.asarray(stamps >= distinct.sort_values()[-count])
            recent, stamps = recent[kept].infer_objects(), stamps[kept]  # the only text cell of a column may be gone
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
    """`last_stamps` for a table in memory. If earlier time stamps of a wide table cannot be read, its last rows are
    returned, because the others do not matter."""
    try:
        return last_stamps([history], count, freq, names, where)
    except UsageError:
        recent, in_order = history.tail(count), not names.is_long(history)
        with suppress(UsageError):  # the error is raised when these rows are checked
            in_order &= read_dates(recent[names.time_of(recent)], freq=freq).is_monotonic_increasing
        if not in_order:
            raise
        return recent


def _last_rows(pieces: Iterable[pd.DataFrame], count: int) -> pd.DataFrame:
    """The last `count` rows of a table in pieces."""
    recent = pd.DataFrame()
    for piece in pieces:
        recent = pd.concat([recent, piece]) if len(recent) else piece
        recent = recent.tail(count).copy().infer_objects()  # the copy frees the other rows
    return recent


def rows_before(pieces: Pieces, start: Any, names: Sequence[str], freq: str | None, schema: Schema) -> pd.DataFrame:
    """Rows of a user's table in `pieces`, in any order, with the last values before the time stamp `start`.

    At most as many rows as there are `names` stay in memory. The rows are not checked: cells that are not numbers are
    treated as missing, and a table with unreadable time stamps gives no rows.

    Args:
        pieces: function that iterates over the table from its beginning on each call.
        start: first time stamp of the look-back, or its row number for data without time stamps.
        names: columns, or series of a long table, whose last values are needed.
        freq: step between time stamps; None for a table without them, whose index is the row numbers.
        schema: column names, numbers that mean "missing", and future covariates: a long table also gets the rows of
            these series at the same time stamps.

    Returns:
        Unmodified rows of the table, indexed by time stamp; without columns if there are none.
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
    except (UsageError, TypeError):  # invalid time stamps, or of another type
        return pd.DataFrame()
    return rows


def _gone(pieces: Pieces, start: Any, freq: str | None, names: ColumnNames) -> Iterator[pd.DataFrame]:
    """The rows before `start`, piece by piece, indexed by time stamp in its time zone."""
    for piece in filter(len, pieces()):
        stamps = piece.index if freq is None else read_dates(piece[names.time_of(piece)], freq=freq)
        if getattr(start, "tz", None) is not None:
            stamps = pd.DatetimeIndex(stamps).tz_convert(start.tz)
        yield piece.set_axis(stamps)[np.asarray(stamps < start)]


def _last(rows: pd.DataFrame, names: Sequence[str], schema: Schema) -> pd.DataFrame:
    """The rows among `rows`, sorted by time, that hold the last value of one of `names`."""
    columns = schema.form
    if columns.is_long(rows):
        series = as_text(rows[columns.series]).where(~np.isnan(_readable(rows[columns.value], schema.na)))
        return rows[(series.isin(names) & ~series.duplicated(keep="last")).to_numpy()]
    valid = (np.flatnonzero(column) for column in numbers(rows, names, schema).notna().to_numpy().T)
    return rows.iloc[sorted({int(last[-1]) for last in valid if len(last)})]


def numbers(rows: pd.DataFrame, names: Sequence[str], schema: Schema) -> pd.DataFrame:
    """Values of `rows` of a user's table indexed by time stamp, a column for each of `names`, NaN for unreadable
    cells."""
    columns, na = schema.form, schema.na
    if columns.is_long(rows):
        cells = pd.Series(_readable(rows[columns.value], na), [rows.index, as_text(rows[columns.series])])
        return cells.groupby(level=[0, 1]).last().unstack().reindex(columns=list(names))
    own = {str(column): _readable(rows[column], na) for column in rows.columns if str(column) in names}
    return pd.DataFrame(own, rows.index, list(names), dtype=np.float64)


def _readable(cells: pd.Series, na: Sequence[float]) -> NDArray[np.float64]:
    """Numbers in `cells`, NaN for unreadable ones."""
    read = parsed(cells, na)[0]
    return np.where(np.abs(read) <= LARGEST, read, np.nan)
