"""A column of a file that is read piece by piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype, is_string_dtype

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

    @property
    def is_text(self) -> bool:
        """Whether the column has had text."""
        return self._categories is not None

    def append(self, piece: pd.Series) -> bool:
        """Append `piece`; return whether the column is then the same as if it were read at once. If not, it must be
        read again as text or at once."""
        if is_numeric_dtype(piece.dtype) != (self._categories is None) and not self._become_alike(piece):
            return False
        if self._categories is not None and not _are_text(piece):
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

    def _become_alike(self, piece: pd.Series) -> bool:
        """Return whether either the column or the piece has no values, and turn the column into text in the former
        case."""
        if self._categories is None and bool(np.isnan(self._values[: self._rows].astype(np.float64)).all()):
            self._categories, self._values = pd.Index([], dtype="str"), np.full(self._rows, -1, np.int32)
            return True
        return self._categories is not None and bool(piece.isna().all())

    def _codes(self, piece: pd.Series) -> np.ndarray:
        assert self._categories is not None
        some = pd.Categorical(piece)
        new = some.categories.difference(self._categories, sort=False)
        self._categories = self._categories.append(new)
        places = np.append(self._categories.get_indexer(some.categories), -1)  # a missing cell has code -1
        return places[some.codes].astype(np.int32)

    def whole(self) -> Any:
        """The column; nothing can be appended afterwards."""
        self._values.resize(self._rows, refcheck=False)
        if self._categories is None:
            return self._values
        return pd.Categorical.from_codes(self._values, self._categories)  # type: ignore[arg-type]


def _are_text(piece: pd.Series) -> bool:
    """Return whether all cells that are not missing are text; pandas 3 converts categories that are numbers."""
    cells = piece.dtype.categories if isinstance(piece.dtype, pd.CategoricalDtype) else piece.dropna()
    return not len(cells) or is_string_dtype(cells)
