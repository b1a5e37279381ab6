"""Well-formed tables for the tests of femts.data."""

from __future__ import annotations

import numpy as np
import pandas as pd


def wide(rows: int = 30, columns: int = 2, freq: str = "h", start: str = "2024-01-01") -> pd.DataFrame:
    """A valid table with `date` and numeric columns a, b, ..."""
    frame = pd.DataFrame({"date": pd.date_range(start, periods=rows, freq=freq)})
    for i in range(columns):
        frame["abcdefgh"[i]] = np.arange(rows) * 1.5 + 100 * i
    return frame
