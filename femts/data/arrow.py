"""Conversion of Arrow tables."""

from __future__ import annotations

from typing import Any

import pandas as pd


def to_pandas(table: Any) -> pd.DataFrame:
    """Convert an Arrow table or batch to a frame, ignoring invalid pandas metadata."""
    try:
        return table.to_pandas()
    except MemoryError:
        raise
    except Exception:  # the metadata may hold anything, and pyarrow does not check it
        return table.replace_schema_metadata(None).to_pandas()
