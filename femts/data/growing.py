"""A column of a file that is read piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from femts.data.stamps import MOST_NUMBER


class Growing:
    """A column read in pieces, in one block of memory that grows: pieces kept until the last is read would need as much
    again. Text is a categorical.

    Args:
        dtype: dtype of the first piece.
    """

    def __init__(self, dtype: Any) -> None:
        self._categories = None if is_numeric_dtype(dtype) else pd.Index([], dtype="str")
        self._rows, self._values = 0, np.empty(0, np.int32 if self._categories is not None else dtype)

    def append(self, piece: pd.Series) -> bool:
        """Append `piece`; return whether the column is then the same as if it were read at once."""
        if is_numeric_dtype(piece.dtype) != (self._categories is None):
            return False
        values = piece.to_numpy() if self._categories is None else self._codes(piece)
        if values.dtype != self._values.dtype:
            kinds = {values.dtype.kind, self._values.dtype.kind}
            whole = values if values.dtype.kind == "i" else self._values[: self._rows]
            if kinds != {"i", "f"} or np.abs(whole).max(initial=0) > MOST_NUMBER:
                return False
            self._values = self._values.astype(np.float64, copy=False)
        stop = self._rows + len(values)
        if stop > len(self._values):
            self._values.resize(max(stop, len(self._values) * 9 // 8), refcheck=False)
        self._values[self._rows : stop] = values
        self._rows = stop
        return True

    def _codes(self, piece: pd.Series) -> np.ndarray:
        assert self._categories is not None
        some = piece.astype("category").cat
        new = some.categories.difference(self._categories, sort=False)
        self._categories = self._categories.append(new)
        places = np.append(self._categories.get_indexer(some.categories), -1)  # a missing cell has code -1
        return places[some.codes.to_numpy()].astype(np.int32)

    def whole(self) -> Any:
        """The column; nothing can be appended afterwards."""
        self._values.resize(self._rows, refcheck=False)
        if self._categories is None:
            return self._values
        return pd.Categorical.from_codes(self._values, self._categories)  # type: ignore[arg-type]
