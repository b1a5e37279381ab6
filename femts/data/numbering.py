"""Row numbers in place of time stamps, for tables without dates or with uneven ones."""

from __future__ import annotations

import numpy as np
import pandas as pd

from femts.data.column_names import ROW


def with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with row numbers as its first column, taken from the index if that increases by 1."""
    index = frame.index
    counts = pd.api.types.is_integer_dtype(index) and bool((np.diff(index.to_numpy()) == 1).all())
    numbered = frame.reset_index(drop=True)
    numbered.insert(0, ROW, index.to_numpy() if counts else np.arange(len(frame)))
    return numbered
