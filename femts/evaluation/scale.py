"""Seasonal changes of the rows before forecasts, the denominators of MASE and RMSSE; the only place that defines them."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from femts.data.cutoffs import Rows
from femts.data.dataset import Dataset
from femts.evaluation.constants import FLOOR

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeasonalScale:
    """Changes over a season in the rows before forecasts of S series and T targets, in raw units.

    Changes are over one step if there are no more rows than a season. They are NaN where nothing changes, as in a
    column that repeats exactly, so that no error is divided by rounding; such series and targets are left out of means
    of MASE and RMSSE. The smallest change that counts is `FLOOR` times the standard deviation of the rows.

    Attributes:
        absolute: (S, T), or (S, W, T) before W windows, mean absolute change, the denominator of MASE (Hyndman &
            Koehler, "Another Look at Measures of Forecast Accuracy", International Journal of Forecasting 2006).
        squared: of the same shape, root mean squared change, the denominator of RMSSE (Makridakis et al., the M5
            competition).
    """

    absolute: Array
    squared: Array

    @classmethod
    def of(cls, data: Dataset) -> SeasonalScale:
        """Scale of the training rows of each series of `data`."""
        if data in _OF_DATA:
            return _OF_DATA[data]
        first, stop = data.part("train").T
        values = data.values[:, : data.n_targets]
        parts = [
            seasonal_changes(values[rows], data.season, first[some] - rows.start, stop[some] - rows.start)
            for some, rows in data.chunks()
        ]
        absolute, squared = (np.concatenate(each) for each in zip(*parts, strict=True))
        return _OF_DATA.setdefault(data, cls(absolute, squared))

    @classmethod
    def before(cls, data: Dataset, rows: Rows, season: int, or_step: bool = True) -> SeasonalScale:
        """Scale of the first `rows` (S, W) of each series of `data`, before each of W windows.

        Args:
            data: the series.
            rows: number of rows; none if negative.
            season: steps in a season.
            or_step: whether series of no more rows than a season have changes over one step; fev gives them none.
        """
        first = data.spans[:, 0]
        stop = first[:, None] + np.maximum(rows, 0)
        return cls(*seasonal_changes(data.values[:, : data.n_targets], season, first, stop, or_step))


_OF_DATA = WeakKeyDictionary[Dataset, SeasonalScale]()  # both splits of all candidates need the same


def seasonal_changes(values: Array, season: int, first: Rows, stop: Rows, or_step: bool = True) -> tuple[Array, Array]:
    """Mean absolute and root mean squared change over a season; see `SeasonalScale`.

    Args:
        values: (N, T), rows of all series one after another, NaN where missing.
        season: steps in a season.
        first: (S,), first row of each series, increasing.
        stop: (S,) or (S, W), last row plus one, of one or of several windows.
        or_step: whether changes are over one step where there are no more rows than a season.

    Returns:
        Both of shape (S, T) or (S, W, T).
    """
    begin = np.broadcast_to(first.reshape(-1, *[1] * (stop.ndim - 1)), stop.shape)
    absolute = np.full((*stop.shape, values.shape[1]), np.nan)
    squared, short = absolute.copy(), stop - begin <= season
    for some, steps in ((~short, season), (short, 1)):
        if some.any() and (steps == season or or_step):
            change = np.full_like(values, np.nan)
            change[steps:] = np.abs(values[steps:] - values[:-steps])
            from_row = np.minimum(begin[some] + steps, stop[some])  # changes before it reach into the previous series
            absolute[some] = _means(change, from_row, stop[some])
            squared[some] = np.sqrt(_means(change**2, from_row, stop[some]))
    last = stop if stop.ndim == 1 else stop.max(1)
    centre = np.nan_to_num(_means(values, first, last))
    centred = values - centre[np.searchsorted(first, np.arange(len(values)), "right").clip(1) - 1]
    mean, square = _means(centred, begin, stop), _means(centred**2, begin, stop)
    counts = ~(absolute <= FLOOR * np.sqrt(np.maximum(square - mean**2, 0)))
    return np.where(counts, absolute, np.nan), np.where(counts, squared, np.nan)


def _means(values: Array, first: Rows, stop: Rows) -> Array:
    """Mean of the rows `first` to `stop` (...) of `values` (N, T) without missing ones, (..., T); NaN without any."""
    seen = np.pad(~np.isnan(values), ((0, 1), (0, 0)))  # one row more, because a range may end with the last one
    places = np.stack([first, stop], axis=-1).ravel()
    filled = np.where(seen, np.pad(values, ((0, 1), (0, 0))), 0.0)
    total, count = (np.add.reduceat(each, places)[::2] for each in (filled, seen.astype(np.float64)))
    whole = (count > 0) & (stop > first).ravel()[:, None]
    made = np.divide(total, count, out=np.full(total.shape, np.nan), where=whole)
    return np.asarray(made.reshape(*np.shape(first), values.shape[1]))
