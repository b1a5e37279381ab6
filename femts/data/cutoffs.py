"""Cutoffs of rolling-origin forecasts: how many rows of each series come before each of several windows at its end.

The only place that counts them, for backtests, comparisons, forecasting tasks and model selection.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cutoff:
    """One forecast origin of some series.

    Attributes:
        window: number of the window that begins there, from 1.
        series: series numbers (n,).
        rows: number of rows of each before the window, (n,).
    """

    window: int
    series: Rows
    rows: Rows


def rows_before(lengths: Rows, windows: int, step: int | Rows, horizon: int | Rows) -> Rows:
    """Number of rows of each series before each window, of which the last one ends with the series.

    Args:
        lengths: number of rows of each series, (S,).
        windows: number W of windows.
        step: rows between windows, one number or one for each series.
        horizon: rows in a window, one number or one for each series.

    Returns:
        (S, W), negative where a series is too short.
    """
    first, apart = np.broadcast_to(lengths - horizon, lengths.shape), np.broadcast_to(step, lengths.shape)
    return np.asarray(first[:, None] - np.arange(windows - 1, -1, -1) * apart[:, None])


def rolling_cutoffs(lengths: Rows, windows: int, step: int, horizon: int, fewest: int = 1) -> list[Cutoff]:
    """Cutoffs of series with `lengths` (S,) rows, the earliest first; arguments as in `rows_before`.

    A series with less than `fewest` rows before a cutoff is left out there, and a cutoff may have no series.
    """
    before, made = rows_before(lengths, windows, step, horizon), list[Cutoff]()
    for number, rows in enumerate(before.T, 1):
        some = np.flatnonzero(rows >= max(1, fewest))
        made.append(Cutoff(number, some, rows[some]))
    return made
