"""Seasonal changes in the training rows, the denominators of MASE and RMSSE; the only place that defines them."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from femts.data.dataset import Dataset

Array = NDArray[np.float64]

# relative to the standard deviation of the training rows: models compute in float32 in units of that deviation, so an
# error relative to a smaller change would measure rounding
FLOOR = 2.0**-20


@dataclass(frozen=True, eq=False)
class SeasonalScale:
    """Changes over a season in the training rows of S series and T targets, in raw units.

    Changes are over one step if there are no more rows than a season. They are NaN where nothing changes, as in a
    column that repeats exactly, so that no error is divided by rounding; such series and targets are left out of means
    of MASE and RMSSE. The smallest change that counts is `FLOOR` times the standard deviation of the training rows.

    Attributes:
        absolute: (S, T), mean absolute change, the denominator of MASE (Hyndman & Koehler, "Another Look at Measures of
            Forecast Accuracy", International Journal of Forecasting 2006).
        squared: (S, T), root mean squared change, the denominator of RMSSE (Makridakis et al., the M5 competition).
    """

    absolute: Array
    squared: Array

    @classmethod
    def of(cls, data: Dataset) -> SeasonalScale:
        """Scale of the training rows of each series of `data`."""
        if data in _OF_DATA:
            return _OF_DATA[data]
        shape = (len(data), data.n_targets)
        absolute, squared = np.full(shape, np.nan), np.full(shape, np.nan)
        for number, (first, stop) in enumerate(data.part("train").tolist()):
            absolute[number], squared[number] = seasonal_changes(data.values[first:stop, : data.n_targets], data.season)
        return _OF_DATA.setdefault(data, cls(absolute, squared))


_OF_DATA = WeakKeyDictionary[Dataset, SeasonalScale]()  # both splits of all candidates need the same


def seasonal_changes(values: Array, season: int) -> tuple[Array, Array]:
    """Mean absolute and root mean squared change (C,) over a season of `values` (rows, C), NaN where missing; see
    `SeasonalScale`."""
    steps = season if len(values) > season else 1
    change = values[steps:] - values[:-steps]
    count = (~np.isnan(change)).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        absolute, squared = np.nansum(np.abs(change), axis=0) / count, np.sqrt(np.nansum(change**2, axis=0) / count)
    counts = ~(absolute <= FLOOR * _deviation(values))
    return np.where(counts, absolute, np.nan), np.where(counts, squared, np.nan)


def _deviation(values: Array) -> Array:
    """Standard deviation (C,) of `values` (rows, C) without missing ones; 0 if there are none."""
    count = np.maximum((~np.isnan(values)).sum(0), 1)
    mean = np.nansum(values, axis=0) / count
    return np.asarray(np.sqrt(np.nansum((values - mean) ** 2, axis=0) / count))
