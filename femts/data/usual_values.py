"""Usual values of future covariates in training, by which a table in another unit is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from femts.data.pieces import slices

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
TIMES = 2.5  # ratio of two levels from which on their units may differ, as of degrees Celsius and Fahrenheit
BEYOND, GROWN = 0.5, 0.25  # shares of a range by which values are far outside of it, and by which it grows with time
JUMP = 2.0  # ratio of a jump to the largest change from one row to the next in training
_NAMES = ("low", "high", "middle", "step", "grows")


@dataclass(frozen=True, eq=False)
class UsualValues:
    """Values of K covariates in the training rows of all series.

    A covariate may leave its range without being odd, as a year or a running number does, and a price may rise. Values
    are therefore odd only if their median is outside the range and its level is `TIMES` another one, and in addition

    - the range did not grow from the first to the second half of the rows, and the median is beyond it by half its width,
      in units or in logarithms; or
    - the first value is further from the last one of the history than twice the largest change in training.

    Attributes:
        low, high, middle: smallest and largest value and median, (K,), NaN for a covariate without values.
        step: largest change from one row to the next, (K,).
        grows: whether the second half of the rows of each series goes beyond the range of the first, (K,).
    """

    low: Array
    high: Array
    middle: Array
    step: Array
    grows: Mask

    @classmethod
    def fit(cls, covariates: NDArray[Any], training: NDArray[np.int64]) -> UsualValues:
        """Take them from `covariates` (N, K), NaN where missing, in the rows `training` (S, 2) of each series."""
        pieces = training[training[:, 1] > training[:, 0]]
        columns = (
            np.concatenate([covariates[first:stop, k] for first, stop in pieces.tolist()], dtype=np.float64)
            for k in range(covariates.shape[1])
        )
        found = [_of_column(column, pieces[:, 1] - pieces[:, 0]) for column in columns]  # one at a time, to save memory
        low, high, middle, step, grows = (np.array(each) for each in zip(*found, strict=True))
        return cls(low, high, middle, step, grows.astype(np.bool_))

    def odd(self, last: Array, ahead: Array) -> Mask:
        """Mask (S, K) of the covariates whose values `ahead` (S, steps, K) are perhaps in another unit, after the `last`
        ones (S, K) of the history."""
        level = np.median(ahead, axis=1)
        beyond = np.maximum(self.low - level, level - self.high)
        far = beyond > BEYOND * (self.high - self.low)
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, log = (np.log(np.where(each > 0, each, np.nan)) for each in (self.low, self.high, level))
        far |= np.maximum(low - log, log - high) > BEYOND * (high - low)
        usual = np.where(self.middle != 0, self.middle, np.where(self.high > 0, self.high, self.low))
        far &= ~self.grows & _differ(level, usual)
        jumps = (np.abs(ahead[:, 0] - last) > JUMP * self.step) & _differ(level, last)
        valued = (level != 0) & ((self.low != 0) | (self.high != 0))  # 0 is the same in most units
        return np.asarray((beyond > 0) & valued & (far | jumps), dtype=np.bool_)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, None for NaN."""
        arrays = {name: getattr(self, name) for name in _NAMES}
        return {name: [None if each != each else each for each in array.tolist()] for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> UsualValues:
        """The inverse of `to_dict`."""
        arrays = {name: np.array(record[name], dtype=np.float64) for name in _NAMES}
        low, high, middle, step, grows = arrays.values()
        return cls(low, high, middle, step, grows.astype(np.bool_))


def _of_column(column: Array, lengths: NDArray[np.int64]) -> tuple[float, float, float, float, bool]:
    """The attributes of `UsualValues` for one covariate, from its values (n,) in series of these `lengths`."""
    stops = np.cumsum(lengths)
    halves = np.stack([stops - lengths, stops - lengths // 2], axis=1).ravel()
    some = np.stack([lengths > 0, lengths > 1], axis=1).ravel()  # a single row has no second half
    low, high = (bound.reduceat(column, halves[some]) for bound in (np.fmin, np.fmax))
    late = (np.arange(len(some)) % 2 == 1)[some]
    (first, second), (top, later_top) = (
        [bound.reduce(each[part], initial=np.nan) for part in (~late, late)]
        for bound, each in ((np.fmin, low), (np.fmax, high))
    )
    step = 0.0
    for rows in slices(len(column)):
        change = np.abs(np.diff(column[rows.start : rows.stop + 1]))
        ends = stops[(stops > rows.start) & (stops <= rows.start + len(change))]
        change[ends - rows.start - 1] = np.nan  # from one series to the next
        step = np.fmax.reduce(change, initial=step)
    grows = np.maximum(first - second, later_top - top) > GROWN * (top - first)
    return np.fmin(first, second), np.fmax(top, later_top), _median(column), step, grows


def _median(column: Array) -> float:
    """Median of the values in a column (n,), which is sorted in part to save memory; NaN without any."""
    missing = np.isnan(column)
    column = column[~missing] if missing.any() else column
    return float(np.median(column, overwrite_input=True)) if len(column) else np.nan


def _differ(one: Array, other: Array) -> Mask:
    """Whether levels differ by more than those of many units."""
    return np.asarray(np.abs(one - other) >= (1 - 1 / TIMES) * np.maximum(np.abs(one), np.abs(other)), dtype=np.bool_)
