"""Power transform of skewed values, fitted to the training rows and undone with the forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from femts.errors import UsageError
from femts.text import quote

Array = NDArray[np.float64]
SMALL = 1e-12  # of what a power is undone from, where a forecast leaves what the transform can give


@dataclass(frozen=True, eq=False)
class PowerTransform:
    """Box-Cox transform of T channels of S series: ((x + shift) ** power - 1) / power, or its logarithm where the power
    is 0.

    Box & Cox, "An Analysis of Transformations" (Journal of the Royal Statistical Society B, 1964). Values have the
    series, or what belongs to one, on their first axis, or there is one series for all.

    Attributes:
        shift: what is added to the raw values.
        powers: (S, T).
    """

    shift: float
    powers: Array

    @classmethod
    def fit(cls, transform: str, series: Iterable[tuple[str, Array]], columns: Sequence[str]) -> PowerTransform | None:
        """The transform of that name for raw values (rows, T) of each series, NaN where missing, after words on it;
        None for `none`.

        Raises:
            UsageError: values that it does not take.
        """
        if transform == "none":
            return None
        from scipy.stats import boxcox_normmax

        shift, powers = 1.0 if transform == "log1p" else 0.0, list[Array]()
        for words, values in series:
            made = cls(shift, np.zeros((1, values.shape[-1])))
            made.check(values, columns, lambda row, words=words: (words, row))  # type: ignore[misc]
            if transform == "boxcox":
                observed = [column[~np.isnan(column)] for column in values.T]
                # A constant, or a few values, have no power; one beyond 2 either way only follows chance.
                fitted = [boxcox_normmax(x, method="mle") if len(np.unique(x)) > 2 else 1.0 for x in observed]
                made = cls(shift, np.clip(np.array([fitted], dtype=np.float64), -2.0, 2.0))
            powers.append(made.powers)
        return cls(shift, np.concatenate(powers))

    def take(self, series: NDArray[np.integer[Any]]) -> PowerTransform:
        """Those of some series by number, (B, T)."""
        return PowerTransform(self.shift, self.powers[series])

    def check(self, values: Array, columns: Sequence[str], where: Callable[..., tuple[str, int]]) -> None:
        """UsageError for raw `values` (..., rows, T) that are not above the lowest that the transform takes; `where`
        gives words on a row by its place, and its number there."""
        low = values + self.shift <= 0
        if low.any():
            *place, column = np.argwhere(low)[0].tolist()
            value, least = values[(*place, column)], 0.0 - self.shift
            remedy = "take --transform log1p, or none" if not self.shift else "take --transform none"
            words, number = where(*place)
            raise UsageError(
                f"{words} has {value:g} in column '{quote(columns[column])}' at data row {number + 1}, and this "
                f"transform takes values above {least:g} alone; {remedy}."
            )

    def _like(self, values: Array) -> Array:
        """Powers beside `values` (S or n, ..., T), of as many channels as they have."""
        powers = self.powers[:, : values.shape[-1]]
        return powers[0] if len(powers) == 1 else powers.reshape(len(powers), *(1,) * (values.ndim - 2), -1)

    def apply(self, values: Array) -> Array:
        """Transformed `values` (S or n, ..., T)."""
        from scipy.special import boxcox

        return np.asarray(boxcox(values + self.shift, self._like(values)))

    def undo(self, values: Array) -> Array:
        """Raw values of transformed ones; what no raw value gives becomes the nearest that one does."""
        powers = np.broadcast_to(self._like(values), values.shape)
        base = np.where(np.isnan(values), np.nan, np.maximum(powers * values + 1, SMALL))
        straight = np.where(powers == 0, 1.0, powers)
        return np.where(powers == 0, np.exp(np.where(powers == 0, values, 0.0)), base ** (1 / straight)) - self.shift

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {"shift": self.shift, "powers": self.powers.tolist()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PowerTransform:
        """The inverse of `to_dict`."""
        return cls(float(record["shift"]), np.asarray(record["powers"], dtype=np.float64))
