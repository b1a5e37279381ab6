"""Standardisation per channel, fitted once on the training rows and kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    Values = TypeVar("Values", NDArray[Any], Tensor)
else:
    Values = TypeVar("Values")


@dataclass(frozen=True, eq=False)
class Scaler:
    """Scaled = (raw - mean) / scale, channel by channel.

    Attributes:
        mean: (C,) float64, in the data's units.
        scale: (C,) float64, the population standard deviation; 1 for a constant channel.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, values: NDArray[np.float64]) -> Scaler:
        """Mean and standard deviation of `values` (rows, C): pass the training rows and no others."""
        fitted = _standard(values)
        mean, scale = np.asarray(fitted.mean_, dtype=np.float64), np.asarray(fitted.scale_, dtype=np.float64)
        for c in np.flatnonzero(
            (scale == 1) & (fitted.var_ != 1)
        ):  # taken for constant, which is so up to rounding only
            mean[c], scale[c] = _exactly(values[:, c])
        return cls(mean, scale)

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
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist()}

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
        return cls(mean, scale)


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
    """Mean and deviation of a column that differs little, for its size: what is constant is its own
    mean, with a scale of 1."""
    observed = column[~np.isnan(column)]
    first = float(observed[0]) if len(observed) else 0.0
    differences = observed - first
    largest = float(np.abs(differences).max(initial=0.0))
    if largest == 0:
        return first, 1.0
    return first + float(differences.mean()), largest * float((differences / largest).std()) or 1.0
