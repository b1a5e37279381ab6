"""Standardisation per channel, fitted once on the training rows and kept with the model.

A channel whose training rows are all the same, or all but a few, has no scale there: divided by what
little they differ, its later rows would be thousands of deviations off and decide every mean. Its scale
is then that of further rows, or in a panel one like the others', and `own` leaves it out of such means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.plugins import Registry

if TYPE_CHECKING:
    from torch import Tensor

    Values = TypeVar("Values", NDArray[Any], Tensor)
else:
    Values = TypeVar("Values")


Array = NDArray[np.float64]

FitScale = Callable[[Array], tuple[Array, Array]]
SCALERS: Registry[FitScale] = Registry("scaler")
register_scaler = SCALERS.register
"""Function decorator: make a scaler available by a name, as `training.scaler`.

It is called with training rows (rows, C) of channels that vary, NaN where a value is missing, and returns a location
and a positive scale of each, (C,) float64: scaled values are (raw - location) / scale.
"""

NORMAL_QUARTILES = 1.3489795003921634  # distance of the quartiles of a normal distribution of deviation 1
FEWEST, SHARE = 3, 0.02  # rows, and part of all rows, that have to differ from the rest
SAME = 1e-8  # of a value; rows that differ from it by less are equal to it


@dataclass(frozen=True, eq=False)
class Scaler:
    """Scaled = (raw - mean) / scale, of each of S series and C channels.

    Values have the series, or what belongs to one, on their first axis, or there is one series for all.

    Attributes:
        mean: (S, C) float64, in the data's units.
        scale: (S, C) float64, the population standard deviation; 1 for a constant channel.
        own: (S, C) bool, whether the training rows vary enough to tell the scale; mean errors leave the others out.
        kind: registered name of what gave them.
    """

    mean: Array
    scale: Array
    own: NDArray[np.bool_]
    kind: str = "standard"

    @classmethod
    def fit(
        cls, series: Iterable[Sequence[Array]], channels: int, like: Scaler | None = None, kind: str = "standard"
    ) -> Scaler:
        """Fit each channel of each series to the first of several sets of its rows in which it varies.

        Args:
            series: of each, the training rows and two further sets to fall back on, (n, C) each, NaN where missing. A
                channel that varies in none has the mean of the second.
            channels: C.
            like: scales of other series; None takes these. A channel that is constant in all sets has the one that is
                usual among them, for its level; without any, its level itself, and for a level of 0 a scale of 1.
            kind: registered name of what gives location and scale of a channel that varies.
        """
        fit = SCALERS[kind]
        fits = [_fit_first(rows, fit) for rows in series]
        mean, scale, own = (np.array([fit[k] for fit in fits]).reshape(-1, channels) for k in range(3))
        made = cls(mean, scale, own, kind)
        flat = ~made.own & (made.scale == 0)
        if flat.any():
            usual = (made if like is None else like).usual_scale()
            level = np.abs(made.mean)
            scale = np.where(usual * level > 0, usual * level, np.where(level > 0, level, 1.0))
            made = replace(made, scale=np.where(flat, scale, made.scale))
        return made

    @classmethod
    def even(cls, channels: int) -> Scaler:
        """The scaler that changes nothing."""
        return cls(np.zeros((1, channels)), np.ones((1, channels)), np.ones((1, channels), dtype=np.bool_))

    def take(self, series: NDArray[np.integer[Any]]) -> Scaler:
        """Those of some series by number, (B, C)."""
        return replace(self, mean=self.mean[series], scale=self.scale[series], own=self.own[series])

    def transform(self, values: Values) -> Values:
        """Scale `values` (S or n, ..., C), an array or a tensor; a tensor keeps its dtype and device."""
        mean, scale = self.like(values)
        return (values - mean) / scale

    def inverse(self, values: Values) -> Values:
        """Back to raw units: `values` (S or n, ..., T) of the first T channels; a tensor keeps its dtype and device."""
        mean, scale = self.like(values, most=self.mean.shape[1])
        return values * scale + mean

    def like(self, values: Values, most: int = 0) -> tuple[Values, Values]:
        """Mean and scale in the kind of `values`, of all channels or, up to `most`, of as many as it has."""
        channels = values.shape[-1]
        if channels != self.mean.shape[1] and channels > most:
            raise UsageError(f"The scaler was fitted on {self.mean.shape[1]} channels, not {channels}; give those.")
        shape = (len(self.mean), *(1,) * (values.ndim - 2), channels) if len(self.mean) > 1 else (channels,)
        mean, scale = (each[:, :channels].reshape(shape) for each in (self.mean, self.scale))
        if isinstance(values, np.ndarray):
            return mean, scale
        return values.new_tensor(mean), values.new_tensor(scale)

    def usual_scale(self) -> Array:
        """Median scale of a channel relative to its root mean square, (C,), of the series that have one of their own; 0
        where none has."""
        usual, some = np.zeros(self.mean.shape[1]), self.own.any(axis=0)
        with np.errstate(invalid="ignore"):
            relative = np.where(self.own, self.scale / np.hypot(self.mean, self.scale), np.nan)
        usual[some] = np.nanmedian(relative[:, some], axis=0)
        return usual

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON; Python writes and reads float64 there without loss."""
        own = {} if self.own.all() else {"own": self.own.tolist()}
        return {"kind": self.kind, "mean": self.mean.tolist(), "scale": self.scale.tolist(), **own}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scaler:
        """The scaler that `to_dict` described.

        Raises:
            UsageError: a field is missing, or no scaler could hold these numbers.
        """
        try:
            mean, scale = (np.asarray(data[key], dtype=np.float64) for key in ("mean", "scale"))
            own = np.asarray(data["own"]) if "own" in data else np.ones(mean.shape, dtype=np.bool_)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The stored scaler cannot be read ({error!r}); train again.") from error
        if mean.ndim != 2 or mean.shape != scale.shape or not np.isfinite(mean).all() or not (scale > 0).all():
            raise UsageError("The stored scaler needs one finite mean and one positive scale a channel; train again.")
        if own.shape != mean.shape or own.dtype != np.bool_:
            raise UsageError("The stored scaler needs one true or false a channel for `own`; train again.")
        return cls(mean, scale, own, str(data.get("kind", "standard")))


def _fit_first(rows: Sequence[Array], fit: FitScale) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Mean, scale and whether it is their own, (C,) each, of the channels of one series; a scale of 0 where a channel
    varies in none of the sets of rows."""
    train, *wider = rows
    own = varies(train)
    mean, scale = np.zeros(len(own)), np.ones(len(own))
    if own.any():
        mean[own], scale[own] = fit(train if own.all() else train[:, own])
    for c in np.flatnonzero(~own):
        column = next((each[:, c] for each in wider if varies(each[:, c : c + 1])[0]), None)
        mean[c], scale[c] = _exactly(wider[0][:, c] if column is None else column)
    return mean, scale, own


@register_scaler("standard")
def standard(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (C,) of `values` (rows, C)."""
    fitted = _standard(values)
    mean, scale = np.asarray(fitted.mean_, dtype=np.float64), np.asarray(fitted.scale_, dtype=np.float64)
    for c in np.flatnonzero((scale == 1) & (fitted.var_ != 1)):  # taken for constant, which is so up to rounding only
        mean[c], deviation = _exactly(values[:, c])
        scale[c] = deviation or 1.0
    return mean, scale


@register_scaler("robust")
def robust(values: Array) -> tuple[Array, Array]:
    """Median and, over that of a normal distribution, the distance of the quartiles (C,) of `values` (rows, C); the
    standard deviation where that is 0."""
    low, median, high = np.nanquantile(values, (0.25, 0.5, 0.75), axis=0)
    scale = (high - low) / NORMAL_QUARTILES
    return median, np.where(scale > 0, scale, standard(values)[1])


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
