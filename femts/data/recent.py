"""The end of a table that may be larger than memory: what a forecast is made from, kept while the rest passes by."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from femts.data.earlier import Pieces, numbers, rows_before
from femts.data.form import USUAL, Form
from femts.data.interchange import to_frame
from femts.data.naming import form_again
from femts.data.opening import place
from femts.data.reading import headless_pieces, read_table, table_pieces
from femts.data.schema import PLAIN, Schema
from femts.data.timestamps import read_dates
from femts.errors import UsageError

CELLS = 2**20  # read at a time
MOST_REPEATED = 2**24  # cells of rows that repeat a stamp


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
        recent = last_rows(headless_pieces(path, cells), steps)
        return _with_earlier(recent, lambda: headless_pieces(path, cells), names, None, schema)
    where, given = place(Path(path)), schema.form

    def all_pieces() -> Iterator[pd.DataFrame]:
        return _let_go(to_frame(piece, where, given) for piece in table_pieces(path, given, cells))

    pieces = all_pieces()
    first = next(pieces)
    form = form_again(first, given)
    if form.time_of(first) not in map(str, first.columns):
        return last_rows(chain([first], pieces), steps)
    long, again = form.is_long(first), all_pieces
    try:
        if long:
            recent = last_stamps(chain([first], pieces), steps, freq, form, where)
        else:
            recent = _last_by_time(chain([first], pieces), steps, freq, form)
    except _Stamps:
        whole = to_frame(read_table(path, form), where, form)
        recent = last_stamps([whole], steps, freq, form, where) if long else last_steps(whole, steps, freq, form)
        again = partial(iter, [whole])
    return _with_earlier(recent, again, names, freq, replace(schema, form=form))


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


def _let_go(pieces: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The `pieces`, each let go of before the next: a column of pandas 2 and its `str` hold each other."""
    for piece in pieces:
        yield piece
        del piece
        if pd.__version__ < "3":
            gc.collect(1)


def last_steps(history: pd.DataFrame, count: int, freq: str, form: Form = USUAL) -> pd.DataFrame:
    """The last `count` rows of a wide table by time, this read, in order; by place, where earlier stamps cannot be.

    What is wrong with those rows is said by who checks them; what lies before them is nobody's concern.

    Raises:
        UsageError: stamps cannot be read, and rows are not in order.
    """
    time, recent = form.time_of(history), history.tail(count)
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
    history = _read(history, time, stamps)
    return (history if stamps.is_monotonic_increasing else _in_order(history, stamps)).tail(count)


def _last_by_time(pieces: Iterable[pd.DataFrame], count: int, freq: str, form: Form) -> pd.DataFrame:
    """The rows of the last `count` different stamps of a wide table that comes in pieces, in order."""
    rows: list[pd.DataFrame] = []
    ends: list[pd.Index] = []
    for piece in pieces:
        if not len(piece):  # it has the names of columns, but no stamps of any kind
            rows = rows or [piece]
            continue
        try:
            stamps = read_dates(piece[form.time_of(piece)], "The history", freq)
        except UsageError as error:
            raise _Stamps(str(error)) from error
        piece = _read(piece, form.time_of(piece), stamps)
        if ends and _kind(ends[0].to_series()) != _kind(stamps.to_series()):
            raise _Stamps("The history has stamps of several kinds or time zones; write them all in one way.")
        rows, ends = [*(rows if ends else []), piece], [*ends, stamps]
        joined = ends[0].append(ends[1:])
        distinct = joined.unique().sort_values()
        if (len(joined) - len(distinct)) * piece.shape[1] > MOST_REPEATED:
            break  # who checks these rows says so, and more of them would take all memory
        if len(distinct) > count:
            recent = [end >= distinct[-count] for end in ends]
            rows = [part[here].copy() for part, here in zip(rows, recent, strict=True) if here.any()]
            ends = [end[here] for end, here in zip(ends, recent, strict=True) if here.any()]
    table = _joined(rows)
    if not ends:
        return table
    joined = ends[0].append(ends[1:])
    return table if joined.is_monotonic_increasing else _in_order(table, joined)


def _read(table: pd.DataFrame, time: str, stamps: pd.Index) -> pd.DataFrame:
    """The table with its `stamps` read, for in some rows alone a day could be a month; those of a time zone as they
    are, for a summer's rows alone have one offset."""
    return table if getattr(stamps, "tz", None) is not None else table.assign(**{time: stamps})


def _in_order(table: pd.DataFrame, stamps: pd.Index) -> pd.DataFrame:
    return table.iloc[np.argsort(stamps.to_numpy(), kind="stable")]


def last_rows(pieces: Iterable[pd.DataFrame], count: int) -> pd.DataFrame:
    """The last `count` rows of a table that comes in pieces."""
    recent: list[pd.DataFrame] = []
    for piece in pieces:
        recent.append(piece.tail(count).copy())  # a copy lets go of the rest
        while sum(map(len, recent[1:])) >= count:
            recent.pop(0)
    return _joined(recent).tail(count)


def last_stamps(
    pieces: Iterable[pd.DataFrame], count: int, freq: str | None, form: Form = USUAL, where: str = "The history"
) -> pd.DataFrame:
    """Of a table that comes in pieces, in any order, the rows of the last `count` different stamps, these read.

    A series of a long table without a row among them gets one for the last stamp, without a value.

    Raises:
        UsageError: a stamp cannot be read, or stamps of several kinds or time zones; the text says which.
    """
    recent, names, time = None, dict[str, None](), ""
    for piece in pieces:
        time = form.time_of(piece)
        names |= dict.fromkeys(piece[form.series].astype(str).unique())
        try:
            piece = piece.assign(**{time: read_dates(piece[time], where, freq)})
        except UsageError as error:
            raise _Stamps(str(error)) from error
        if recent is not None and len(recent) and len(piece) and _kind(recent[time]) != _kind(piece[time]):
            raise _Stamps(f"{where} has stamps of several kinds or time zones; write them all in one way.")
        recent = piece if recent is None else _joined([recent, piece])
        stamps = np.sort(recent[time].unique())
        if len(stamps) > count:
            recent = recent[recent[time] >= stamps[-count]]
    assert recent is not None, "a table comes in one piece at least"
    here = set(recent[form.series].astype(str))
    ended = [name for name in names if name not in here]
    if not ended:
        return recent
    return _joined(
        [recent, pd.DataFrame({form.series: ended, time: recent[time].max(), form.value: np.nan})[[*recent.columns]]]
    )


def _kind(stamps: pd.Series) -> object:
    """Kind of stamps, shared by those that can be compared: the time zone, or being numbers."""
    return getattr(stamps.dtype, "tz", None) if pd.api.types.is_datetime64_any_dtype(stamps) else "number"


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """One table; empty parts, which have no types to go by, left out."""
    full = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(full) if len(full) > 1 else full[0]
