"""Rows as they are before scaling, for models that are fitted to each look-back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.preprocess import Preprocess


class Raw(NamedTuple):
    """Rows before scaling, for models that read them so; on the CPU.

    Attributes:
        values: (..., rows, C) float64, transformed where the user wishes it, known effects taken
            off; NaN where a value is missing, or before the series began.
        mean, scale: float64, of their scaling; for one row or each, (..., 1 or rows, C).
    """

    values: Tensor
    mean: Tensor
    scale: Tensor

    def last(self) -> Raw:
        """Scaling of the last row alone, beside all values."""
        return Raw(self.values, self.mean[..., -1:, :], self.scale[..., -1:, :])


def raw_rows(preprocess: Preprocess, values: NDArray[np.float64], offsets: NDArray[np.float64] | None = None) -> Raw:
    """Raw `values` (..., rows, C), NaN where missing, as models that read no scaled ones read them."""
    mean, scale = (torch.from_numpy(each).double() for each in (preprocess.scaler.mean, preprocess.scaler.scale))
    rows = torch.from_numpy(np.array(preprocess.unscaled(values, offsets), dtype=np.float64))
    return Raw(rows, mean.expand(rows.shape), scale.expand(rows.shape))
