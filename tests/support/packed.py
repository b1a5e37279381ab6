"""Numbers as a page of a report carries them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from femts.analysis.report.samples import MISSING


def unpack(packed: list[list[Any]]) -> NDArray[np.float64]:
    """The inverse of `femts.analysis.report.samples.pack`, as in the report's script."""
    whole = np.stack([np.frombuffer(base64.b64decode(text), "<u2") for _, _, text in packed])
    low, step = (np.array([row[i] for row in packed])[:, None] for i in (0, 1))
    return np.where(whole == MISSING, np.nan, low + step * whole)
