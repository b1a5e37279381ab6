"""A first column without a name: time stamps, or row numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from femts.data.column_names import ROW, ColumnNames
from femts.data.columns import NAMELESS, NOTES, holds_dates, is_index, whole_numbers


def name_of_first(frame: pd.DataFrame, names: ColumnNames) -> str:
    """Name for a first column without one: `date` if it holds time stamps, `row` if it numbers the rows of a table
    without any, that of pandas if it numbers those of a table that has some (`to_frame` leaves it out); empty if this is
    not clear."""
    first, others = frame.iloc[:, 0], set(map(str, frame.columns[1:]))
    if not {names.time, "date", "ds"} & others and holds_dates(first):
        return "date"
    if is_index(frame, names):
        return NAMELESS
    return ROW if ROW not in others and counts(first) else ""


def with_first(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with its first column renamed to the result of `name_of_first`."""
    made = frame.rename(columns={frame.columns[0]: name}) if name else frame
    if name == "date":
        note = "its first column has no name and contains dates and is used as time stamps"
        made.attrs[NOTES] = (*made.attrs.get(NOTES, ()), note)
    return made


def counts(column: pd.Series) -> bool:
    """Return whether a column holds whole numbers that increase by a constant."""
    numbers = whole_numbers(column)
    steps = np.diff(() if numbers is None else numbers)
    return len(steps) > 1 and bool(steps[0] >= 1 and (steps == steps[0]).all())
