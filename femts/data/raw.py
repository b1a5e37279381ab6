"""Unscaled look-backs, for models that are fitted to each look-back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.preprocess import Preprocess


class Raw(NamedTuple):
    """Unscaled look-backs, on the CPU.

    Attributes:
        values: (B, L, C) float64, transformed if requested and without effects; NaN where missing or before the series
            begins.
        mean, scale: (B or 1, 1, C) float64, of the scaler.
    """

    values: Tensor
    mean: Tensor
    scale: Tensor


def raw_look_backs(
    preprocess: Preprocess, values: NDArray[np.float64], offsets: NDArray[np.float64] | None = None
) -> Raw:
    """Raw `values` (B, L, C), NaN where missing, of the series of `preprocess`, as read by models without scaling."""
    mean, scale = (torch.from_numpy(each)[:, None] for each in (preprocess.scaler.mean, preprocess.scaler.scale))
    return Raw(torch.from_numpy(np.array(preprocess.unscaled(values, offsets), dtype=np.float64)), mean, scale)
