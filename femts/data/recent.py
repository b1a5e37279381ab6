"""The last rows of a table that may be larger than memory, from which forecasts are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.aggregation import by_step
from femts.data.ahead import after_readings
from femts.data.columns import to_frame
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.normalise import as_columns, to_dataset
from femts.data.read import headless_pieces, read_table, table_pieces
from femts.data.rows import Rows, as_numbers, numbered_rows, read_rows
from femts.data.schema import Schema
from femts.data.unpack import place
from femts.errors import UsageError

CELLS = 2**20  # cells read at a time
Mask = NDArray[np.bool_]


def read_recent(
    path: str | Path,
    steps: int,
    schema: Schema,
    columns: Sequence[str],
    freq: str | None,
    cells: int = CELLS,
) -> pd.DataFrame:
    """Read the end of a file, as `read_table` or `read_headless` does.

    Memory does not grow with the file: it depends on `cells` and on `steps` time stamps. A file is read at once only if
    its time stamps are ambiguous piece by piece (12/11/2024, until a 13th follows), or if all rows are needed.

    Args:
        path: wide or long table in any format that `read_table` supports.
        steps: number of steps to read.
        schema: schema of the training data.
        columns: targets and past covariates.
        freq: step between time stamps; None for a matrix without header and time stamps.
        cells: number of cells to read at a time.

    Returns:
        The rows of the last `steps` steps and, if a column has no value in the first of them, those with its last value
        before. The cells are not checked.

    Raises:
        UsageError: As in `read_table`.
    """
    path, kept, schema = Path(path), pd.DataFrame(), replace(schema, panel=False)
    if schema.form.dates is not None:  # all rows are needed to number them
        return read_table(path, schema.form)
    cut = partial(_cut, steps=steps, schema=schema, where=place(path), columns=columns, freq=freq)
    for piece in _pieces(path, schema, freq, cells):
        try:
            new = cut(piece)
            kept = cut(pd.concat([kept, new])) if len(kept) else new
        except UsageError:  # raised again for the whole table, unless its other rows help
            whole = read_table(path, schema.form)
            try:
                return cut(whole)
            except UsageError:
                return whole
        del piece, new
        if pd.__version__ < "3":  # a column and its `str` accessor form a reference cycle
            gc.collect(1)
    return kept


def _cut(
    table: pd.DataFrame, steps: int, schema: Schema, where: str, columns: Sequence[str], freq: str | None
) -> pd.DataFrame:
    """The rows of `read_recent` in one piece, with their time stamps parsed, because those of later rows may be
    ambiguous; all rows if a step or a series is made of several."""
    frame = to_frame(table, where, None if freq is None else schema.form)
    rows = numbered_rows(frame, schema, where) if freq is None else read_rows(frame, schema, where, freq)
    if len(rows) != len(frame) or by_step(rows) is not rows:
        return frame
    if freq is not None:
        frame = frame.assign(**{rows.time: rows.stamps})
    if schema.roles.future and not rows.long and np.isnan(rows.readable(columns)).all():
        return frame  # a piece that may follow the last readings, which are in an earlier one
    return frame[np.logical_or(*recent_rows(rows, steps, columns))].infer_objects()


def _pieces(path: Path, schema: Schema, freq: str | None, cells: int) -> Iterator[pd.DataFrame]:
    if freq is None:
        return headless_pieces(path, cells)
    return table_pieces(path, schema.form, cells)


def recent_rows(rows: Rows, steps: int, columns: Sequence[str]) -> tuple[Mask, Mask]:
    """Masks of the rows of the last `steps` time stamps and those after all readings (`rows_ahead`), and of those with the
    last value before them of each column, or series of a long table, that has none at the first of these."""
    numbers = as_numbers(rows.stamps)
    distinct = np.unique(numbers[~rows_ahead(rows, columns)]) if len(numbers) else numbers
    if len(distinct) <= steps:
        return np.ones(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    recent = numbers >= distinct[-steps]
    first, earlier = rows.take(numbers == distinct[-steps]), np.zeros(len(rows), dtype=np.bool_)
    cells = (rows.schema.form.value,) if rows.long else tuple(columns)
    old = np.flatnonzero(~recent)
    if rows.long:
        here = first.codes[~np.isnan(first.readable(cells)[:, 0])]
        lacking = np.isin(rows.codes[old], here, invert=True)
        last = _last(rows.take(old[lacking]), cells, rows.codes[old[lacking]])
        earlier[np.isin(numbers, numbers[old[lacking]][last]) & ~recent] = True
        return recent, earlier
    gaps = np.isnan(first.readable(cells)).any(axis=0)
    for name in np.array(cells)[gaps].tolist():
        last = _last(rows.take(old), (name,), np.zeros(len(old), dtype=np.intp))
        earlier[old[last]] = True
    return recent, earlier


def rows_ahead(rows: Rows, columns: Sequence[str]) -> Mask:
    """Mask of the rows of a table given to a model of a single table that `after_readings` tells."""
    if not rows.long or not rows.schema.roles.future:
        return after_readings(rows, columns)
    wide = as_columns(rows, strict=False)
    return np.asarray(rows.stamps.isin(wide.stamps[after_readings(wide, columns)]))


def _last(rows: Rows, columns: Sequence[str], codes: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Row with the last value of a column for each series that has one; for a series without any, its last row."""
    valued = ~np.isnan(rows.readable(columns)[:, 0])
    order = np.lexsort((as_numbers(rows.stamps), valued, codes))
    ends = np.flatnonzero(np.diff(codes[order], append=-1))
    return order[ends]


def recent_data(
    rows: Rows, steps: int, name: str, columns: Sequence[str], freq: str | None, planned: bool = True
) -> Dataset:
    """The last `steps` steps of a table given to a trained model, after the rows that fill the gaps at their start;
    `planned` as in `to_dataset`."""
    recent, earlier = recent_rows(rows, steps, columns)
    where = f"The recent history ({count(int(recent.sum()), 'row')})"
    data = to_dataset(replace(rows.take(recent), where=where), name, columns, freq, planned)
    if not earlier.any():
        return data
    before = rows.take(earlier)
    before = as_columns(before, strict=False) if before.long else before
    before = before.take(np.argsort(as_numbers(before.stamps), kind="stable"))
    assert data.stamps is not None
    values, covariates = before.readable(columns), before.readable(rows.schema.roles.future)
    return replace(
        data,
        values=np.concatenate([values, data.values]),
        stamps=before.stamps.append(data.stamps),
        covariates=np.concatenate([covariates, data.covariates]),
        spans=np.array([[0, len(before) + len(data.values)]]),
    )
