"""Standardisation per channel, fitted once on the training rows and kept with the model.

A channel whose training rows are all the same, or all but a few, has no scale there: divided by what
little they differ, its later rows would be thousands of deviations off and decide every mean. Its scale
is then that of further rows, or in a panel one like the others', and `own` leaves it out of such means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    Values = TypeVar("Values", NDArray[Any], Tensor)
else:
    Values = TypeVar("Values")


FEWEST, SHARE = 3, 0.02  # rows, and part of all rows, that have to differ from the rest
SAME = 1e-8  # of a value; rows that differ from it by less are equal to it


@dataclass(frozen=True, eq=False)
class Scaler:
    """Scaled = (raw - mean) / scale, channel by channel.

    Attributes:
        mean: (C,) float64, in the data's units.
        scale: (C,) float64, the population standard deviation; 1 for a constant channel.
        own: (C,) bool, whether the training rows vary enough to tell the scale; mean errors leave the others out.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    own: NDArray[np.bool_] = field(default_factory=lambda: np.ones(0, dtype=np.bool_))

    def __post_init__(self) -> None:
        if not len(self.own):
            object.__setattr__(self, "own", np.ones(len(self.mean), dtype=np.bool_))

    @classmethod
    def fit(cls, values: NDArray[np.float64]) -> Scaler:
        """Mean and standard deviation of `values` (rows, C): pass the training rows and no others."""
        fitted = _standard(values)
        mean, scale = np.asarray(fitted.mean_, dtype=np.float64), np.asarray(fitted.scale_, dtype=np.float64)
        for c in np.flatnonzero(
            (scale == 1) & (fitted.var_ != 1)
        ):  # taken for constant, which is so up to rounding only
            mean[c], deviation = _exactly(values[:, c])
            scale[c] = deviation or 1.0
        return cls(mean, scale)

    @classmethod
    def fit_first(cls, rows: Sequence[NDArray[np.float64]], like: NDArray[np.float64] | None = None) -> Scaler:
        """Fit each channel to the first of several sets of rows in which it varies.

        Args:
            rows: (n, C) each, NaN where missing: the training rows, and two or more sets to fall back on. A channel
                that varies in none has the mean of the second.
            like: (C,) scales of other series relative to their level (`usual_scale`), for a channel that is constant
                in all of them; None takes its level itself, and for a level of 0 the scale is 1.
        """
        train, *wider = rows
        own = varies(train)
        if own.all():
            return cls.fit(train)
        mean, scale = np.zeros(len(own)), np.ones(len(own))
        if own.any():
            fitted = cls.fit(train[:, own])
            mean[own], scale[own] = fitted.mean, fitted.scale
        for c in np.flatnonzero(~own):
            column = next((each[:, c] for each in wider if varies(each[:, c : c + 1])[0]), None)
            mean[c], deviation = _exactly(wider[0][:, c] if column is None else column)
            level = abs(mean[c])
            scale[c] = deviation or (0.0 if like is None else like[c] * level) or level or 1.0
        return cls(mean, scale, own)

    def transform(self, values: Values) -> Values:
        """Scale `values` (..., C), an array or a tensor; a tensor keeps its dtype and device."""
        mean, scale = self._like(values)
        return (values - mean) / scale

    def inverse(self, values: Values) -> Values:
        """Back to raw units: `values` (..., T) of the first T channels; a tensor keeps its dtype and device."""
        mean, scale = self._like(values, most=len(self.mean))
        return values * scale + mean

    def _like(self, values: Values, most: int = 0) -> tuple[Values, Values]:
        """Mean and scale in the kind of `values`, of all channels or, up to `most`, of as many as it has."""
        channels = values.shape[-1]
        if channels != len(self.mean) and channels > most:
            raise UsageError(f"The scaler was fitted on {len(self.mean)} channels, not {channels}; give those.")
        if isinstance(values, np.ndarray):
            return self.mean[:channels], self.scale[:channels]
        return values.new_tensor(self.mean[:channels]), values.new_tensor(self.scale[:channels])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON; Python writes and reads float64 there without loss."""
        own = {} if self.own.all() else {"own": self.own.tolist()}
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist(), **own}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scaler:
        """The scaler that `to_dict` described.

        Raises:
            UsageError: a field is missing, or no scaler could hold these numbers.
        """
        try:
            mean, scale = (np.asarray(data[key], dtype=np.float64) for key in ("mean", "scale"))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The stored scaler cannot be read ({error!r}); train again.") from error
        if mean.ndim != 1 or mean.shape != scale.shape or not np.isfinite(mean).all() or not (scale > 0).all():
            raise UsageError("The stored scaler needs one finite mean and one positive scale a channel; train again.")
        own = np.asarray(data.get("own", [True] * len(mean)))
        if own.shape != mean.shape or own.dtype != np.bool_:
            raise UsageError("The stored scaler needs one true or false a channel for `own`; train again.")
        return cls(mean, scale, own)


def varies(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether enough of the rows `values` (n, C) differ from the rest to tell a scale, by channel, (C,)."""
    missing = np.isnan(values)
    if missing.any():
        return np.array([_varies(c[~gone]) for c, gone in zip(values.T, missing.T, strict=True)], dtype=np.bool_)
    return np.asarray(_varies(values)) & np.ones(values.shape[1], dtype=np.bool_)


def _varies(values: NDArray[np.float64]) -> Any:
    """As `varies`, of `values` (n,) or (n, C) without gaps."""
    if not len(values):
        return False
    fewest = max(FEWEST, math.ceil(SHARE * len(values)))
    some = np.sort(values[: 2 * fewest - 1], axis=0)
    usual = some[len(some) // 2]  # where fewer than `fewest` rows differ, most of these are the value of the others
    return (np.abs(values - usual) > SAME * np.abs(usual)).sum(axis=0) >= fewest


def usual_scale(scalers: Iterable[Scaler]) -> NDArray[np.float64]:
    """Median scale of a channel in several series, relative to its root mean square, (C,), of those that have one of
    their own; 0 where none has."""
    each = list(scalers)
    mean, scale, own = (np.stack([getattr(one, name) for one in each]) for name in ("mean", "scale", "own"))
    usual, some = np.zeros(mean.shape[1]), own.any(axis=0)
    usual[some] = np.nanmedian(np.where(own, scale / np.hypot(mean, scale), np.nan)[:, some], axis=0)
    return usual


class _Standard(NamedTuple):
    mean_: NDArray[np.float64]
    var_: NDArray[np.float64]
    scale_: NDArray[np.float64]


def _standard(values: NDArray[np.float64]) -> _Standard:
    """As StandardScaler of scikit-learn fits, to the bit; its checks take milliseconds, and a panel has many series."""
    missing = np.isnan(values)
    total = np.nansum if missing.any() else np.sum
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = len(values) - missing.sum(axis=0).astype(np.float64)
        mean = total(values, axis=0) / rows
        off = values - mean
        rest = total(off, axis=0)
        off **= 2
        var = (total(off, axis=0) - rest**2 / rows) / rows
    eps = np.finfo(np.float64).eps
    scale = np.where(var <= rows * eps * var + (rows * mean * eps) ** 2, 1.0, np.sqrt(var))
    return _Standard(mean, var, scale)


def _exactly(column: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and deviation of a column that may differ little, for its size: what is constant is its own mean."""
    observed = column[~np.isnan(column)]
    first = float(observed[0]) if len(observed) else 0.0
    differences = observed - first
    largest = float(np.abs(differences).max(initial=0.0))
    if largest == 0:
        return first, 0.0
    return first + float(differences.mean()), largest * float((differences / largest).std())
