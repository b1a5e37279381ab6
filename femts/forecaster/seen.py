"""Which rows a forecaster has seen: forecasts of them have lower errors than forecasts of new rows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.column_names import ROW
from femts.data.cutoffs import Rows
from femts.data.dataset import Dataset

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster


class Use(IntEnum):
    """What a forecaster used a row for, in increasing order of its effect on the errors."""

    NONE = 0
    SELECTION = 1  # validation: early stopping, selection of the model, calibration of the intervals
    TRAINING = 2


def use_of(forecaster: Forecaster, data: Dataset, series: Rows, rows: Rows) -> NDArray[np.int64]:
    """What `forecaster` used the rows after a forecast origin for.

    Training rows come first in each series, then validation rows, so the first row of a forecast tells.

    Args:
        forecaster: a trained forecaster, possibly of other data.
        data: data with time stamps, or with the row numbers of the training table.
        series: series numbers in `data`, (n,).
        rows: number of rows of each before the forecast, (n,).

    Returns:
        A `Use` for each, (n,). Rows of a table without dates are known by their numbers, if it has at least the rows of
        the training table; a shorter one is another table.
    """
    used = np.full(len(series), int(Use.NONE))
    if data.schema.form.time == ROW and not data.schema.panel and data.rows < forecaster.data["split"]["test"][1]:
        return used
    if data.freq is None:
        if data.sha256 and data.sha256 == forecaster.data["sha256"]:
            split = forecaster.data["split"]
            used[rows < split["test"][0]] = Use.SELECTION
            used[rows < split["train"][1]] = Use.TRAINING
        return used
    assert data.stamps is not None
    first = data.stamps[data.spans[series, 0] + rows]
    places = forecaster.preprocess.places(data.series)[series]
    for use, until in ((Use.SELECTION, forecaster.series_until), (Use.TRAINING, forecaster.series_trained)):
        used[_no_later(first, [until[place] if 0 <= place < len(until) else None for place in places.tolist()])] = use
    return used


def rows_used(forecaster: Forecaster, data: Dataset, least: Use) -> Rows:
    """Number of rows (S,) at the start of each series of `data` that `forecaster` used for `least` or more."""
    everywhere, low, high = np.arange(len(data)), np.zeros(len(data), dtype=np.int64), data.lengths.copy()
    while (low < high).any():
        middle, going = (low + high) // 2, low < high
        used = use_of(forecaster, data, everywhere, np.minimum(middle, data.lengths - 1)) >= least
        low, high = np.where(going & used, middle + 1, low), np.where(going & ~used, middle, high)
    return low


def _no_later(stamps: pd.Index, until: Sequence[str | None]) -> NDArray[np.bool_]:
    """Mask of the `stamps` (n,) that are not later than `until`, texts or None; False for those in another time
    zone."""
    some = [each for each in until if each is not None]
    if not isinstance(stamps, pd.DatetimeIndex):
        return np.array(
            [each is not None and at <= int(each) for at, each in zip(stamps, until, strict=True)], dtype=bool
        )
    if not some or (pd.Timestamp(some[0]).tz is None) != (stamps.tz is None):
        return np.zeros(len(stamps), dtype=np.bool_)
    ours = stamps.tz_localize("UTC") if stamps.tz is None else stamps.tz_convert("UTC")
    return np.asarray(ours <= pd.to_datetime(list(until), utc=True))
