"""Rows before a look-back: those with the last value of a channel, which fill gaps at its start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.form import Form
from femts.data.frames import LARGEST, parsed
from femts.data.schema import Schema
from femts.data.timestamps import as_text, read_dates
from femts.errors import UsageError

Pieces = Callable[[], Iterable[pd.DataFrame]]


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
    form, ahead, rows = schema.form, schema.roles.future, pd.DataFrame()
    if not names:
        return rows
    try:
        for gone in _gone(pieces, start, freq, form):
            parts = [part for part in (rows, gone) if len(part)]
            rows = _last(pd.concat(parts).sort_index(kind="stable"), names, schema) if parts else rows
        if form.is_long(rows) and ahead:
            own = (gone[as_text(gone[form.series]).isin(ahead)] for gone in _gone(pieces, start, freq, form))
            rows = pd.concat([rows, *(each[each.index.isin(rows.index)] for each in own)])
    except (UsageError, TypeError):  # stamps that are none, or of another kind
        return pd.DataFrame()
    return rows


def _gone(pieces: Pieces, start: Any, freq: str | None, form: Form) -> Iterator[pd.DataFrame]:
    """The rows before `start`, piece by piece, by their stamps in its time zone."""
    for piece in filter(len, pieces()):
        stamps = piece.index if freq is None else read_dates(piece[form.time_of(piece)], freq=freq)
        if getattr(start, "tz", None) is not None:
            stamps = pd.DatetimeIndex(stamps).tz_convert(start.tz)
        yield piece.set_axis(stamps)[np.asarray(stamps < start)]


def _last(rows: pd.DataFrame, names: Sequence[str], schema: Schema) -> pd.DataFrame:
    """Of `rows` in order of time, those that hold the last value of one of `names`."""
    form = schema.form
    if form.is_long(rows):
        series = as_text(rows[form.series]).where(~np.isnan(_readable(rows[form.value], schema.na)))
        return rows[(series.isin(names) & ~series.duplicated(keep="last")).to_numpy()]
    valid = (np.flatnonzero(column) for column in numbers(rows, names, schema).notna().to_numpy().T)
    return rows.iloc[sorted({int(last[-1]) for last in valid if len(last)})]


def numbers(rows: pd.DataFrame, names: Sequence[str], schema: Schema) -> pd.DataFrame:
    """The values of `rows` of a user's table by their stamps, a column for each of `names`, NaN for what is none."""
    form, na = schema.form, schema.na
    if form.is_long(rows):
        cells = pd.Series(_readable(rows[form.value], na), [rows.index, as_text(rows[form.series])])
        return cells.groupby(level=[0, 1]).last().unstack().reindex(columns=list(names))
    own = {str(column): _readable(rows[column], na) for column in rows.columns if str(column) in names}
    return pd.DataFrame(own, rows.index, list(names), dtype=np.float64)


def _readable(cells: pd.Series, na: Sequence[float]) -> NDArray[np.float64]:
    """The numbers of `cells`, NaN for all that is none."""
    read = parsed(cells, na)[0]
    return np.where(np.abs(read) <= LARGEST, read, np.nan)
