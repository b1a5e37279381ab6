"""Tables of other libraries, and tables whose stamps are their index, as plain frames."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

from femts.data.form import USUAL, Form
from femts.data.naming import holds_dates
from femts.data.year_parts import joined
from femts.errors import UsageError
from femts.text import shown

_PROTOCOLS = ("__arrow_c_stream__", "__dataframe__")


def is_table(table: object) -> bool:
    """Tell whether `to_frame` takes it: a DataFrame or Series of pandas, polars or pyarrow, or one
    that can be exchanged."""
    return isinstance(table, pd.DataFrame | pd.Series) or any(hasattr(type(table), each) for each in _PROTOCOLS)


def to_frame(table: Any, where: str = "The frame", form: Form | None = USUAL) -> pd.DataFrame:
    """A plain frame, its stamps in a column; the table of the caller is left as it is.

    Args:
        table: what `is_table` takes; a Series is one channel, under its name or `y`.
        where: what the table is, to begin a message with.
        form: names of columns; the index holds the stamps where none of them does. None for data without stamps.

    Raises:
        UsageError: a Series without stamps, or cells that cannot be exchanged.
    """
    if isinstance(table, pd.Series):
        frame = table.to_frame("y" if table.name is None else table.name)
        if form is not None and (dated := _with_stamps(frame, form)) is frame:
            raise UsageError(
                f"{where} has no time stamps in the index of its Series; give it a DatetimeIndex or PeriodIndex."
            )
        return frame if form is None else dated
    frame = table if isinstance(table, pd.DataFrame) else _exchanged(table, where)
    if frame.columns.nlevels > 1:
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    return frame if form is None else joined(_with_stamps(frame, form), form)


def _exchanged(table: Any, where: str) -> pd.DataFrame:
    try:
        with warnings.catch_warnings(action="ignore"):  # pandas means to drop the older protocol
            if hasattr(table, "__arrow_c_stream__"):
                try:
                    import pyarrow

                    return pyarrow.table(table).to_pandas()
                except ImportError:
                    pass
            if hasattr(table, "__dataframe__"):
                return pd.api.interchange.from_dataframe(table)
    except Exception as error:  # whatever another library raises
        reason = shown(str(error).strip().partition("\n")[0])
        raise UsageError(f"{where} cannot be turned into a pandas DataFrame ({reason}); turn it into one.") from error
    raise UsageError(
        f"{where} is a {type(table).__name__}, which needs pyarrow; run pip install pyarrow, or use pandas."
    )


def _with_stamps(frame: pd.DataFrame, form: Form) -> pd.DataFrame:
    """The frame with levels of its index that hold stamps or names of series as first columns, where it lacks these."""
    names = [str(column) for column in frame.columns]
    if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
        return frame
    usual = {form.time, form.series, "date", "ds"} - {None, *names}
    levels = {
        level: str(name) for level, name in enumerate(frame.index.names) if name is not None and str(name) in usual
    }
    if not levels and frame.index.nlevels == 1 and not {form.time, "date", "ds"} & set(names):
        name = "date" if frame.index.name is None or str(frame.index.name) in names else str(frame.index.name)
        stamps = frame.index.to_series(name=name)
        told = frame.index.name is not None or not pd.api.types.is_numeric_dtype(stamps)
        if name not in names and told and holds_dates(stamps):
            levels = {0: name}
    if not levels:
        return frame
    dated = frame.set_axis(names, axis=1).reset_index(drop=True)
    for place, (level, name) in enumerate(levels.items()):
        dated.insert(place, name, frame.index.get_level_values(level).to_series().reset_index(drop=True))
    return dated
