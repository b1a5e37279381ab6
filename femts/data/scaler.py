"""Scaling per channel, fitted once on the training rows and stored with the model.

A channel that is constant in its training rows, or almost, has no usable scale there: scaled by a tiny deviation, later
rows would be thousands of deviations away and dominate every mean error. Such a channel is scaled by later rows or, in
a panel, like the other series, and `own` excludes it from mean errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from femts.data.pieces import CELLS
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
"""Decorator that registers a scaler under a name for `training.scaler`.

The function is called with training rows (rows, C) of channels that vary, NaN where missing. It returns
a location and a positive scale, (C,) float64 each: scaled values are (raw - location) / scale.
"""

NORMAL_QUARTILES = 1.3489795003921634  # interquartile range of a standard normal distribution
FEWEST, SHARE = 3, 0.02  # number and fraction of rows that have to differ from the rest
SAME = 1e-8  # relative difference below which values are equal


@dataclass(frozen=True, eq=False)
class Scaler:
    """Scaled = (raw - mean) / scale, for each of S series and C channels.

    The first axis of values is the series, or items that belong to one series each; or there is one series for all.

    Attributes:
        mean: (S, C) float64, in raw units.
        scale: (S, C) float64, population standard deviation; 1 for a constant channel.
        own: (S, C) bool, whether the training rows vary enough to determine the scale; mean errors exclude the others.
        kind: registered name of the scaler.
    """

    mean: Array
    scale: Array
    own: NDArray[np.bool_]
    kind: str = "standard"

    @classmethod
    def fit(
        cls, series: Iterable[Sequence[Array]], channels: int, like: Scaler | None = None, kind: str = "standard"
    ) -> Scaler:
        """Fit each channel of each series to the first of several sets of rows in which it varies.

        Args:
            series: for each series, the training rows and two fallback sets, (n, C) each, NaN where missing. A channel
                that varies in none of them gets the mean of the second.
            channels: C.
            like: scaler of other series; None uses the series themselves. A channel that is constant in all sets gets
                the usual ratio of scale to level of these; without any, its level, or 1 if that is 0.
            kind: registered name of the scaler for channels that vary.
        """
        fit, sets = SCALERS[kind], list(series)
        mean, scale = np.zeros((len(sets), channels)), np.ones((len(sets), channels))
        own, left = np.ones(mean.shape, dtype=np.bool_), np.ones(len(sets), dtype=np.bool_)
        if fit is standard:
            for some in _alike([rows[0] for rows in sets]):
                mean[some], scale[some], plain = _standard_of_many(np.stack([sets[number][0] for number in some]))
                left[some[plain]] = False
        for number in np.flatnonzero(left):
            mean[number], scale[number], own[number] = _fit_first(sets[number], fit)
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
        """The identity scaler."""
        return cls(np.zeros((1, channels)), np.ones((1, channels)), np.ones((1, channels), dtype=np.bool_))

    def take(self, series: NDArray[np.integer[Any]]) -> Scaler:
        """Scaler of some series by number, (B, C)."""
        return replace(self, mean=self.mean[series], scale=self.scale[series], own=self.own[series])

    def transform(self, values: Values) -> Values:
        """Scale `values` (S or n, ..., C), an array or a tensor; tensors keep their dtype and device."""
        mean, scale = self.like(values)
        return (values - mean) / scale

    def inverse(self, values: Values) -> Values:
        """Convert `values` (S or n, ..., T) of the first T channels to raw units; tensors keep their dtype and
        device."""
        mean, scale = self.like(values, most=self.mean.shape[1])
        return values * scale + mean

    def like(self, values: Values, most: int = 0) -> tuple[Values, Values]:
        """Mean and scale in the type of `values`, for all channels or, up to `most`, as many as it has."""
        channels = values.shape[-1]
        if channels != self.mean.shape[1] and channels > most:
            raise UsageError(
                f"The scaler was fitted on {self.mean.shape[1]} channels, not {channels}; provide the same channels."
            )
        shape = (len(self.mean), *(1,) * (values.ndim - 2), channels) if len(self.mean) > 1 else (channels,)
        mean, scale = (each[:, :channels].reshape(shape) for each in (self.mean, self.scale))
        if isinstance(values, np.ndarray):
            return mean, scale
        return values.new_tensor(mean), values.new_tensor(scale)

    def usual_scale(self) -> Array:
        """Median ratio of scale to root mean square of each channel, (C,), over series with a scale of their own; 0 if
        there are none."""
        usual, some = np.zeros(self.mean.shape[1]), self.own.any(axis=0)
        with np.errstate(invalid="ignore"):
            relative = np.where(self.own, self.scale / np.hypot(self.mean, self.scale), np.nan)
        usual[some] = np.nanmedian(relative[:, some], axis=0)
        return usual

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON, which preserves float64 in Python."""
        own = {} if self.own.all() else {"own": self.own.tolist()}
        return {"kind": self.kind, "mean": self.mean.tolist(), "scale": self.scale.tolist(), **own}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scaler:
        """The inverse of `to_dict`.

        Raises:
            UsageError: A field is missing, or the numbers are not a valid scaler.
        """
        try:
            mean, scale = (np.asarray(data[key], dtype=np.float64) for key in ("mean", "scale"))
            own = np.asarray(data["own"]) if "own" in data else np.ones(mean.shape, dtype=np.bool_)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The stored scaler cannot be read ({error!r}); train again.") from error
        if mean.ndim != 2 or mean.shape != scale.shape or not np.isfinite(mean).all() or not (scale > 0).all():
            raise UsageError("The stored scaler needs one finite mean and one positive scale per channel; train again.")
        if own.shape != mean.shape or own.dtype != np.bool_:
            raise UsageError("The stored scaler needs one true or false per channel for `own`; train again.")
        return cls(mean, scale, own, str(data.get("kind", "standard")))


def _alike(series: Sequence[Array]) -> list[NDArray[np.int64]]:
    """Numbers of the series that have the same number of rows, for numbers that several have, in groups of about `CELLS`
    cells."""
    lengths = np.array([len(rows) for rows in series], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)
    made = list[NDArray[np.int64]]()
    for some in groups:
        if len(some) > 1:
            cells = len(some) * series[some[0]].size
            made += np.array_split(some, min(len(some), cells // CELLS + 1))
    return made


def _standard_of_many(values: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """As `standard`, bit for bit, for `values` (S, rows, C) of series without gaps whose channels all vary; and which
    are such series, (S,)."""
    with np.errstate(invalid="ignore"):
        fitted = _standard(values, axis=1)
        plain = varies(values.swapaxes(0, 1).reshape(values.shape[1], -1)).reshape(len(values), -1)
    plain &= ~((fitted.scale_ == 1) & (fitted.var_ != 1)) & ~np.isnan(values).any(axis=1)
    return fitted.mean_, fitted.scale_, np.asarray(plain.all(axis=1))


def _fit_first(rows: Sequence[Array], fit: FitScale) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Mean, scale and whether it is their own, (C,) each, of the channels of one series; scale 0 if a channel varies in
    no set."""
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
    for c in np.flatnonzero(
        (scale == 1) & (fitted.var_ != 1)
    ):  # scikit-learn treats these as constant, which they are only up to rounding
        mean[c], deviation = _exactly(values[:, c])
        scale[c] = deviation or 1.0
    return mean, scale


@register_scaler("robust")
def robust(values: Array) -> tuple[Array, Array]:
    """Median (C,) and interquartile range relative to that of a standard normal distribution (C,) of `values` (rows,
    C); the standard deviation if the range is 0."""
    low, median, high = np.nanquantile(values, (0.25, 0.5, 0.75), axis=0)
    scale = (high - low) / NORMAL_QUARTILES
    return median, np.where(scale > 0, scale, standard(values)[1])


def varies(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each channel, (C,), whether enough rows of `values` (n, C) differ from the rest to determine a
    scale."""
    missing = np.isnan(values)
    if missing.any():
        return np.array([_varies(c[~gone]) for c, gone in zip(values.T, missing.T, strict=True)], dtype=np.bool_)
    return np.asarray(_varies(values)) & np.ones(values.shape[1], dtype=np.bool_)


def _varies(values: NDArray[np.float64]) -> Any:
    """As `varies`, for `values` (n,) or (n, C) without gaps."""
    if not len(values):
        return False
    fewest = max(FEWEST, math.ceil(SHARE * len(values)))
    some = np.sort(values[: 2 * fewest - 1], axis=0)
    usual = some[len(some) // 2]  # the common value, if fewer than `fewest` rows differ
    return (np.abs(values - usual) > SAME * np.abs(usual)).sum(axis=0) >= fewest


class _Standard(NamedTuple):
    mean_: NDArray[np.float64]
    var_: NDArray[np.float64]
    scale_: NDArray[np.float64]


def _standard(values: NDArray[np.float64], axis: int = 0) -> _Standard:
    """As scikit-learn's StandardScaler, bit for bit, without its checks, which take milliseconds for each series.

    Args:
        values: (rows, C), or with `axis` 1 (S, rows, C).
        axis: that of the rows.
    """
    missing = np.isnan(values)
    total = np.nansum if missing.any() else np.sum
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = values.shape[axis] - missing.sum(axis=axis).astype(np.float64)
        mean = total(values, axis=axis) / rows
        off = values - np.expand_dims(mean, axis)
        rest = total(off, axis=axis)
        off **= 2
        var = (total(off, axis=axis) - rest**2 / rows) / rows
    eps = np.finfo(np.float64).eps
    scale = np.where(var <= rows * eps * var + (rows * mean * eps) ** 2, 1.0, np.sqrt(var))
    return _Standard(mean, var, scale)


def _exactly(column: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and deviation of a column that may vary little relative to its size; a constant column is exactly its
    mean."""
    observed = column[~np.isnan(column)]
    first = float(observed[0]) if len(observed) else 0.0
    differences = observed - first
    largest = float(np.abs(differences).max(initial=0.0))
    if largest == 0:
        return first, 0.0
    return first + float(differences.mean()), largest * float((differences / largest).std())
