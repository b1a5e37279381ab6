"""The last rows of each series of a panel that may be larger than memory, from which forecasts are made."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype, is_string_dtype, union_categoricals

from femts.data.column_names import ColumnNames
from femts.data.dataset import Dataset
from femts.data.formats.registry import format_of
from femts.data.normalise import table_rows, to_dataset
from femts.data.preprocess import Preprocess
from femts.data.read import read_table, table_pieces
from femts.data.rows import Rows, as_numbers
from femts.data.schema import Schema
from femts.data.unpack import place
from femts.errors import UsageError

CELLS = 2**21  # cells read at a time


class _NeedsAll(Exception):
    """The forecast may depend on rows of the file that would be left out."""


def read_recent_series(
    path: str | Path,
    steps: int,
    schema: Schema,
    freq: str | None,
    preprocess: Preprocess,
    cells: int = CELLS,
) -> pd.DataFrame:
    """Read the end of each series of a file, as `read_table` does.

    Memory does not grow with the length of the series if those of the training data follow one another in the file, each
    in order of time. A file of another kind is read at once, as is one whose cells or dates are not plain in each piece.

    Args:
        path: long table in any format that `read_table` supports.
        steps: number of steps to read of each series.
        schema: schema of the training data, a panel.
        freq: step between time stamps.
        preprocess: that of the training data; of series that it does not know, all rows are read, and of all series if an
            earlier value contradicts the bounds of the forecasts or the times at which a series never had a value.
        cells: number of cells to read at a time.

    Returns:
        For each series, the rows of its last `steps` steps after those from the last earlier value on of each column
        that has none in the first of them. The cells are not checked.

    Raises:
        UsageError: As in `read_table`.
    """
    path, columns, domain = Path(path), preprocess.columns, preprocess.domain
    plain = freq is not None and schema.freq is None and schema.form.dates is None and format_of(path).in_pieces
    if not plain:
        return read_table(path, schema.form)
    try:
        kept, seen = list[pd.DataFrame](), set[str]()
        for table in _whole_series(table_pieces(path, schema.form, cells), schema.form):
            rows = _rows(table, place(path), schema, columns, freq)
            if seen & set(rows.series):
                raise _NeedsAll
            seen.update(rows.series)
            last = np.arange(len(table)) >= _first_rows(rows, steps, preprocess)[rows.codes]
            some = table.assign(**{rows.time: rows.stamps})[last]
            data = _data(rows, columns, freq)
            if domain.admitting(data.values[:, : data.n_targets]) != domain:
                raise _NeedsAll
            _check(data, _data(_rows(some, place(path), schema, columns, freq), columns, freq), steps, preprocess)
            kept.append(_categorical(some))
        return _joined(kept)
    except (_NeedsAll, UsageError, Warning):  # raised again for the whole table, unless its other rows help
        return read_table(path, schema.form)


def _whole_series(pieces: Iterator[pd.DataFrame], form: ColumnNames) -> Iterator[pd.DataFrame]:
    """The rows of `pieces` in pieces of whole series, as far as the rows of a series follow one another."""
    held: pd.DataFrame | None = None
    for piece in pieces:
        if not len(piece):
            continue
        by = [form.series] if form.series in piece.columns else list(form.keys)
        if not by or not set(by) <= set(piece.columns):
            raise _NeedsAll
        piece = piece if held is None else pd.concat([held, piece], ignore_index=True)
        others = np.logical_or.reduce([(piece[name] != piece[name].iloc[-1]).to_numpy() for name in by])
        begin = int(np.flatnonzero(others)[-1]) + 1 if others.any() else 0
        held = piece.iloc[begin:].reset_index(drop=True)
        if begin:
            yield piece.iloc[:begin].reset_index(drop=True)
    if held is None:
        raise _NeedsAll
    yield held


def _rows(table: pd.DataFrame, where: str, schema: Schema, columns: Sequence[str], freq: str | None) -> Rows:
    """The rows of a piece, if the other pieces cannot change how they are read."""
    with warnings.catch_warnings(action="error", category=UserWarning):
        rows = table_rows(table, schema, where, columns, freq)
    later, next_series = np.diff(as_numbers(rows.stamps)) > 0, np.diff(rows.codes) > 0
    used = [name for name in (*columns, *schema.roles.future) if name in rows.columns]
    if (
        not rows.long
        or rows.notes
        or len(rows) != len(table)
        or rows.time not in table.columns
        or not (np.where(np.diff(rows.codes) == 0, later, next_series)).all()
        or not all(is_numeric_dtype(rows.frame[name]) for name in used)
    ):
        raise _NeedsAll
    return rows


def _data(rows: Rows, columns: Sequence[str], freq: str | None) -> Dataset:
    """The dataset of `rows`, unless the last ones are known in advance."""
    with warnings.catch_warnings(action="error", category=UserWarning):
        data = to_dataset(rows, "history", columns, freq)
    if data.ahead is not None:
        raise _NeedsAll
    return data


def _first_rows(rows: Rows, steps: int, preprocess: Preprocess) -> NDArray[np.int64]:
    """The first row of each series of `rows` to keep, (S,)."""
    every = np.arange(len(rows.series))
    begin, end = np.searchsorted(rows.codes, every), np.searchsorted(rows.codes, every, side="right")
    first = np.where(preprocess.places(rows.series) >= 0, np.maximum(begin, end - steps), begin)
    there = ~np.isnan(rows.readable(preprocess.columns))
    for number in np.flatnonzero((first > begin) & ~there[first].all(axis=1)).tolist():
        earlier = there[begin[number] : first[number], ~there[first[number]]][::-1]
        back = earlier.argmax(axis=0)[earlier.any(axis=0)]
        first[number] -= int(back.max(initial=-1)) + 1
    return first


def _check(data: Dataset, some: Dataset, steps: int, preprocess: Preprocess) -> None:
    """Check that the last `steps` steps of all `data` and of `some` of their rows are the same, and the times at which
    series never have a value."""
    one, other = data.recent(steps), some.recent(steps)
    pairs = ((one.values, other.values), (one.covariates, other.covariates), (one.spans, other.spans))
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs) and one.series == other.series
    assert one.stamps is not None and other.stamps is not None
    if not same or not one.stamps.equals(other.stamps):
        raise _NeedsAll
    places = preprocess.places(data.series)
    known = np.flatnonzero(places >= 0)
    if preprocess.closures is not None and len(known):
        closures = preprocess.closures.take(places[known])
        before, after = (closures.opened(each.take(known)).never for each in (data, some))
        if not all(np.array_equal(before[cycle], after[cycle]) for cycle in before):
            raise _NeedsAll


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all `parts`, with text as categories."""
    made = dict[str, Any]()
    for name, kinds in ((name, {str(part[name].dtype) for part in parts}) for name in parts[0].columns):
        columns = [part[name] for part in parts]
        if kinds == {"category"}:
            made[name] = union_categoricals(columns)
        elif len(kinds) == 1:
            made[name] = pd.concat(columns, ignore_index=True)
        else:
            raise _NeedsAll
    return pd.DataFrame(made, copy=False)


def _categorical(table: pd.DataFrame) -> pd.DataFrame:
    """The table with text as categories."""
    return table.astype({name: "category" for name in table.columns if is_string_dtype(table[name].dtype)})
