"""Tables as `normalise` reads them, in wide form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from femts.data.dataset import Dataset
from femts.data.normalise import normalise
from femts.data.schema import PLAIN, Schema


def checked(
    frame: pd.DataFrame,
    schema: Schema = PLAIN,
    columns: Sequence[str] | None = None,
    freq: str | None = None,
    where: str = "The frame",
) -> pd.DataFrame:
    """`date` and the columns of a table whose columns are one series; its notes are in `attrs`.

    With `columns` or `freq`, it is given to a trained model.
    """
    schema = replace(schema, panel=False)
    if freq is not None and columns is None:
        columns = [str(name) for name in frame.columns if str(name) != "date"]
    return in_wide_form(normalise(frame, schema, where, columns=columns, freq=freq))


def in_wide_form(data: Dataset) -> pd.DataFrame:
    """The only series of `data`."""
    made = pd.DataFrame(data.values, columns=list(data.columns))
    made.insert(0, "date", data.stamps)
    made.attrs["notes"] = data.notes
    return made
