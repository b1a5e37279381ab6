"""The end of a table that may be larger than memory: what a forecast is made from, kept while the rest passes by."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from femts.data.form import USUAL, Form
from femts.data.reading import headless_pieces, read_table, table_pieces
from femts.data.timestamps import read_dates
from femts.errors import UsageError

CELLS = 2**20  # read at a time


class _Stamps(UsageError):
    """Stamps that cannot be read piece by piece."""


def read_recent(path: str | Path, steps: int, freq: str | None, form: Form = USUAL, cells: int = CELLS) -> pd.DataFrame:
    """Of the file that `read_table` reads, or `read_headless`, the rows that the last `steps` steps are in, not yet checked.

    Memory does not grow with the file: it is that of `cells` cells and of `steps` stamps of every series. Only stamps of a long
    table that mean something else as a whole (12/11/2024, where a 13th follows) have it read whole.

    Args:
        path: a CSV or Parquet file, wide or long.
        steps: steps that are wanted.
        freq: the step of its stamps; None for a matrix without header and stamps.
        form: what the columns are called.
        cells: cells that are read at a time.

    Returns:
        Of a wide table the last `steps` rows, of a long one what `last_stamps` keeps.

    Raises:
        UsageError: as `read_table`.
    """
    if freq is None:
        return last_rows(headless_pieces(path, cells), steps)
    pieces = table_pieces(path, form, cells)
    first = next(pieces)
    if not form.is_long(first):
        return last_rows(chain([first], pieces), steps)
    try:
        return last_stamps(chain([first], pieces), steps, freq, form, f"File {path}")
    except _Stamps:
        return last_stamps([read_table(path, form)], steps, freq, form, f"File {path}")


def last_rows(pieces: Iterable[pd.DataFrame], count: int) -> pd.DataFrame:
    """The last `count` rows of a table that comes in pieces."""
    kept: list[pd.DataFrame] = []
    for piece in pieces:
        kept.append(piece.tail(count).copy())  # a copy lets go of the rest
        while sum(map(len, kept[1:])) >= count:
            kept.pop(0)
    return _joined(kept).tail(count)


def last_stamps(
    pieces: Iterable[pd.DataFrame], count: int, freq: str | None, form: Form = USUAL, where: str = "The history"
) -> pd.DataFrame:
    """Of a long table that comes in pieces, in any order, the rows of the last `count` different stamps, these read.

    A series without a row among them gets one for the last stamp, without a value.

    Raises:
        UsageError: a stamp cannot be read, or stamps of several kinds or time zones; the text says which.
    """
    kept, names, time = None, dict[str, None](), ""
    for piece in pieces:
        time = form.time_of(piece)
        names |= dict.fromkeys(piece[form.series].astype(str).unique())
        try:
            piece = piece.assign(**{time: read_dates(piece[time], where, freq)})
        except UsageError as error:
            raise _Stamps(str(error)) from error
        if kept is not None and len(kept) and len(piece) and _kind(kept[time]) != _kind(piece[time]):
            raise _Stamps(f"{where} has stamps of several kinds or time zones; write them all in one way.")
        kept = piece if kept is None else _joined([kept, piece])
        stamps = np.sort(kept[time].unique())
        if len(stamps) > count:
            kept = kept[kept[time] >= stamps[-count]]
    assert kept is not None, "a table comes in one piece at least"
    here = set(kept[form.series].astype(str))
    ended = [name for name in names if name not in here]
    if not ended:
        return kept
    return _joined([kept, pd.DataFrame({form.series: ended, time: kept[time].max(), form.value: np.nan})[[*kept.columns]]])


def _kind(stamps: pd.Series) -> object:
    """Kind of stamps, shared by those that can be compared: the time zone, or being numbers."""
    return getattr(stamps.dtype, "tz", None) if pd.api.types.is_datetime64_any_dtype(stamps) else "number"


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """One table; empty parts, which have no types to go by, left out."""
    full = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(full) if len(full) > 1 else full[0]
