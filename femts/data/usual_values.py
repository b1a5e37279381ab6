"""Usual values of future covariates in training, by which a table in another unit is noticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        pieces = [covariates[first:stop] for first, stop in training.tolist() if stop > first]
        first, second = (_ends(each) for each in zip(*(np.array_split(one, 2) for one in pieces), strict=True))
        grown = np.maximum(first[0] - second[0], second[1] - first[1])
        low, high = np.fmin(first[0], second[0]), np.fmax(first[1], second[1])
        columns = (
            np.concatenate([each[:, k] for each in pieces], dtype=np.float64) for k in range(covariates.shape[1])
        )
        middle = np.array([_median(column) for column in columns], dtype=np.float64)
        steps = [
            np.fmax.reduce(np.abs(np.diff(each.astype(np.float64), axis=0)), axis=0, initial=0.0) for each in pieces
        ]
        return cls(low, high, middle, np.fmax.reduce(steps), grown > GROWN * (first[1] - first[0]))

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


def _ends(pieces: Sequence[Array]) -> Array:
    """Smallest and largest of the values in pieces (n, K), (2, K), NaN for columns without any."""
    bounds = (np.fmin, np.fmax)
    made = [bound.reduce([bound.reduce(each, axis=0, initial=np.nan) for each in pieces]) for bound in bounds]
    return np.stack(made, dtype=np.float64)


def _median(column: Array) -> float:
    """Median of the values in a column (n,), which is sorted in part to save memory; NaN without any."""
    missing = np.isnan(column)
    column = column[~missing] if missing.any() else column
    return float(np.median(column, overwrite_input=True)) if len(column) else np.nan


def _differ(one: Array, other: Array) -> Mask:
    """Whether levels differ by more than those of many units."""
    return np.asarray(np.abs(one - other) >= (1 - 1 / TIMES) * np.maximum(np.abs(one), np.abs(other)), dtype=np.bool_)
